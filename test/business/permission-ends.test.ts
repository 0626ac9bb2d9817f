/** Permissions that end by themselves: set, shown, extended, over at their time, and what they still take then. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Lab } from '../../src/domain/clusters/lab.ts';
import { createLogger } from '../../src/lib/log.ts';
import { announceEnds } from '../../src/service/compose/permission-ends.ts';
import type { Store } from '../../src/store/engine/index.ts';
import { updateMemberPermissions } from '../../src/store/organizations/membership-changes.ts';
import { findOrganizationBySlug } from '../../src/store/organizations/organizations.ts';
import { alpha, beta, eventually, physics, startTestApp, type TestApp } from '../support/app.ts';
import { everyKind, openTestStore, userId } from '../support/store.ts';

const day = 86_400_000;

const max = { email: 'max@physics.example', role: 'member' as const, username: 'max' };
const lab: Lab = {
  ...physics,
  organizations: [
    {
      ...{ slug: 'physics', name: 'Physics' },
      members: [
        { email: 'ada@physics.example', role: 'owner', username: 'ada' },
        { ...max, permissions: ['members.manage', 'clusters.ssh'] },
        { email: 'bob@physics.example', role: 'member', username: 'bob' },
      ],
    },
  ],
};

async function helpers(service: TestApp) {
  const org: string = (await service.business('/me', { as: 'ada' })).body.default_org_id;
  const { members } = (await service.business(`/organizations/${org}/members`, { as: 'ada' })).body;
  const id = (name: string): string =>
    members.find(({ email }: { email: string }) => email === `${name}@physics.example`).user_id;
  const path = (name: string) => `/organizations/${org}/members/${id(name)}/permissions`;
  const put = (as: string, name: string, permissions: string[], ends?: object, key?: string) =>
    service.write(path(name), {
      as,
      method: 'PUT',
      body: { permissions, ...(ends && { expires_at: ends }) },
      ...(key && { key }),
    });
  const held = async (name: string) => {
    const { body } = await service.business(path(name), { as: 'ada' });
    return [body.permissions, body.expires_at];
  };
  const ask = (body: object) => service.write(`/organizations/${org}/access-requests`, { as: 'bob', body });
  const decide = (id: string, how: 'approve' | 'decline', body?: object, key?: string) =>
    service.write(`/organizations/${org}/access-requests/${id}/${how}`, {
      as: 'ada',
      ...(body && { body }),
      ...(key && { key }),
    });
  return { org, id, put, held, ask, decide };
}

/** By the clock of a service that nobody moved. */
const inFuture = (ms: number) => new Date(Date.now() + ms).toISOString();

test('an end is set, kept by a set without ends, moved, and taken away', async () => {
  await using service = await startTestApp({ lab });
  const { put, held, id, org } = await helpers(service);
  const end = inFuture(2 * day);
  const first = await put('ada', 'bob', ['clusters.ssh', 'clusters.read'], { 'clusters.ssh': end }, 'once');
  assert.equal(first.status, 200);
  assert.deepEqual(first.body.permissions, ['clusters.read', 'clusters.ssh']);
  assert.deepEqual(first.body.expires_at, { 'clusters.ssh': end });
  // The body of the contract says nothing of ends, and changes none.
  await put('ada', 'bob', ['clusters.ssh', 'clusters.read', 'reservations.read']);
  assert.deepEqual(await held('bob'), [
    ['clusters.read', 'clusters.ssh', 'reservations.read'],
    { 'clusters.ssh': end },
  ]);
  const list = await service.business(`/organizations/${org}/permissions`, { as: 'ada' });
  const row = list.body.members.find(({ user_id: one }: { user_id: string }) => one === id('bob'));
  assert.deepEqual(row.expires_at, { 'clusters.ssh': end });

  const local = end.replace('Z', '+00:00');
  assert.equal(
    (await put('ada', 'bob', ['clusters.ssh', 'clusters.read'], { 'clusters.ssh': local }, 'once')).status,
    200,
  );
  await put('ada', 'bob', ['clusters.ssh'], { 'clusters.ssh': null });
  assert.deepEqual(await held('bob'), [['clusters.ssh'], undefined]);
  for (const [ends, status] of [
    [{ 'clusters.ssh': inFuture(-1000) }, 400],
    [{ 'clusters.read': end }, 400],
    [{ 'clusters.ssh': 'tomorrow' }, 422],
    [{ 'clusters.ssh': '2030-02-30T00:00:00Z' }, 422],
    [['clusters.ssh'], 422],
  ] as const) {
    assert.equal((await put('ada', 'bob', ['clusters.ssh'], ends)).status, status, JSON.stringify(ends));
  }
  assert.deepEqual(await held('bob'), [['clusters.ssh'], undefined]);
  assert.equal(
    (await put('ada', 'bob', ['clusters.ssh'], { 'clusters.ssh': '9999-12-31T23:59:59Z' })).status,
    200,
  );
});

test('a granter gives nothing for longer than they hold it, and may shorten all', async () => {
  await using service = await startTestApp({ lab });
  const { put, held } = await helpers(service);
  const [soon, later] = [inFuture(day), inFuture(5 * day)];
  await put('ada', 'bob', ['clusters.read', 'clusters.ssh'], {
    'clusters.read': later,
    'clusters.ssh': soon,
  });
  assert.equal(
    (await put('max', 'bob', ['clusters.read', 'clusters.ssh'], { 'clusters.ssh': later })).status,
    200,
  );
  const longer = await put('max', 'bob', ['clusters.read', 'clusters.ssh'], {
    'clusters.read': inFuture(6 * day),
  });
  assert.deepEqual([longer.status, longer.body.code], [403, 'forbidden']);
  assert.match(longer.body.message, /cannot grant clusters\.read, which you do not hold/);
  assert.equal(
    (await put('max', 'bob', ['clusters.read', 'clusters.ssh'], { 'clusters.read': soon })).status,
    200,
  );

  await put('ada', 'max', ['members.manage', 'clusters.ssh'], { 'clusters.ssh': later });
  const own = await put('max', 'max', ['members.manage', 'clusters.ssh'], { 'clusters.ssh': null });
  assert.deepEqual([own.status, own.body.code], [403, 'forbidden']);
  assert.match(own.body.message, /You hold clusters\.ssh until \S+ \S+ UTC yourself/);
  assert.equal((await put('max', 'bob', ['clusters.ssh'], { 'clusters.ssh': null })).status, 403);
  assert.equal((await put('max', 'bob', ['clusters.ssh'], { 'clusters.ssh': later })).status, 200);
  assert.deepEqual(await held('bob'), [['clusters.ssh'], { 'clusters.ssh': later }]);
});

test('only a grant that ends has it looked at when the next permission ends', async () => {
  await using opened = await openTestStore(physics);
  const { store } = opened;
  const organization = await findOrganizationBySlug(store.read, 'physics');
  const bob = await userId(store, 'bob@physics.example');
  let asked = 0;
  const counting: Store = Object.defineProperty({ ...store }, 'read', {
    get() {
      asked += 1;
      return store.read;
    },
  });
  const heard: string[] = [];
  store.onChange(everyKind, (changes) => {
    for (const change of changes)
      if (change.kind === 'person' && !change.permissionEnd) heard.push(change.userId);
  });
  const log = createLogger('silent');
  const stop = announceEnds({ store: counting, intervalMs: 3_600_000, log, now: Date.now });
  try {
    await eventually(
      async () => asked,
      (times) => times === 2,
    );
    await store.write(async (tx) => tx.changed({ kind: 'person', userId: bob }));
    assert.equal(asked, 2);
    const expiresAt = new Date(Date.now() + 300).toISOString();
    const permissions = [{ key: 'clusters.read', expiresAt }];
    const member = { organizationId: organization?.id ?? '', userId: bob, permissions };
    await store.write((tx) => updateMemberPermissions(tx, member));
    // By the commit, and by the grant; then by its end.
    await eventually(
      async () => heard.length,
      (times) => times === 3,
    );
    // Two reads each for the grant and its end; two for both where they are looked at late, two more where a timer is early.
    await eventually(
      async () => asked,
      (times) => times >= 4,
    );
    assert.ok(asked <= 8);
  } finally {
    stop();
  }
});

test('at its time a permission is over for every decision, comes back with a clock set right, and is added anew', async () => {
  await using service = await startTestApp({ lab });
  const { org, put, held } = await helpers(service);
  const keys = ['clusters.read', 'clusters.ssh', 'clusters.kubernetes'];
  const end = inFuture(10 * day);
  const ends = Object.fromEntries(keys.map((key) => [key, end]));
  await put('ada', 'bob', keys, ends);
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
  assert.deepEqual(await held('bob'), [[], undefined]);
  assert.deepEqual(await seen(), []);
  await eventually(listed, (users) => users && !users.includes('bob'));
  service.jump(-11 * day);
  assert.deepEqual((await held('bob'))[1], ends, 'a clock that was wrong took nothing away');
  await eventually(listed, (users) => users?.includes('bob'));

  service.advance(11 * day);
  assert.deepEqual(await held('bob'), [[], undefined]);
  const added = await put('max', 'bob', ['clusters.ssh']);
  assert.deepEqual([added.status, added.body.expires_at], [200, undefined]);
  assert.equal(
    (await put('max', 'bob', ['clusters.ssh', 'clusters.read'])).status,
    403,
    'what has ended is added',
  );
});

test('a member is added with ends, and a lab file leaves alone what ends by itself', async () => {
  await using service = await startTestApp({ lab });
  const { org, put } = await helpers(service);
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
  await put('ada', 'bob', []);
});

const both = ['clusters.read', 'clusters.ssh'];

test('a set from before an end does not bring the permission back; saying its end does', async () => {
  await using service = await startTestApp({ lab: { ...lab, clusters: [] } });
  const { org, id, put, held } = await helpers(service);
  const end = new Date(Date.now() + day).toISOString();
  assert.equal((await put('ada', 'bob', both, { 'clusters.ssh': end }, 'first')).status, 200);
  service.advance(day + 3_600_000);
  for (const as of ['ada', 'root']) {
    const { status, body } = await put(as, 'bob', both);
    assert.deepEqual([status, body.code], [409, 'invalid_state'], as);
    assert.match(body.message, /^clusters\.ssh ended at \S+ \S+ UTC\. Say in expires_at .*null/);
  }
  assert.deepEqual(await held('bob'), [['clusters.read'], undefined]);
  const plan = await service.business(`/organizations/${org}/members/plan`, {
    as: 'ada',
    method: 'POST',
    body: { changes: [{ change: 'permissions', user_id: id('bob'), permissions: both }] },
  });
  assert.deepEqual([plan.body.changes[0].result, plan.body.changes[0].code], ['refused', 'invalid_state']);
  const replay = await put('ada', 'bob', both, { 'clusters.ssh': end }, 'first');
  assert.deepEqual([replay.status, replay.body.permissions], [200, both], 'a replay is what it was');
  // Keys that never had an end, and sets without the one that ended, are as ever.
  assert.equal((await put('ada', 'bob', ['clusters.read', 'reservations.read'])).status, 200);
  assert.equal((await put('ada', 'bob', both, { 'clusters.ssh': null })).status, 200);
  assert.deepEqual(await held('bob'), [both, undefined]);
  assert.equal((await put('ada', 'bob', both)).status, 200);
});

test('another term counts at once, and a day after its end a key is given like any other', async () => {
  await using service = await startTestApp({ lab: { ...lab, clusters: [] } });
  const { put, held } = await helpers(service);
  const end = new Date(Date.now() + day).toISOString();
  await put('ada', 'bob', both, { 'clusters.ssh': end });
  service.advance(day + 3_600_000);
  const later = new Date(Date.now() + 10 * day).toISOString();
  assert.equal((await put('ada', 'bob', both, { 'clusters.ssh': later })).status, 200);
  assert.deepEqual(await held('bob'), [both, { 'clusters.ssh': later }]);
  service.advance(11 * day);
  assert.equal((await put('ada', 'bob', both)).status, 200);
  assert.deepEqual(await held('bob'), [both, undefined]);
});

test('an end may have small letters, and a bad one is refused in one sentence', async () => {
  await using service = await startTestApp({ lab: { ...lab, clusters: [] } });
  const { put, ask, decide } = await helpers(service);
  const { id } = (await ask({ permissions: ['clusters.ssh'], hours: 24 })).body;
  for (const refused of [
    await put('ada', 'bob', both, { 'clusters.ssh': 'tomorrow' }),
    await decide(id, 'approve', { expires_at: 'tomorrow' }),
  ]) {
    assert.equal(refused.status, 422);
    assert.match(refused.body.message, /must be a time such as 2030-01-31T00:00:00Z/);
    assert.doesNotMatch(refused.body.message, /oneOf|null|schema/);
  }
  const set = await put('ada', 'bob', both, { 'clusters.ssh': '2999-01-31t00:00:00z' });
  assert.deepEqual(set.body.expires_at, { 'clusters.ssh': '2999-01-31T00:00:00.000Z' });
});

test('an approval as asked and one for good are two requests', async () => {
  await using service = await startTestApp({ lab: { ...lab, clusters: [] } });
  const { ask, decide } = await helpers(service);
  const { id } = (await ask({ permissions: ['clusters.ssh'], hours: 24 })).body;
  const first = await decide(id, 'approve', {}, 'once');
  const again = await decide(id, 'approve', {}, 'once');
  assert.deepEqual([first.status, again.status, again.body], [200, 200, first.body]);
  const other = await decide(id, 'approve', { expires_at: null }, 'once');
  assert.deepEqual([other.status, other.body.code], [409, 'idempotency_mismatch']);
});

test('with an organization what members asked for ends, and nothing more is asked', async () => {
  await using service = await startTestApp({ lab: { ...lab, clusters: [] } });
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
  await using service = await startTestApp({ lab: { ...lab, clusters: [] } });
  const { put } = await helpers(service);
  const notices = async (as: string) => (await service.business('/me', { as })).body.notices;
  const end = new Date(Date.now() + 9 * day).toISOString();
  await put('ada', 'bob', [...both, 'clusters.configure'], {
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
  await put('ada', 'bob', [...both, 'clusters.configure'], {
    'clusters.read': null,
    'clusters.configure': null,
  });
  assert.equal(await notices('bob'), undefined);
  assert.equal(await notices('ada'), undefined);
});
