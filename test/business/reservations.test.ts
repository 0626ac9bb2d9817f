import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Lab } from '../../src/domain/lab.ts';
import { findCluster, startRelease } from '../../src/store/clusters.ts';
import { createReservation, listReservations } from '../../src/store/reservations.ts';
import { alpha, beta, type Call, eventually, physics, startTestApp } from '../support/app.ts';
import { openTestStore } from '../support/store.ts';

const hour = 3_600_000;
const unknown = 'reservation_01JD0000000000000000000000';

/** As `physics`, with a member who may see reservations, staff that may only read, and no login nodes. */
const lab: Lab = {
  ...physics,
  users: [...(physics.users ?? []), { email: 'rita@physics.example', staff: ['staff.read'] }],
  organizations: (physics.organizations ?? []).map((organization) =>
    organization.slug === 'physics'
      ? {
          ...organization,
          members: [
            ...(organization.members ?? []),
            { email: 'rob@physics.example', role: 'member', permissions: ['reservations.read'] },
            { email: 'amy@physics.example', role: 'admin' },
          ],
        }
      : organization,
  ),
  clusters: (physics.clusters ?? []).map((cluster) => ({ ...cluster, scheduler: 'kubernetes' })),
};

const refusal = ({ status, body }: { status: number; body: { code?: string } }) => [status, body.code];

test('reservations', async (t) => {
  await using service = await startTestApp({ lab });
  const { store } = service.app;
  await eventually(
    () => store.read.selectFrom('clusters').select('id').where('state', '!=', 'active').execute(),
    (waiting) => waiting.length === 0,
  );
  const org: string = (await service.business('/me', { as: 'ada' })).body.default_org_id;
  const carl = await service.issuer.token('carl', { email: 'carl@chemistry.example' }, 864_000);
  type Write = Partial<Call> & { key?: string };
  const create = (body: object = {}, call: Write = {}) =>
    service.write('/operator/reservations', {
      as: 'root',
      body: { cluster_id: alpha, node_count: 4, ...body },
      ...call,
    });
  const end = (id: string, call: Write = {}) =>
    service.write(`/operator/reservations/${id}/end`, { as: 'root', ...call });
  const list = async () =>
    (await service.business(`/organizations/${org}/reservations`, { as: 'ada' })).body.reservations;
  const cluster = async (id = alpha) =>
    (await service.business(`/organizations/${org}/clusters/${id}`, { as: 'ada' })).body;
  const audit = () =>
    store.read
      .selectFrom('audit_entries')
      .selectAll()
      .orderBy('seq', 'desc')
      .limit(1)
      .executeTakeFirstOrThrow();
  const inHours = (hours: number) => new Date(Date.now() + offset + hours * hour).toISOString();
  let offset = 0;
  const advance = (milliseconds: number) => {
    offset += milliseconds;
    service.advance(milliseconds);
  };

  await t.test('before the first there are none', async () => {
    assert.deepEqual(await list(), []);
    assert.equal('reservation_id' in (await cluster()), false);
  });

  const before = await cluster();
  const { status, body: first } = await create({ cluster_id: alpha.toUpperCase() }, { key: 'create' });
  await t.test('creating one sets reservation_id and expected_node_count, and raises version', async () => {
    assert.equal(status, 201);
    const { id, created_at, ...rest } = first;
    assert.match(id, /^reservation_[0-7][0-9A-HJKMNP-TV-Z]{25}$/);
    assert.deepEqual(rest, { organization_id: org, cluster_id: alpha, node_count: 4, state: 'active' });
    assert.deepEqual(await cluster(), {
      ...before,
      reservation_id: id,
      expected_node_count: 4,
      version: before.version + 1,
      updated_at: created_at,
    });
    const entry = await audit();
    assert.deepEqual(
      [entry.operation, entry.target, entry.organization_id, entry.cluster_id, entry.result],
      ['operatorCreateReservation', id, org, alpha, 'done'],
    );
    assert.equal(entry.details, '4 nodes of alpha');
  });

  await t.test('the same key and body again is 200 with the first result; another body 409', async () => {
    const replay = await create({}, { key: 'create' });
    assert.deepEqual([replay.status, replay.body], [200, first]);
    assert.deepEqual(refusal(await create({ node_count: 5 }, { key: 'create' })), [
      409,
      'idempotency_mismatch',
    ]);
  });

  await t.test(
    'one active reservation a cluster: another is 409, and its refusal is in the trail',
    async () => {
      const before = await cluster();
      const { status, body } = await create({ node_count: 8 });
      assert.deepEqual([status, body.code, body.retryable], [409, 'invalid_state', false]);
      assert.match(body.message, new RegExp(first.id));
      const entry = await audit();
      assert.deepEqual([entry.result, entry.cluster_id], ['refused: invalid_state', alpha]);
      assert.deepEqual(await cluster(), before);
    },
  );

  await t.test(
    'holders of reservations.read see those of their organization: owner, admin, member',
    async () => {
      const path = `/organizations/${org}/reservations`;
      for (const as of ['ada', 'amy', 'rob']) {
        const { status, body } = await service.business(path, { as });
        assert.deepEqual([status, body], [200, { reservations: [first] }]);
      }
      for (const as of ['bob', 'eve']) {
        assert.deepEqual(refusal(await service.business(path, { as })), [403, 'forbidden']);
      }
      for (const call of [{ as: 'root' }, { token: carl }]) {
        assert.deepEqual(refusal(await service.business(path, call)), [404, 'not_found']);
      }
      const chemistry = (await service.business('/me', { token: carl })).body.default_org_id;
      const theirs = await service.business(`/organizations/${chemistry}/reservations`, { token: carl });
      assert.deepEqual(theirs.body, { reservations: [] });
    },
  );

  await t.test('operators see all with staff.read, and change with staff.operate', async () => {
    for (const as of ['root', 'rita']) {
      const { status, body } = await service.business('/operator/reservations', { as });
      assert.deepEqual([status, body], [200, { reservations: [first] }]);
    }
    for (const call of [{ as: 'ada' }, { as: 'rob' }, { token: carl }]) {
      assert.deepEqual(refusal(await service.business('/operator/reservations', call)), [403, 'forbidden']);
    }
    for (const call of [{ as: 'ada' }, { as: 'rita' }, { token: carl }]) {
      for (const reply of [await create({ cluster_id: beta }, call), await end(first.id, call)]) {
        assert.deepEqual(refusal(reply), [403, 'forbidden']);
        assert.equal((await audit()).result, 'refused: forbidden');
      }
      assert.deepEqual(refusal(await end(unknown, call)), [403, 'forbidden']);
    }
    assert.deepEqual(await list(), [first]);
  });

  await t.test('ending it clears reservation_id, keeps the count, and raises version', async () => {
    const before = await cluster();
    const { status, body } = await end(first.id, { key: 'end' });
    assert.equal(status, 200);
    const { ended_at, ...rest } = body;
    assert.deepEqual(rest, { ...first, state: 'ended' });
    const { reservation_id: _, ...kept } = before;
    assert.deepEqual(await cluster(), { ...kept, version: before.version + 1, updated_at: ended_at });
    assert.deepEqual(await list(), [body]);
    for (const key of ['end', 'another']) {
      const again = await end(first.id, { key });
      assert.deepEqual([again.status, again.body], [200, body], 'ending it again changes nothing');
    }
    assert.equal((await cluster()).version, before.version + 1);
    assert.deepEqual(refusal(await end(unknown)), [404, 'not_found']);
    assert.deepEqual(refusal(await end('nonsense')), [404, 'not_found']);
  });

  const ends: [string, unknown, number, string][] = [
    ['in the past', new Date(Date.now() - 1000).toISOString(), 400, 'invalid_request'],
    ['a leap second', '2016-12-31T23:59:60Z', 422, 'invalid_request'],
    ['in the year 10000 in UTC', '9999-12-31T23:59:59-01:00', 422, 'invalid_request'],
    ['no time', 'tomorrow', 422, 'invalid_request'],
    ['a day', '2999-01-01', 422, 'invalid_request'],
    ['a number', 32_503_680_000, 422, 'invalid_request'],
  ];
  for (const [what, ends_at, status, code] of ends) {
    await t.test(`ends_at that is ${what} is ${status}`, async () => {
      assert.deepEqual(refusal(await create({ ends_at })), [status, code]);
    });
  }

  await t.test('a cluster that is not there is 404, one that is released 409, no nodes 422', async () => {
    assert.deepEqual(refusal(await create({ cluster_id: crypto.randomUUID() })), [404, 'not_found']);
    assert.deepEqual(refusal(await create({ cluster_id: 'x'.repeat(10_000) })), [404, 'not_found']);
    for (const node_count of [0, -1, 1.5, '4', 100_001]) {
      assert.deepEqual(refusal(await create({ node_count })), [422, 'invalid_request']);
    }
    const setState = (state: 'active' | 'releasing') =>
      store.write(async ({ db }) => {
        await db.updateTable('clusters').set({ state }).where('id', '=', beta).execute();
      });
    await setState('releasing');
    assert.deepEqual(refusal(await create({ cluster_id: beta })), [409, 'invalid_state']);
    await setState('active');
  });

  await t.test(
    'one whose ends_at has passed has ended, everywhere, without anyone doing anything',
    async () => {
      const ends_at = inHours(1);
      const { status, body } = await create({ ends_at, node_count: 6 }, { key: 'for an hour' });
      assert.deepEqual([status, body.state, body.ends_at], [201, 'active', ends_at]);
      const before = await cluster();
      assert.equal(before.reservation_id, body.id);
      assert.deepEqual(refusal(await create()), [409, 'invalid_state']);

      advance(hour);
      const ended = { ...body, state: 'ended', ended_at: ends_at };
      assert.deepEqual((await list()).at(-1), ended);
      const all = (await service.business('/operator/reservations', { as: 'rita' })).body.reservations;
      assert.deepEqual(all.at(-1), ended);
      const after = await cluster();
      const { reservation_id: _, ...kept } = before;
      assert.deepEqual(after, { ...kept, version: before.version + 1, updated_at: ends_at });
      const listed = (await service.business(`/organizations/${org}/clusters`, { as: 'bob' })).body.clusters;
      assert.deepEqual(
        listed.find(({ id }: { id: string }) => id === alpha),
        after,
      );

      const replay = await create({ ends_at, node_count: 6 }, { key: 'for an hour' });
      assert.deepEqual([replay.status, replay.body], [200, body], 'a replay is the first result');
      assert.deepEqual((await end(body.id)).body, ended, 'there is nothing left to end');
      assert.deepEqual(await cluster(), after, 'as it was shown, so it is written');
    },
  );

  await t.test('after one has run out the cluster can have another; version only ever rises', async () => {
    const short = (await create({ ends_at: inHours(1) })).body;
    const { version } = await cluster();
    advance(2 * hour);
    assert.equal((await cluster()).version, version + 1);
    const next = await create({ node_count: 9 });
    assert.equal(next.status, 201);
    const now = await cluster();
    assert.deepEqual(
      [now.reservation_id, now.expected_node_count, now.version],
      [next.body.id, 9, version + 2],
    );
    const states = (await list()).map(({ id, state }: { id: string; state: string }) => [id, state]);
    assert.deepEqual(states.slice(-2), [
      [short.id, 'ended'],
      [next.body.id, 'active'],
    ]);
    assert.equal((await end(next.body.id)).status, 200);
  });

  await t.test('of two made at the same instant for a cluster one wins', async () => {
    const replies = await Promise.all([1, 2, 3].map((node_count) => create({ node_count })));
    assert.deepEqual(replies.map(({ status }) => status).sort(), [201, 409, 409]);
    const won = replies.find(({ status }) => status === 201);
    assert.equal((await cluster()).reservation_id, won?.body.id);
  });

  await t.test('reservations are there after a restart, those that ran out meanwhile as ended', async () => {
    assert.equal((await create({ cluster_id: beta, ends_at: inHours(1) })).status, 201);
    const before = await listReservations(store.read, {}, Date.now() + offset);
    await service.app[Symbol.asyncDispose]();
    const reopened = await service.reopen();
    const after = await listReservations(reopened.read, {}, Date.now() + offset);
    const later = await listReservations(reopened.read, {}, Date.now() + offset + hour);
    await reopened.close();
    assert.deepEqual(after, before);
    assert.equal(before.at(-1)?.state, 'active');
    const { endsAt } = later.at(-1) ?? {};
    assert.deepEqual(later.at(-1), { ...before.at(-1), state: 'ended', endedAt: endsAt });
  });
});

test('a cluster that goes out of service has no reservation any more', async () => {
  await using opened = await openTestStore(physics);
  const { store } = opened;
  const start = Date.parse('2030-01-01T00:00:00.000Z');
  const find = async () => {
    const cluster = await findCluster(store.read, alpha);
    assert.ok(cluster);
    return cluster;
  };
  await store.write(async (tx) =>
    createReservation({ ...tx, now: start }, await find(), { nodeCount: 2, endsAt: start + hour }),
  );
  const { version } = await find();
  await store.write((tx) =>
    startRelease({ ...tx, now: start + hour / 2 }, { clusterId: alpha, commandId: null }),
  );
  const [ended] = await listReservations(store.read, {}, start + hour / 2);
  assert.deepEqual([ended?.state, ended?.endedAt], ['ended', '2030-01-01T00:30:00.000Z']);
  const released = await find();
  assert.equal(released.reservation, null);
  assert.ok(released.version > version);
});
