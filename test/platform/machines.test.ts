import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isUuid } from '../../src/domain/id.ts';
import { insertRow } from '../../src/store/engine/rows.ts';
import { becomes, eventually, physics, startTestApp } from '../support/app.ts';
import { fieldsOf } from '../support/fields.ts';
import { refused } from '../support/refused.ts';
import { requireRow } from '../support/store.ts';
import { labCluster, setCluster, setSimulated, silence } from './support.ts';

const machine = { gpuModel: 'H200', cpuCores: 192, memoryGib: 2048, ibSpeed: '400 Gb/sec' };
const nodes = { computeNodes: 5, gpusPerNode: 8 };
const clusters = [labCluster('alpha', 1, { ...nodes, nodesDown: 1, machine }), labCluster('beta', 2, nodes)];
const [alpha, beta] = clusters.map(({ id }) => id) as [string, string];

// What operators make of machines: test/business/machines.test.ts.
test('machines are shown as they were last reported, in pages', async () => {
  await using service = await startTestApp({ lab: { ...physics, clusters } });
  const { org_id: org } = (await service.business('/me', { as: 'ada' })).body.memberships[0];
  const machines = (id = alpha, query = '') =>
    service.platform(`/clusters/${id}/machines?businessOrgId=${org}${query}`, { as: 'bob' });
  const named = async (name: string, id = alpha) =>
    (await machines(id)).body.items.find((one: { name: string }) => one.name === name);
  const { body } = await eventually(machines, (reply) => reply.body.items.length === 5);
  await becomes(async () => (await machines(beta)).body.items.length, 5);

  const { items, ...more } = body;
  assert.deepEqual(more, { organization_id: org, cluster_id: alpha });
  const first = await named('alpha-1');
  const { observed_at, generation } = first.observed;
  assert.ok(isUuid(first.id) && generation >= 1 && Date.parse(observed_at));
  assert.deepEqual(first, {
    ...{ id: first.id, name: 'alpha-1', lifecycle_state: 'registered' },
    hardware: { gpu_model: 'H200', gpu_count: 8, cpu_cores: 192, memory_gib: 2048, ib_speed: '400 Gb/sec' },
    observed: { ready: true, phase: 'idle', freshness: 'fresh', observed_at, generation },
  });
  assert.deepEqual((await named('beta-1', beta)).hardware, { gpu_count: 8 }, 'what is known');
  const { ready, phase } = (await named('alpha-5')).observed;
  assert.deepEqual([ready, phase], [false, 'down']);

  const ids = fieldsOf(items, 'id');
  assert.deepEqual(ids, [...ids].sort());
  const start = (await machines(alpha, '&limit=3')).body;
  const token = start.next_page_token;
  assert.equal(token.includes(start.items.at(-1).id), false, 'tokens are opaque');
  const end = (await machines(alpha, `&limit=2&after=${token}`)).body;
  assert.deepEqual([fieldsOf([...start.items, ...end.items], 'id'), 'next_page_token' in end], [ids, false]);
  refused(await machines(beta, `&after=${token}`), 400, 'invalid_pagination', /after/);
  await setSimulated(service, beta, { computeNodes: 60 });
  const many = await eventually(
    () => machines(beta),
    (reply) => reply.body.next_page_token !== undefined,
  );
  assert.equal(many.body.items.length, 50);

  const after = await eventually(
    () => named('alpha-1'),
    ({ observed }) => observed.generation > generation,
  );
  assert.equal(after.id, first.id);
  assert.ok(after.observed.observed_at > observed_at);

  await silence(service, alpha);
  await service.app.store.write(async ({ db }) => {
    const row = await requireRow(db, 'machines', { id: first.id });
    const never = { report: null, report_generation: 0, observed_at: null };
    const id = 'ffffffff-0000-4000-8000-000000000000';
    await insertRow(db, 'machines', { ...row, ...never, id, name: 'new', lifecycle_state: 'quarantined' });
  });
  const { id: _, ...silent } = await named('new');
  assert.deepEqual(silent, { name: 'new', lifecycle_state: 'quarantined', hardware: {} });

  const { observed } = await named('alpha-1');
  service.advance(Date.parse(observed.observed_at) + 120_000 - Date.now() - 1000);
  assert.equal((await named('alpha-1')).observed.freshness, 'fresh');
  service.advance(1001);
  assert.deepEqual((await named('alpha-1')).observed, { ...observed, freshness: 'stale' });
  await setCluster(service, alpha, { state: 'released' });
  assert.deepEqual((await machines()).body, { ...more, items: [] });
});
