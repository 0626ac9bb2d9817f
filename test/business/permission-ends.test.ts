/** Permissions that end by themselves: set, shown, extended, and over at their time. */
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

const lab: Lab = {
  users: [{ email: 'root@physics.example', staff: ['staff.operate'] }],
  organizations: [
    {
      slug: 'physics',
      name: 'Physics',
      members: [
        { email: 'ada@physics.example', role: 'owner', username: 'ada' },
        {
          email: 'max@physics.example',
          role: 'member',
          username: 'max',
          permissions: ['members.manage', 'clusters.ssh'],
        },
        { email: 'bob@physics.example', role: 'member', username: 'bob' },
      ],
    },
  ],
  clusters: [
    {
      name: 'alpha',
      id: alpha,
      organization: 'physics',
      scheduler: 'sunk',
      simulated: { computeNodes: 1, gpusPerNode: 1, applyMs: 20 },
    },
    {
      name: 'beta',
      id: beta,
      organization: 'physics',
      scheduler: 'kubernetes',
      simulated: { computeNodes: 1, gpusPerNode: 1, applyMs: 20 },
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
  return { org, id, put, held };
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
  const shown = await service.business(`/organizations/${org}/permissions`, { as: 'root' });
  assert.deepEqual(shown.body, list.body, 'staff see the same');

  const local = end.replace('Z', '+00:00');
  assert.equal(
    (await put('ada', 'bob', ['clusters.ssh', 'clusters.read'], { 'clusters.ssh': local }, 'once')).status,
    200,
  );
  const other = await put(
    'ada',
    'bob',
    ['clusters.ssh', 'clusters.read'],
    { 'clusters.ssh': inFuture(day) },
    'once',
  );
  assert.deepEqual([other.status, other.body.code], [409, 'idempotency_mismatch']);

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
