/** Permissions that end by themselves: set, shown, extended, over at their time, and what they still take then. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '../../src/lib/log.ts';
import { announceEnds } from '../../src/service/compose/permission-ends.ts';
import { updateMemberPermissions } from '../../src/store/organizations/membership-changes.ts';
import { findOrganizationBySlug } from '../../src/store/organizations/organizations.ts';
import { alpha, becomes, beta, eventually, physics, startTestApp } from '../support/app.ts';
import { refused } from '../support/refused.ts';
import { everyKind, openTestStore, userId } from '../support/store.ts';
import { organizationOf, physicsOf } from './organization.ts';

const day = 86_400_000;
const both = ['clusters.read', 'clusters.ssh'];

const lab = physicsOf(
  { email: 'ada@physics.example', role: 'owner', username: 'ada' },
  {
    email: 'max@physics.example',
    role: 'member',
    username: 'max',
    permissions: ['members.manage', 'clusters.ssh'],
  },
  { email: 'bob@physics.example', role: 'member', username: 'bob' },
);

const heldBy = (one: { permissions: string[]; expires_at?: object }) => [one.permissions, one.expires_at];

/** By the clock of a service that nobody moved. */
const inFuture = (ms: number) => new Date(Date.now() + ms).toISOString();

test('an end is set, kept by a set without ends, moved, and taken away', async () => {
  await using service = await startTestApp({ lab });
  const { permit, held, ids, org } = await organizationOf(service);
  const end = inFuture(2 * day);
  const first = await permit('ada', 'bob', both, { 'clusters.ssh': end }, { key: 'once' });
  assert.equal(first.status, 200);
  assert.deepEqual(first.body.permissions, ['clusters.read', 'clusters.ssh']);
  assert.deepEqual(first.body.expires_at, { 'clusters.ssh': end });
  // The body of the contract says nothing of ends, and changes none.
  await permit('ada', 'bob', ['clusters.ssh', 'clusters.read', 'reservations.read']);
  assert.deepEqual(heldBy(await held('bob')), [
    ['clusters.read', 'clusters.ssh', 'reservations.read'],
    { 'clusters.ssh': end },
  ]);
  const list = await service.business(`/organizations/${org}/permissions`, { as: 'ada' });
  const row = list.body.members.find(({ user_id: one }: { user_id: string }) => one === ids['bob']);
  assert.deepEqual(row.expires_at, { 'clusters.ssh': end });

  const local = end.replace('Z', '+00:00');
  assert.equal((await permit('ada', 'bob', both, { 'clusters.ssh': local }, { key: 'once' })).status, 200);
  await permit('ada', 'bob', ['clusters.ssh'], { 'clusters.ssh': null });
  assert.deepEqual(heldBy(await held('bob')), [['clusters.ssh'], undefined]);
  for (const [ends, status] of [
    [{ 'clusters.ssh': inFuture(-1000) }, 400],
    [{ 'clusters.read': end }, 400],
    [{ 'clusters.ssh': 'tomorrow' }, 422],
    [{ 'clusters.ssh': '2030-02-30T00:00:00Z' }, 422],
    [['clusters.ssh'], 422],
  ] as const) {
    assert.equal((await permit('ada', 'bob', ['clusters.ssh'], ends)).status, status, JSON.stringify(ends));
  }
  assert.deepEqual(heldBy(await held('bob')), [['clusters.ssh'], undefined]);
  const far = { 'clusters.ssh': '9999-12-31T23:59:59Z' };
  assert.equal((await permit('ada', 'bob', ['clusters.ssh'], far)).status, 200);
});

test('a granter gives nothing for longer than they hold it, and may shorten all', async () => {
  await using service = await startTestApp({ lab });
  const { permit, held } = await organizationOf(service);
  const [soon, later] = [inFuture(day), inFuture(5 * day)];
  await permit('ada', 'bob', both, {
    'clusters.read': later,
    'clusters.ssh': soon,
  });
  assert.equal((await permit('max', 'bob', both, { 'clusters.ssh': later })).status, 200);
  const longer = await permit('max', 'bob', both, { 'clusters.read': inFuture(6 * day) });
  refused(longer, 403, 'forbidden', /cannot grant clusters\.read, which you do not hold/);
  assert.equal((await permit('max', 'bob', both, { 'clusters.read': soon })).status, 200);

  await permit('ada', 'max', ['members.manage', 'clusters.ssh'], { 'clusters.ssh': later });
  const own = await permit('max', 'max', ['members.manage', 'clusters.ssh'], { 'clusters.ssh': null });
  refused(own, 403, 'forbidden', /You hold clusters\.ssh until \S+ \S+ UTC yourself/);
  assert.equal((await permit('max', 'bob', ['clusters.ssh'], { 'clusters.ssh': null })).status, 403);
  assert.equal((await permit('max', 'bob', ['clusters.ssh'], { 'clusters.ssh': later })).status, 200);
  assert.deepEqual(heldBy(await held('bob')), [['clusters.ssh'], { 'clusters.ssh': later }]);
});

test('that a permission ended is announced then, though it was granted a moment before', async () => {
  await using store = await openTestStore(physics);
  const organization = await findOrganizationBySlug(store.read, 'physics');
  const heard: string[] = [];
  store.onChange(everyKind, (changes) => {
    for (const change of changes)
      if (change.kind === 'person' && !change.permissionEnd) heard.push(change.userId);
  });
  const log = createLogger('silent');
  const stop = announceEnds({ store, intervalMs: 3_600_000, log, now: Date.now });
  const permissions = [{ key: 'clusters.read', expiresAt: inFuture(300) }];
  const bob = await userId(store, 'bob@physics.example');
  const member = { organizationId: organization?.id ?? '', userId: bob, permissions };
  await store.write((tx) => updateMemberPermissions(tx, member));
  await becomes(() => heard.join(), `${bob},${bob}`);
  await stop();
});

test('at its time a permission is over for every decision, comes back with a clock set right, and is added anew', async () => {
  await using service = await startTestApp({ lab });
  const { org, permit, held } = await organizationOf(service);
  const keys = ['clusters.read', 'clusters.ssh', 'clusters.kubernetes'];
  const end = inFuture(10 * day);
  const ends = Object.fromEntries(keys.map((key) => [key, end]));
  await permit('ada', 'bob', keys, ends);
  const statuses = async () => {
    const replies = await Promise.all([
      service.platform(`/clusters/${alpha}/ssh-access?organizationId=${org}`, { as: 'bob' }),
      service.platform(`/clusters/${beta}/kubeconfig?organizationId=${org}`, { as: 'bob' }),
      service.platform(`/clusters/${alpha}?businessOrgId=${org}`, { as: 'bob' }),
      service.business(`/organizations/${org}/clusters/${alpha}`, { as: 'bob' }),
      service.business(`/resource-access?kind=kubernetes_cluster&id=${beta}&gate=kubernetes`, { as: 'bob' }),
    ]);
    // Before a login to Kubernetes is configured, the file is refused for that; it was not for the permission.
    return replies.map(({ status }) => (status === 503 ? 200 : status));
  };
  const listed = async () => {
    const { body } = await service.business(`/organizations/${org}/clusters/${alpha}/access`, { as: 'ada' });
    return body.users?.map(({ username }: { username: string }) => username);
  };
  const seen = async () => {
    const { body } = await service.business(`/organizations/${org}/permissions`, { as: 'ada' });
    return body.members.at(-1).permissions;
  };
  await eventually(statuses, (now) => now.every((status) => status === 200));
  const access = await service.platform(`/clusters/${alpha}/ssh-access?organizationId=${org}`, { as: 'bob' });
  assert.equal(access.body.access_expires_at, end);
  await eventually(listed, (users) => users?.includes('bob'));
  assert.equal((await seen()).length, 3);

  service.jump(11 * day);
  assert.deepEqual(await statuses(), [403, 403, 403, 403, 403]);
  assert.deepEqual(heldBy(await held('bob')), [[], undefined]);
  assert.deepEqual(await seen(), []);
  await eventually(listed, (users) => users && !users.includes('bob'));
  service.jump(-11 * day);
  assert.deepEqual((await held('bob')).expires_at, ends, 'a clock that was wrong took nothing away');
  await eventually(listed, (users) => users?.includes('bob'));

  service.advance(11 * day);
  assert.deepEqual(heldBy(await held('bob')), [[], undefined]);
  const added = await permit('max', 'bob', ['clusters.ssh']);
  assert.deepEqual([added.status, added.body.expires_at], [200, undefined]);
  assert.equal((await permit('max', 'bob', both)).status, 403, 'what has ended is added');
});

test('a member is added with ends, and a lab file leaves alone what ends by itself', async () => {
  await using service = await startTestApp({ lab });
  const { org, permit } = await organizationOf(service);
  const end = inFuture(day);
  const body = {
    email: 'cy@physics.example',
    permissions: ['clusters.read'],
    expires_at: { 'clusters.read': end },
  };
  const added = await service.write(`/organizations/${org}/members`, { as: 'ada', body });
  assert.equal(added.status, 201);
  const cy = async () =>
    (await service.business(`/organizations/${org}/members/${added.body.user_id}/permissions`, { as: 'ada' }))
      .body;
  assert.deepEqual((await cy()).expires_at, { 'clusters.read': end });
  const past = { ...body, email: 'di@physics.example', expires_at: { 'clusters.read': inFuture(-day) } };
  assert.equal((await service.write(`/organizations/${org}/members`, { as: 'ada', body: past })).status, 400);

  const { body: file } = await service.business('/operator/lab', { as: 'root' });
  const members = file.organizations[0].members;
  const member = members.find(({ email }: { email: string }) => email === 'cy@physics.example');
  assert.equal(member.permissions, undefined);
  member.permissions = ['reservations.read'];
  const applied = await service.write('/operator/lab', { as: 'root', body: { lab: file } });
  assert.equal(applied.status, 200, JSON.stringify(applied.body));
  const { permissions, expires_at: ends } = await cy();
  assert.deepEqual([permissions, ends], [['clusters.read', 'reservations.read'], { 'clusters.read': end }]);
  await permit('ada', 'bob', []);
});

test('a set from before an end does not bring the permission back; saying its end does', async () => {
  await using service = await startTestApp({ lab: { ...lab, clusters: [] } });
  const { org, ids, permit, held } = await organizationOf(service);
  const end = new Date(Date.now() + day).toISOString();
  assert.equal((await permit('ada', 'bob', both, { 'clusters.ssh': end }, { key: 'first' })).status, 200);
  service.advance(day + 3_600_000);
  for (const as of ['ada', 'root']) {
    const message = /^clusters\.ssh ended at \S+ \S+ UTC\. Say in expires_at .*null/;
    refused(await permit(as, 'bob', both), 409, 'invalid_state', message);
  }
  assert.deepEqual(heldBy(await held('bob')), [['clusters.read'], undefined]);
  const plan = await service.business(`/organizations/${org}/members/plan`, {
    as: 'ada',
    method: 'POST',
    body: { changes: [{ change: 'permissions', user_id: ids['bob'], permissions: both }] },
  });
  assert.deepEqual([plan.body.changes[0].result, plan.body.changes[0].code], ['refused', 'invalid_state']);
  const replay = await permit('ada', 'bob', both, { 'clusters.ssh': end }, { key: 'first' });
  assert.deepEqual([replay.status, replay.body.permissions], [200, both], 'a replay is what it was');
  // Keys that never had an end, and sets without the one that ended, are as ever.
  assert.equal((await permit('ada', 'bob', ['clusters.read', 'reservations.read'])).status, 200);
  assert.equal((await permit('ada', 'bob', both, { 'clusters.ssh': null })).status, 200);
  assert.deepEqual(heldBy(await held('bob')), [both, undefined]);
  assert.equal((await permit('ada', 'bob', both)).status, 200);
});

test('another term counts at once, and a day after its end a key is given like any other', async () => {
  await using service = await startTestApp({ lab: { ...lab, clusters: [] } });
  const { permit, held } = await organizationOf(service);
  const end = new Date(Date.now() + day).toISOString();
  await permit('ada', 'bob', both, { 'clusters.ssh': end });
  service.advance(day + 3_600_000);
  const later = new Date(Date.now() + 10 * day).toISOString();
  assert.equal((await permit('ada', 'bob', both, { 'clusters.ssh': later })).status, 200);
  assert.deepEqual(heldBy(await held('bob')), [both, { 'clusters.ssh': later }]);
  service.advance(11 * day);
  assert.equal((await permit('ada', 'bob', both)).status, 200);
  assert.deepEqual(heldBy(await held('bob')), [both, undefined]);
});

test('an end may have small letters, and a bad one is refused in one sentence', async () => {
  await using service = await startTestApp({ lab: { ...lab, clusters: [] } });
  const { permit, ask, decide } = await organizationOf(service);
  const { id } = (await ask('bob', { permissions: ['clusters.ssh'], hours: 24 })).body;
  for (const reply of [
    await permit('ada', 'bob', both, { 'clusters.ssh': 'tomorrow' }),
    await decide('ada', id, 'approve', { body: { expires_at: 'tomorrow' } }),
  ]) {
    refused(reply, 422, /must be a time such as 2030-01-31T00:00:00Z/);
    assert.doesNotMatch(reply.body.message, /oneOf|null|schema/);
  }
  const set = await permit('ada', 'bob', both, { 'clusters.ssh': '2999-01-31t00:00:00z' });
  assert.deepEqual(set.body.expires_at, { 'clusters.ssh': '2999-01-31T00:00:00.000Z' });
});

test('an approval as asked and one for good are two requests', async () => {
  await using service = await startTestApp({ lab: { ...lab, clusters: [] } });
  const { ask, decide } = await organizationOf(service);
  const { id } = (await ask('bob', { permissions: ['clusters.ssh'], hours: 24 })).body;
  const first = await decide('ada', id, 'approve', { body: {}, key: 'once' });
  const again = await decide('ada', id, 'approve', { body: {}, key: 'once' });
  assert.deepEqual([first.status, again.status, again.body], [200, 200, first.body]);
  refused(
    await decide('ada', id, 'approve', { body: { expires_at: null }, key: 'once' }),
    409,
    'idempotency_mismatch',
  );
});

test('with an organization what members asked for ends, and nothing more is asked', async () => {
  await using service = await startTestApp({ lab: { ...lab, clusters: [] } });
  const { org, ask, decide } = await organizationOf(service);
  const { id } = (await ask('bob', { permissions: ['clusters.ssh'] })).body;
  const { id: declined } = (await ask('bob', { permissions: ['clusters.kubernetes'] })).body;
  await decide('ada', declined, 'decline');
  assert.equal((await service.write(`/organizations/${org}/retire`, { as: 'ada' })).status, 200);
  refused(await ask('bob', { permissions: ['clusters.ssh'] }), 409, 'invalid_state', /retired/);
  for (const how of ['approve', 'decline'] as const) {
    refused(await decide('ada', id, how), 409, 'invalid_state');
  }
  const listed = async (path: string, as: string) =>
    (await service.business(path, { as })).body.requests.map((one: { id: string }) => one.id);
  assert.deepEqual(await listed(`/organizations/${org}/access-requests`, 'ada'), []);
  assert.deepEqual(await listed('/me/access-requests', 'bob'), [declined]);
});

test('before an end the person is warned, and not of what goes on by another key', async () => {
  await using service = await startTestApp({ lab: { ...lab, clusters: [] } });
  const { permit } = await organizationOf(service);
  const notices = async (as: string) => (await service.business('/me', { as })).body.notices;
  const end = new Date(Date.now() + 9 * day).toISOString();
  await permit('ada', 'bob', [...both, 'clusters.configure'], {
    'clusters.read': end,
    'clusters.configure': end,
  });
  assert.equal(await notices('bob'), undefined);
  service.advance(3 * day);
  assert.equal(await notices('bob'), undefined, 'less than half of its term is over');
  service.advance(2 * day);
  const [first, more] = await notices('bob');
  assert.match(first, /^Your .*clusters\.configure.* in Physics ends? at \S+ \S+ UTC\. Ask for more time/);
  assert.equal(more, undefined);
  await permit('ada', 'bob', [...both, 'clusters.configure'], {
    'clusters.read': null,
    'clusters.configure': null,
  });
  assert.equal(await notices('bob'), undefined);
  assert.equal(await notices('ada'), undefined);
});
