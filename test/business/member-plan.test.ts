import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listRestarts, listSlurmAccounts, planOfPerson } from '../../src/api/business/member-plan.ts';
import type { PermissionKey } from '../../src/domain/access/permission.ts';
import type { Lab } from '../../src/domain/clusters/lab.ts';
import type { LabMember } from '../../src/domain/clusters/lab-member.ts';
import type { SlurmSettings } from '../../src/domain/slurm/settings.ts';
import { recordSlurmReport } from '../../src/store/clusters/observations.ts';
import { createSshKey } from '../../src/store/people/ssh-keys.ts';
import { alpha, beta, eventually, physics, type Reply, startTestApp, type TestApp } from '../support/app.ts';
import { fieldsOf } from '../support/fields.ts';
import { refused } from '../support/refused.ts';
import { newPublicKey } from '../support/ssh-keys.ts';
import { openTestStore, slurmReport, userId } from '../support/store.ts';
import { organizationOf } from './organization.ts';

const [alphaCluster, betaCluster] = physics.clusters ?? [];
if (!alphaCluster?.simulated || !betaCluster) throw new Error('unreachable');
const member = (name: string, ...permissions: PermissionKey[]): LabMember => ({
  ...{ email: `${name}@physics.example`, role: 'member', username: name, permissions },
});
const guest = { user: 'guest@elsewhere.example', relation: 'kubernetes.developer' as const };
const lab: Lab = {
  ...physics,
  organizations: [
    {
      ...{ slug: 'physics', name: 'Physics' },
      members: [
        { email: 'ada@physics.example', role: 'owner', username: 'ada' },
        { email: 'amy@physics.example', role: 'admin', username: 'amy' },
        member('max', 'members.manage'),
        member('eve'),
        member('bob', 'clusters.ssh', 'clusters.kubernetes'),
      ],
    },
    { slug: 'other', name: 'Other', members: [{ email: 'oda@physics.example', role: 'owner' }] },
  ],
  clusters: [alphaCluster, betaCluster],
  grants: [{ ...guest, cluster: 'beta', namespace: 'ml', expiresAt: '2999-01-01T00:00:00Z' }],
};

const all = ['login', 'controller', 'accounting', 'compute'];
const run = (id: string, user: string) => ({ id, user, name: 'train', machines: ['node-1'] });

test('a plan of a key says whom it ends jobs for: the first, the last and no other one; others are counted', async () => {
  const runningJobs = [run('1', 'ada'), run('2', 'bob')];
  const simulated = { ...alphaCluster.simulated, runningJobs, requeue: true };
  await using service = await startTestApp({
    lab: { ...lab, clusters: [{ ...alphaCluster, simulated }, betaCluster] } as Lab,
  });
  const { plan, ids } = await open(service);
  const planOf = async (query = '') =>
    (await service.business(`/me/ssh-keys/plan${query}`, { as: 'bob' })).body;
  const register = async () => {
    const { body } = await service.write('/me/ssh-keys', { as: 'bob', body: { public_key: newPublicKey() } });
    return body.ssh_key.id as string;
  };
  const email = 'bob@physics.example';
  const first = await eventually(
    () => planOf(),
    ({ clusters }) => clusters[0]?.ended_jobs.length === 1,
  );
  assert.deepEqual(first.changes, [
    { change: 'register_key', email, user_id: ids['bob'], result: 'planned' },
  ]);
  const [effect] = first.clusters;
  assert.deepEqual([effect.added, effect.once_keyed, effect.restarts], [['bob'], undefined, all]);
  assert.deepEqual([effect.ended_jobs, effect.other_jobs], [[run('2', 'bob')], 1]);
  // An owner reads of one who has none that they get an account later, and nothing of restarts.
  const permissions = {
    change: 'permissions',
    user_id: ids['bob'],
    permissions: ['clusters.ssh.admin', 'clusters.kubernetes'],
  };
  assert.deepEqual((await plan('ada', permissions)).body.clusters, []);

  const key = await register();
  assert.deepEqual((await planOf()).clusters, [], 'a second key restarts nothing');
  const last = await eventually(
    () => planOf(`?revoke=${key}`),
    ({ clusters }) => clusters[0]?.ended_jobs.length === 1,
  );
  assert.deepEqual([last.clusters[0].removed, last.clusters[0].restarts], [['bob'], all]);
  assert.equal(last.clusters[0].other_jobs, 1);
  await register();
  assert.deepEqual((await planOf(`?revoke=${key}`)).clusters, [], 'not the last one');
  const strange = await planOf('?revoke=ssh_key_01J8Z3XK5T7Q2M4N6P8R0S1V3W');
  assert.deepEqual([strange.changes[0].result, strange.changes[0].code], ['refused', 'not_found']);
  const { keys } = (await service.business('/me/ssh-keys', { as: 'bob' })).body;
  assert.deepEqual(fieldsOf(keys, 'lifecycle_state'), ['active', 'active']);
});

async function open(service: TestApp) {
  const { base, ids, ...organization } = await organizationOf(service);
  const { grants } = (await service.business(`${base}/grants`, { as: 'ada' })).body;
  ids['guest'] = grants[0].grant.user_id;
  return {
    ...{ ...organization, base, ids },
    plan: (as: string, ...changes: object[]) =>
      service.business(`${base}/members/plan`, { as, method: 'POST', body: { changes } }),
    access: (as: string, ...names: string[]) => {
      const userIds = names.map((name) => ids[name] ?? name).join(',');
      return service.business(`${base}/access?user_ids=${userIds}`, { as });
    },
  };
}

const add = (name: string) => ({ change: 'add', email: `${name}@physics.example` });

test('a plan says what a change of members would do, changes nothing, and is refused to whom the write is', async () => {
  await using service = await startTestApp({ lab });
  const { ids, plan, ask } = await open(service);
  const bob = ids['bob'];
  const permissions = (permissions: string[]) => ({ change: 'permissions', user_id: bob, permissions });
  await service.write('/me/ssh-keys', { as: 'bob', body: { public_key: newPublicKey() } });
  const state = async () => [
    (await service.business('/operator/lab', { as: 'root' })).body,
    (await service.business('/operator/audit?limit=1000', { as: 'root' })).body.entries.filter(
      ({ operation }: { operation: string }) => !operation.startsWith('ssh.'),
    ).length,
  ];
  for (const as of ['amy', 'max']) await service.business('/me', { as });
  const before = await state();

  // Of a person who comes.
  const { status, body: comes } = await plan('ada', {
    ...{ change: 'add', email: 'Cy@physics.example' },
    permissions: ['clusters.ssh', 'clusters.kubernetes.admin'],
  });
  assert.equal(status, 200, JSON.stringify(comes));
  assert.deepEqual(comes.changes, [{ ...add('cy'), username: 'cy', result: 'planned' }]);
  const nothing = {
    ...{ added: [], removed: [], restarts: [], ended_jobs: [], ended_sessions: [] },
    ...{ waiting_for_key: [], kubernetes: [] },
  };
  const on = { cluster_id: alpha, cluster_name: 'alpha' };
  const admin = { username: 'cy', before: null, after: 'cluster-admin' };
  assert.deepEqual(comes.clusters, [
    { ...nothing, ...on, added: ['cy'], once_keyed: ['cy'], restarts: all },
    { ...nothing, cluster_id: beta, cluster_name: 'beta', kubernetes: [admin] },
  ]);

  // Of a person who goes, by each of the ways to take it.
  for (const change of [{ change: 'remove', user_id: bob }, permissions([])]) {
    const { body } = await plan('ada', change);
    const [onAlpha, onBeta] = body.clusters;
    assert.deepEqual([body.changes[0].result, onAlpha.removed], ['planned', ['bob']]);
    assert.deepEqual(onAlpha.restarts, all);
    assert.deepEqual(onBeta.kubernetes, [{ username: 'bob', before: 'edit', after: null }]);
  }
  const [onBeta, ...others] = (await plan('ada', { change: 'role', user_id: bob, role: 'admin' })).body
    .clusters;
  assert.deepEqual(onBeta.kubernetes, [{ username: 'bob', before: 'edit', after: 'cluster-admin' }]);
  assert.deepEqual([onBeta.cluster_id, others], [beta, []]);

  // Of several each says what became of it, and the others go without it.
  const several = await plan(
    'ada',
    ...[add('bob'), add('zoe'), { ...add('x'), username: 'root' }],
    ...[ids['ada'], 'user_nobody'].map((user_id) => ({ change: 'remove', user_id })),
  );
  assert.deepEqual(
    several.body.changes.map((one: Reply['body']) => [one.result, one.code, one.message?.slice(0, 30)]),
    [
      ['refused', 'invalid_state', 'bob@physics.example is a membe'],
      ['planned', undefined, undefined],
      ['refused', 'invalid_request', '"root" cannot be a username: 1'],
      ['refused', 'invalid_state', 'This is the last owner. Make s'],
      ['refused', 'not_found', 'The organization has no such m'],
    ],
  );
  assert.deepEqual(several.body.clusters, [], 'what was refused left nothing behind');

  // Who may not do it may not plan it.
  for (const [as, change] of [
    ['max', { change: 'remove', user_id: bob }],
    ['amy', { change: 'role', user_id: bob, role: 'owner' }],
    ['max', permissions(['clusters.ssh.admin'])],
  ] as const) {
    refused(await plan(as, change), 403, 'forbidden');
  }
  assert.equal((await plan('max', permissions([]))).status, 200);
  assert.equal((await plan('ada', { change: 'vanish', user_id: bob })).status, 422);
  assert.deepEqual(await state(), before);

  // Of a request, as approving it would.
  const asked = await ask('eve', { permissions: ['clusters.ssh'], hours: 48 });
  const approve = { change: 'approve', request_id: asked.body.id };
  const { body: approved } = await plan('ada', approve);
  assert.equal(approved.changes[0].result, 'planned', JSON.stringify(approved));
  const [forEve] = approved.clusters;
  assert.deepEqual([forEve.waiting_for_key, forEve.added, forEve.restarts], [['eve'], [], []]);
  const passed = { ...approve, expires_at: '2001-01-01T00:00:00Z' };
  assert.equal((await plan('ada', passed)).body.changes[0].code, 'invalid_request');
  assert.equal((await plan('eve', approve)).status, 403);
  const [still] = (await service.business('/me/access-requests', { as: 'eve' })).body.requests;
  assert.equal(still.state, 'open');

  // Who plans too often waits.
  const replies = await Promise.all(Array.from({ length: 60 }, () => plan('amy', add('x'))));
  const late = replies.filter((reply) => reply.status === 429);
  assert.ok(late.length > 0);
  for (const { body, headers } of late) {
    assert.deepEqual([body.retryable, headers.get('retry-after')], [true, '1']);
  }
  assert.equal((await plan('ada', add('x'))).status, 200);
});

test('a plan says the same of strangers, people of others and deactivated ones, with an SSH key and without', async () => {
  await using service = await startTestApp({ lab });
  const { ids, plan } = await open(service);
  const gus = { email: 'gus@physics.example', name: 'Gus' };
  const { body: made } = await service.write('/operator/people', { as: 'root', body: gus });
  const off = await service.write(`/operator/people/${made.id}/deactivate`, { as: 'root' });
  assert.equal(off.status, 200, JSON.stringify(off.body));
  const names = ['oda', 'gus', 'ned'];
  // Each is named twice: planning the first change must not make a member, which the second would meet.
  const { changes } = (await plan('ada', ...names.map(add), ...names.map(add))).body;
  assert.deepEqual(
    changes.slice(0, 3),
    names.map((name) => ({ ...add(name), username: name, result: 'planned' })),
  );
  for (const one of changes.slice(3)) {
    assert.deepEqual([one.result, one.code, 'user_id' in one], ['refused', 'invalid_state', false]);
    assert.doesNotMatch(one.message, /deactivated/);
  }
  const known = await plan('ada', add('bob'));
  assert.equal(known.body.changes[0].user_id, ids['bob']);

  const planOf = async (name: string) => {
    const { body } = await plan('ada', { ...add(name), permissions: ['clusters.ssh'] });
    return JSON.stringify(body).replaceAll(name, 'NAME');
  };
  const none = await planOf('oda');
  assert.match(none, /"added":\["NAME"\]/);
  const key = await service.write('/me/ssh-keys', { as: 'oda', body: { public_key: newPublicKey() } });
  assert.equal(key.status, 201);
  assert.equal(await planOf('oda'), none);
  assert.equal(await planOf('nan'), none, 'who has no account');
});

test('what people reach, by which way, until when, and how far a change has come', async () => {
  await using service = await startTestApp({ lab });
  const { base, ids, access, permit, remove } = await open(service);
  await service.write('/me/ssh-keys', { as: 'bob', body: { public_key: newPublicKey() } });
  const settled = await eventually(
    () => access('ada', 'bob', 'guest', 'ada', 'user_nobody'),
    ({ body }) =>
      body.people?.[0].clusters[0].slurm.state === 'applied' &&
      body.people[0].clusters[1].kubernetes.state === 'applied' &&
      body.people[1].clusters[1].kubernetes.state === 'applied',
  );
  const [person, guest, owner, ...more] = settled.body.people;
  assert.deepEqual(more, []);
  assert.deepEqual(
    [person.is_member, person.username, person.username_state, person.keys.length],
    [true, 'bob', 'frozen', 1],
  );
  const ways = (one: Reply['body']) =>
    one.clusters.map((on: Reply['body']) =>
      on.ways.map((way: Reply['body']) => `${way.opens} by ${way.by} ${way.name}`),
    );
  assert.deepEqual(ways(person), [
    ['ssh by permission clusters.ssh'],
    ['kubernetes by permission clusters.kubernetes'],
  ]);
  assert.deepEqual(ways(guest), [[], ['kubernetes by grant kubernetes.developer']]);
  const [way] = guest.clusters[1].ways;
  assert.deepEqual(
    [guest.is_member, guest.role, way.scope, way.until],
    [false, undefined, 'ml', '2999-01-01T00:00:00.000Z'],
  );
  assert.deepEqual(ways(owner), [
    ['see by role owner', 'ssh.admin by role owner'],
    ['see by role owner', 'kubernetes.admin by role owner'],
  ]);
  assert.equal((await access('bob', 'ada')).status, 403, 'of others nothing');

  // Without clusters.read and members.manage: only where they reach something themselves.
  const seen = async (as: string) => {
    const { people, clusters } = (await access(as, as)).body;
    assert.equal(people[0].clusters.length, clusters.length);
    const path = `${base}/members/${ids[as]}/kubernetes-access`;
    const { body } = await service.business(path, { as });
    return [fieldsOf(clusters, 'cluster_name'), fieldsOf(body.clusters, 'cluster_name')];
  };
  for (const [permissions, expected] of [
    [[], [[], []]],
    [['clusters.ssh'], [['alpha'], []]],
    [['clusters.kubernetes'], [['beta'], ['beta']]],
    [['clusters.read'], [['alpha', 'beta'], ['beta']]],
  ] as [string[], string[][]][]) {
    assert.equal((await permit('ada', 'bob', permissions)).status, 200);
    assert.deepEqual(await seen('bob'), expected, permissions.join());
  }
  assert.deepEqual(await seen('max'), [['alpha', 'beta'], ['beta']]);

  assert.equal((await remove('bob')).status, 200);
  const gone = await eventually(
    () => access('ada', 'bob'),
    ({ body }) =>
      body.people[0].clusters[0].slurm.state === 'applied' &&
      body.people[0].clusters[1].kubernetes.state === 'none',
  );
  const [past] = gone.body.people;
  assert.deepEqual([past.is_member, past.role, past.clusters[0].slurm.account], [false, undefined, 'none']);
});

test('while a cluster does not say which jobs run, a plan says that any may end', async () => {
  await using store = await openTestStore(lab);
  const { runningJobs: _, ...silent } = slurmReport({ controlPlaneReady: false });
  const planWith = async (runningJobs?: ReturnType<typeof run>[]) => {
    await recordSlurmReport(store, alpha, { ...silent, ...(runningJobs && { runningJobs }) });
    return store.write(async (tx) => {
      const now = (await listSlurmAccounts(tx)).filter(({ id }) => id === alpha);
      const before = now.map((one) => ({
        ...one,
        accounts: [...one.accounts, { username: 'zed', loginState: 'ready' as const }],
      }));
      const [restart] = await listRestarts(tx, before);
      return restart && [restart.ended_jobs.length, restart.unknown_jobs];
    });
  };
  assert.deepEqual(await planWith([run('1', 'ada')]), [1, undefined]);
  assert.deepEqual(await planWith(), [0, true]);
});

test('a first key of one whose account is there already restarts nothing', async () => {
  const hostKey = 'ssh-ed25519 AAAA';
  const slurm: SlurmSettings = {
    ...{ adopt: true, manage: { identityFile: '/etc/andromeda/manage' } },
    login: [{ name: 'login1', host: '10.0.0.5', hostKey }],
    controller: { host: '10.0.0.5', hostKey },
  };
  const [ada] = lab.organizations?.[0]?.members ?? [];
  assert.ok(ada);
  await using store = await openTestStore({
    organizations: [
      {
        ...{ slug: 'physics', name: 'Physics' },
        members: [ada, { ...member('bob', 'clusters.ssh'), uid: 1003 }, member('eve', 'clusters.ssh')],
      },
    ],
    clusters: [{ name: 'alpha', id: alpha, organization: 'physics', scheduler: 'sunk', slurm }],
  });
  const plan = async (name: string) => {
    const id = await userId(store, `${name}@physics.example`);
    const key = { type: 'ssh-ed25519', material: newPublicKey(), fingerprint: newPublicKey() } as const;
    const registration = { userId: id, key, commandId: '' };
    const { clusters } = await store.write((tx) =>
      planOfPerson(tx, { userId: id, sessions: [] }, () => createSshKey(tx, registration)),
    );
    return clusters.map(({ added, restarts }) => [added, restarts]);
  };
  assert.deepEqual(await plan('eve'), [[['eve'], all]]);
  assert.deepEqual(await plan('bob'), []);
});
