/** What a permission that has ended, and an organization that has, still take. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Lab } from '../../src/domain/clusters/lab.ts';
import { startTestApp, type TestApp } from '../support/app.ts';

const day = 86_400_000;

const lab: Lab = {
  users: [{ email: 'root@physics.example', staff: ['staff.operate'] }],
  organizations: [
    {
      slug: 'physics',
      name: 'Physics',
      members: [
        { email: 'ada@physics.example', role: 'owner' },
        { email: 'bob@physics.example', role: 'member', permissions: ['clusters.read'] },
      ],
    },
  ],
};

async function helpers(service: TestApp) {
  const org: string = (await service.business('/me', { as: 'ada' })).body.default_org_id;
  const bob: string = (await service.business('/me', { as: 'bob' })).body.user.id;
  const path = `/organizations/${org}/members/${bob}/permissions`;
  const put = (permissions: string[], ends?: object, extra: { key?: string; as?: string } = {}) => {
    const { as = 'ada', key } = extra;
    const body = { permissions, ...(ends && { expires_at: ends }) };
    return service.write(path, {
      as,
      method: 'PUT',
      body,
      ...(key && { key }),
    });
  };
  const held = async () => {
    const { body } = await service.business(path, { as: 'ada' });
    return [body.permissions, body.expires_at];
  };
  const ask = (body: object) => service.write(`/organizations/${org}/access-requests`, { as: 'bob', body });
  const decide = (id: string, how: 'approve' | 'decline', body?: object, key?: string) =>
    service.write(`/organizations/${org}/access-requests/${id}/${how}`, {
      as: 'ada',
      ...(body && { body }),
      ...(key && { key }),
    });
  return { org, bob, put, held, ask, decide };
}

const both = ['clusters.read', 'clusters.ssh'];

test('a set from before an end does not bring the permission back; saying its end does', async () => {
  await using service = await startTestApp({ lab });
  const { org, bob, put, held } = await helpers(service);
  const end = new Date(Date.now() + day).toISOString();
  assert.equal((await put(both, { 'clusters.ssh': end }, { key: 'first' })).status, 200);
  service.advance(day + 3_600_000);
  for (const as of ['ada', 'root']) {
    const { status, body } = await put(both, undefined, { as });
    assert.deepEqual([status, body.code], [409, 'invalid_state'], as);
    assert.match(body.message, /^clusters\.ssh ended at \S+ \S+ UTC\. Say in expires_at .*null/);
  }
  assert.deepEqual(await held(), [['clusters.read'], undefined]);
  const plan = await service.business(`/organizations/${org}/members/plan`, {
    as: 'ada',
    method: 'POST',
    body: { changes: [{ change: 'permissions', user_id: bob, permissions: both }] },
  });
  assert.deepEqual([plan.body.changes[0].result, plan.body.changes[0].code], ['refused', 'invalid_state']);
  const replay = await put(both, { 'clusters.ssh': end }, { key: 'first' });
  assert.deepEqual([replay.status, replay.body.permissions], [200, both], 'a replay is what it was');
  // Keys that never had an end, and sets without the one that ended, are as ever.
  assert.equal((await put(['clusters.read', 'reservations.read'])).status, 200);
  assert.equal((await put(both, { 'clusters.ssh': null })).status, 200);
  assert.deepEqual(await held(), [both, undefined]);
  assert.equal((await put(both)).status, 200);
});

test('another term counts at once, and a day after its end a key is given like any other', async () => {
  await using service = await startTestApp({ lab });
  const { put, held } = await helpers(service);
  const end = new Date(Date.now() + day).toISOString();
  await put(both, { 'clusters.ssh': end });
  service.advance(day + 3_600_000);
  const later = new Date(Date.now() + 10 * day).toISOString();
  assert.equal((await put(both, { 'clusters.ssh': later })).status, 200);
  assert.deepEqual(await held(), [both, { 'clusters.ssh': later }]);
  service.advance(11 * day);
  assert.equal((await put(both)).status, 200);
  assert.deepEqual(await held(), [both, undefined]);
});

test('an end may have small letters, and a bad one is refused in one sentence', async () => {
  await using service = await startTestApp({ lab });
  const { put, ask, decide } = await helpers(service);
  const { id } = (await ask({ permissions: ['clusters.ssh'], hours: 24 })).body;
  for (const refused of [
    await put(both, { 'clusters.ssh': 'tomorrow' }),
    await decide(id, 'approve', { expires_at: 'tomorrow' }),
  ]) {
    assert.equal(refused.status, 422);
    assert.match(refused.body.message, /must be a time such as 2030-01-31T00:00:00Z/);
    assert.doesNotMatch(refused.body.message, /oneOf|null|schema/);
  }
  const set = await put(both, { 'clusters.ssh': '2999-01-31t00:00:00z' });
  assert.deepEqual(set.body.expires_at, { 'clusters.ssh': '2999-01-31T00:00:00.000Z' });
});

test('an approval as asked and one for good are two requests', async () => {
  await using service = await startTestApp({ lab });
  const { ask, decide } = await helpers(service);
  const { id } = (await ask({ permissions: ['clusters.ssh'], hours: 24 })).body;
  const first = await decide(id, 'approve', {}, 'once');
  const again = await decide(id, 'approve', {}, 'once');
  assert.deepEqual([first.status, again.status, again.body], [200, 200, first.body]);
  const other = await decide(id, 'approve', { expires_at: null }, 'once');
  assert.deepEqual([other.status, other.body.code], [409, 'idempotency_mismatch']);
});

test('with an organization what members asked for ends, and nothing more is asked', async () => {
  await using service = await startTestApp({ lab });
  const { org, ask, decide } = await helpers(service);
  const { id } = (await ask({ permissions: ['clusters.ssh'] })).body;
  const { id: declined } = (await ask({ permissions: ['clusters.kubernetes'] })).body;
  await decide(declined, 'decline');
  assert.equal((await service.write(`/organizations/${org}/retire`, { as: 'ada' })).status, 200);
  const refused = await ask({ permissions: ['clusters.ssh'] });
  assert.deepEqual([refused.status, refused.body.code], [409, 'invalid_state']);
  assert.match(refused.body.message, /retired/);
  for (const how of ['approve', 'decline'] as const) {
    const { status, body } = await decide(id, how, how === 'approve' ? {} : undefined);
    assert.deepEqual([status, body.code], [409, 'invalid_state'], how);
  }
  const listed = async (path: string, as: string) =>
    (await service.business(path, { as })).body.requests.map((one: { id: string }) => one.id);
  assert.deepEqual(await listed(`/organizations/${org}/access-requests`, 'ada'), []);
  assert.deepEqual(await listed('/me/access-requests', 'bob'), [declined]);
});

test('before an end the person is warned, and not of what goes on by another key', async () => {
  await using service = await startTestApp({ lab });
  const { put } = await helpers(service);
  const notices = async (as: string) => (await service.business('/me', { as })).body.notices;
  const end = new Date(Date.now() + 9 * day).toISOString();
  await put([...both, 'clusters.configure'], { 'clusters.read': end, 'clusters.configure': end });
  assert.equal(await notices('bob'), undefined);
  service.advance(3 * day);
  assert.equal(await notices('bob'), undefined, 'less than half of its term is over');
  service.advance(2 * day);
  const [first, more] = await notices('bob');
  assert.match(first, /^Your .*clusters\.configure.* in Physics ends? at \S+ \S+ UTC\. Ask for more time/);
  assert.equal(more, undefined);
  await put([...both, 'clusters.configure'], { 'clusters.read': null, 'clusters.configure': null });
  assert.equal(await notices('bob'), undefined);
  assert.equal(await notices('ada'), undefined);
});
