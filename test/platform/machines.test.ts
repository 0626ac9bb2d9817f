import assert from 'node:assert/strict';
import { test } from 'node:test';
import { alpha, beta, eventually, physics, startTestApp } from '../support/app.ts';
import { refused, setCluster, setSimulated, silence } from './support.ts';

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

test('GET /clusters/{clusterId}/machines', async (t) => {
  await using service = await startTestApp({
    lab: {
      ...physics,
      clusters: (physics.clusters ?? []).map((cluster) => ({
        ...cluster,
        simulated: {
          computeNodes: 5,
          gpusPerNode: 8,
          applyMs: 0,
          ...(cluster.name === 'alpha'
            ? {
                nodesDown: 1,
                machine: { gpuModel: 'H200', cpuCores: 192, memoryGib: 2048, ibSpeed: '400 Gb/sec' },
              }
            : {}),
        },
      })),
    },
  });
  const { org_id: org } = (await service.business('/me', { as: 'ada' })).body.memberships[0];
  const machines = (id = alpha, query = '') =>
    service.platform(`/clusters/${id}/machines?businessOrgId=${org}${query}`, { as: 'bob' });
  const named = async (name: string, id = alpha) =>
    (await machines(id)).body.items.find((one: { name: string }) => one.name === name);
  await eventually(machines, ({ body }) => body.items.length === 5);
  await eventually(
    () => machines(beta),
    ({ body }) => body.items.length === 5,
  );

  await t.test('snake_case, with every field of the contract', async () => {
    const { status, body } = await machines();
    assert.equal(status, 200);
    assert.deepEqual(Object.keys(body).sort(), ['cluster_id', 'items', 'organization_id']);
    assert.deepEqual([body.organization_id, body.cluster_id], [org, alpha]);
    const first = body.items.find((one: { name: string }) => one.name === 'alpha-1');
    assert.match(first.id, uuid);
    assert.deepEqual(first, {
      id: first.id,
      name: 'alpha-1',
      lifecycle_state: 'registered',
      hardware: {
        gpu_model: 'H200',
        gpu_count: 8,
        cpu_cores: 192,
        memory_gib: 2048,
        ib_speed: '400 Gb/sec',
      },
      observed: {
        ready: true,
        phase: 'idle',
        freshness: 'fresh',
        observed_at: first.observed.observed_at,
        generation: first.observed.generation,
      },
    });
    assert.ok(first.observed.generation >= 1);
    assert.equal(Number.isNaN(Date.parse(first.observed.observed_at)), false);
  });

  await t.test('what is not known of the hardware is left out', async () => {
    assert.deepEqual((await named('beta-1', beta)).hardware, { gpu_count: 8 });
  });

  await t.test('a machine that takes no work is not ready, and says its phase', async () => {
    const { ready, phase } = (await named('alpha-5')).observed;
    assert.deepEqual([ready, phase], [false, 'down']);
  });

  await t.test('by ID, a page of 50 at a time, with a token of this list', async () => {
    const { items } = (await machines()).body;
    const ids = items.map(({ id }: { id: string }) => id);
    assert.deepEqual(ids, [...ids].sort());
    const first = (await machines(alpha, '&limit=3')).body;
    const token = first.next_page_token;
    assert.equal(token.includes(first.items.at(-1).id), false, 'tokens are opaque');
    const last = (await machines(alpha, `&limit=2&after=${token}`)).body;
    const seen = [...first.items, ...last.items].map(({ id }: { id: string }) => id);
    assert.deepEqual([seen, 'next_page_token' in last], [ids, false]);
    refused(await machines(beta, `&after=${token}`), 400, 'invalid_pagination', /after/);
    await setSimulated(service, beta, { computeNodes: 60 });
    const { body } = await eventually(
      () => machines(beta),
      (reply) => reply.body.next_page_token !== undefined,
    );
    assert.equal(body.items.length, 50);
  });

  await t.test('generation increases and observed_at moves with each report; the ID stays', async () => {
    const before = await named('alpha-2');
    const after = await eventually(
      () => named('alpha-2'),
      ({ observed }) => observed.generation > before.observed.generation,
    );
    assert.equal(after.id, before.id);
    assert.ok(after.observed.observed_at > before.observed.observed_at);
  });

  await t.test('lifecycle_state is what operators made of it', async () => {
    const { id } = await named('alpha-1');
    for (const lifecycle_state of ['admitted', 'quarantined'] as const) {
      await service.app.store.write(({ db }) =>
        db.updateTable('machines').set({ lifecycle_state }).where('id', '=', id).execute(),
      );
      assert.equal((await named('alpha-1')).lifecycle_state, lifecycle_state);
    }
  });

  await t.test('a machine that never reported has no observed', async () => {
    const { id } = await named('alpha-1');
    await silence(service, alpha);
    await service.app.store.write(async ({ db }) => {
      const row = await db.selectFrom('machines').selectAll().where('id', '=', id).executeTakeFirstOrThrow();
      const never = { report: null, report_generation: 0, observed_at: null };
      await db
        .insertInto('machines')
        .values({ ...row, ...never, id: 'ffffffff-0000-4000-8000-000000000000', name: 'new' })
        .execute();
    });
    const machine = await named('new');
    assert.deepEqual(Object.keys(machine), ['id', 'name', 'lifecycle_state', 'hardware']);
    assert.deepEqual(machine.hardware, {});
  });

  await t.test('two minutes after its report a machine is stale, and shown with it', async () => {
    const { observed } = await named('alpha-1');
    service.advance(Date.parse(observed.observed_at) + 120_000 - Date.now() - 1000);
    assert.equal((await named('alpha-1')).observed.freshness, 'fresh');
    service.advance(1001);
    assert.deepEqual((await named('alpha-1')).observed, { ...observed, freshness: 'stale' });
  });

  await t.test('machines of a released cluster are not listed', async () => {
    await setCluster(service, alpha, { state: 'released' });
    const { status, body } = await machines();
    assert.deepEqual([status, body], [200, { organization_id: org, cluster_id: alpha, items: [] }]);
  });
});
