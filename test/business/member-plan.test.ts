import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listRestarts, listSlurmAccounts } from '../../src/api/business/member-plan.ts';
import type { PermissionKey } from '../../src/domain/access/permission.ts';
import type { Lab, LabMember } from '../../src/domain/clusters/lab.ts';
import { recordSlurmReport } from '../../src/store/clusters/observations.ts';
import { alpha, beta, eventually, physics, type Reply, startTestApp, type TestApp } from '../support/app.ts';
import { newPublicKey } from '../support/ssh-keys.ts';
import { openTestStore } from '../support/store.ts';

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
    { change: 'register_key', email, user_id: ids.get('bob'), result: 'planned' },
  ]);
  const [effect] = first.clusters;
  assert.deepEqual([effect.added, effect.once_keyed, effect.restarts], [['bob'], undefined, all]);
  assert.deepEqual([effect.ended_jobs, effect.other_jobs], [[run('2', 'bob')], 1]);
  // An owner reads of one who has none that they get an account later, and nothing of restarts.
  const permissions = {
    change: 'permissions',
    user_id: ids.get('bob'),
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
  assert.deepEqual(
    keys.map((one: Reply['body']) => one.lifecycle_state),
    ['active', 'active'],
  );
});

async function open(service: TestApp) {
  const org: string = (await service.business('/me', { as: 'ada' })).body.default_org_id;
  const { body } = await service.business(`/organizations/${org}/members`, { as: 'ada' });
  const ids = new Map<string, string>(
    body.members.map((one: Reply['body']) => [one.email.split('@')[0], one.user_id]),
  );
  const grants = await service.business(`/organizations/${org}/grants`, { as: 'ada' });
  ids.set('guest', grants.body.grants[0].grant.user_id);
  return {
    ...{ org, ids },
    plan: (as: string, ...changes: object[]) =>
      service.business(`/organizations/${org}/members/plan`, { as, method: 'POST', body: { changes } }),
    access: (as: string, ...names: string[]) => {
      const userIds = names.map((name) => ids.get(name) ?? name).join(',');
      return service.business(`/organizations/${org}/access?user_ids=${userIds}`, { as });
    },
  };
}

test('a plan says what a change of members would do, changes nothing, and is refused to whom the write is', async (t) => {
  await using service = await startTestApp({ lab });
  const { org, ids, plan, access } = await open(service);
  const bob = ids.get('bob') ?? '';
  await service.write('/me/ssh-keys', { as: 'bob', body: { public_key: newPublicKey() } });
  const state = async () => [
    (await service.business('/operator/lab', { as: 'root' })).body,
    (await service.business('/operator/audit?limit=1000', { as: 'root' })).body.entries.filter(
      ({ operation }: { operation: string }) => !operation.startsWith('ssh.'),
    ).length,
  ];

  await t.test('of a person who comes', async () => {
    const before = await state();
    const { status, body } = await plan('ada', {
      change: 'add',
      email: 'Cy@physics.example',
      permissions: ['clusters.ssh', 'clusters.kubernetes.admin'],
    });
    assert.equal(status, 200, JSON.stringify(body));
    assert.deepEqual(body.changes, [
      { change: 'add', email: 'cy@physics.example', username: 'cy', result: 'planned' },
    ]);
    const nothing = {
      ...{ added: [], removed: [], restarts: [], ended_jobs: [], ended_sessions: [] },
      ...{ waiting_for_key: [], kubernetes: [] },
    };
    const on = { cluster_id: alpha, cluster_name: 'alpha' };
    const admin = { username: 'cy', before: null, after: 'cluster-admin' };
    assert.deepEqual(body.clusters, [
      { ...nothing, ...on, added: ['cy'], once_keyed: ['cy'], restarts: all },
      { ...nothing, cluster_id: beta, cluster_name: 'beta', kubernetes: [admin] },
    ]);
    assert.deepEqual(await state(), before);
  });

  await t.test('it says the same of strangers, people of others and deactivated ones', async () => {
    const { body: gus } = await service.write('/operator/people', {
      as: 'root',
      body: { email: 'gus@physics.example', name: 'Gus' },
    });
    const off = await service.write(`/operator/people/${gus.id}/deactivate`, { as: 'root' });
    assert.equal(off.status, 200, JSON.stringify(off.body));
    const names = ['oda', 'gus', 'ned'];
    // Each is named twice: planning the first change must not make a member, which the second would meet.
    const adds = names.map((name) => ({ change: 'add', email: `${name}@physics.example` }));
    const { body } = await plan('ada', ...adds, ...adds);
    const planned = ({ email, username, result }: Reply['body']) => [email.split('@')[0], username, result];
    assert.deepEqual(
      body.changes.slice(0, 3).map(planned),
      names.map((name) => [name, name, 'planned']),
    );
    assert.ok(body.changes.every((one: object) => !('user_id' in one)));
    for (const one of body.changes.slice(3)) {
      assert.deepEqual([one.result, one.code], ['refused', 'invalid_state']);
      assert.doesNotMatch(one.message, /deactivated/);
    }
    const { body: known } = await plan('ada', { change: 'add', email: 'bob@physics.example' });
    assert.equal(known.changes[0].user_id, bob);
  });

  await t.test('it says the same with an SSH key and without, until they are members', async () => {
    const planOf = async (name: string) => {
      const add = { change: 'add', email: `${name}@physics.example`, permissions: ['clusters.ssh'] };
      const { body } = await plan('ada', add);
      return JSON.stringify(body).replaceAll(name, 'NAME');
    };
    const none = await planOf('oda');
    assert.match(none, /"added":\["NAME"\]/);
    const key = await service.write('/me/ssh-keys', { as: 'oda', body: { public_key: newPublicKey() } });
    assert.equal(key.status, 201);
    assert.equal(await planOf('oda'), none);
    assert.equal(await planOf('nan'), none, 'who has no account');
  });

  await t.test('of a person who goes, by each of the ways to take it', async () => {
    const before = await state();
    for (const change of [
      { change: 'remove', user_id: bob },
      { change: 'permissions', user_id: bob, permissions: [] },
    ]) {
      const { body } = await plan('ada', change);
      assert.equal(body.changes[0].result, 'planned', JSON.stringify(body));
      const [onAlpha, onBeta] = body.clusters;
      assert.deepEqual(onAlpha.removed, ['bob']);
      assert.deepEqual(onAlpha.restarts, all);
      assert.deepEqual(onBeta.kubernetes, [{ username: 'bob', before: 'edit', after: null }]);
    }
    const { body } = await plan('ada', { change: 'role', user_id: bob, role: 'admin' });
    const [onBeta, ...others] = body.clusters;
    assert.deepEqual(onBeta.kubernetes, [{ username: 'bob', before: 'edit', after: 'cluster-admin' }]);
    assert.deepEqual([onBeta.cluster_id, others], [beta, []]);
    assert.deepEqual(await state(), before);
  });

  await t.test('of several each says what became of it, and the others go without it', async () => {
    const add = (name: string) => ({ change: 'add', email: `${name}@physics.example` });
    const { body } = await plan(
      'ada',
      add('bob'),
      add('zoe'),
      { change: 'add', email: 'x@physics.example', username: 'root' },
      { change: 'remove', user_id: ids.get('ada') },
      { change: 'remove', user_id: 'user_nobody' },
    );
    assert.deepEqual(
      body.changes.map((one: Reply['body']) => [one.result, one.code, one.message?.slice(0, 30)]),
      [
        ['refused', 'invalid_state', 'bob@physics.example is a membe'],
        ['planned', undefined, undefined],
        ['refused', 'invalid_request', '"root" cannot be a username: 1'],
        ['refused', 'invalid_state', 'This is the last owner. Make s'],
        ['refused', 'not_found', 'The organization has no such m'],
      ],
    );
    assert.deepEqual(body.clusters, [], 'what was refused left nothing behind');
  });

  await t.test('a person who may not do it may not plan it', async () => {
    for (const [as, change] of [
      ['max', { change: 'remove', user_id: bob }],
      ['amy', { change: 'role', user_id: bob, role: 'owner' }],
      ['max', { change: 'permissions', user_id: bob, permissions: ['clusters.ssh.admin'] }],
    ] as const) {
      const { status, body } = await plan(as, change);
      assert.deepEqual([status, body.code], [403, 'forbidden']);
    }
    const allowed = await plan('max', { change: 'permissions', user_id: bob, permissions: [] });
    assert.equal(allowed.status, 200);
    assert.equal((await plan('ada', { change: 'vanish', user_id: bob })).status, 422);
  });

  await t.test('what people reach, by which way, until when, and how far a change has come', async () => {
    const settled = await eventually(
      () => access('ada', 'bob', 'guest', 'ada', 'user_nobody'),
      ({ body }) =>
        body.people?.[0].clusters[0].slurm.state === 'applied' &&
        body.people[0].clusters[1].kubernetes.state === 'applied' &&
        body.people[1].clusters[1].kubernetes.state === 'applied',
    );
    const [person, guest, owner] = settled.body.people;
    assert.equal(settled.body.people.length, 3);
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
    assert.deepEqual(guest.clusters[1].ways[0].until, '2999-01-01T00:00:00.000Z');
    assert.deepEqual(
      [guest.is_member, guest.role, guest.clusters[1].ways[0].scope],
      [false, undefined, 'ml'],
    );
    assert.deepEqual(ways(owner), [
      ['see by role owner', 'ssh.admin by role owner'],
      ['see by role owner', 'kubernetes.admin by role owner'],
    ]);
    // Of others nothing.
    assert.equal((await access('bob', 'ada')).status, 403);

    // Without clusters.read and members.manage: only where they reach something themselves.
    const kubernetes = async (as: string) =>
      (await service.business(`/organizations/${org}/members/${ids.get(as)}/kubernetes-access`, { as })).body
        .clusters;
    const names = (list: { cluster_name: string }[]) => list.map((one) => one.cluster_name);
    const seen = async (as: string) => {
      const { body } = await access(as, as);
      assert.equal(body.people[0].clusters.length, body.clusters.length);
      return [names(body.clusters), names(await kubernetes(as))];
    };
    const permit = (permissions: string[]) =>
      service.write(`/organizations/${org}/members/${bob}/permissions`, {
        as: 'ada',
        method: 'PUT',
        body: { permissions },
      });
    for (const [permissions, expected] of [
      [[], [[], []]],
      [['clusters.ssh'], [['alpha'], []]],
      [['clusters.kubernetes'], [['beta'], ['beta']]],
      [['clusters.read'], [['alpha', 'beta'], ['beta']]],
    ] as [string[], string[][]][]) {
      assert.equal((await permit(permissions)).status, 200);
      assert.deepEqual(await seen('bob'), expected, permissions.join());
    }
    assert.deepEqual(await seen('max'), [['alpha', 'beta'], ['beta']]);

    const removed = await service.write(`/organizations/${org}/members/${bob}/remove`, { as: 'ada' });
    assert.equal(removed.status, 200);
    const gone = await eventually(
      () => access('ada', 'bob'),
      ({ body }) =>
        body.people[0].clusters[0].slurm.state === 'applied' &&
        body.people[0].clusters[1].kubernetes.state === 'none',
    );
    const [past] = gone.body.people;
    assert.deepEqual([past.is_member, past.role, past.clusters[0].slurm.account], [false, undefined, 'none']);
  });

  await t.test('of a request, as approving it would, for whom may approve it', async () => {
    const request = { permissions: ['clusters.ssh'], hours: 48 };
    const { body: asked } = await service.write(`/organizations/${org}/access-requests`, {
      as: 'eve',
      body: request,
    });
    const eve: string = asked.id;
    const { body } = await plan('ada', { change: 'approve', request_id: eve });
    assert.equal(body.changes[0].result, 'planned', JSON.stringify(body));
    assert.deepEqual(body.clusters[0].waiting_for_key, ['eve']);
    assert.deepEqual([body.clusters[0].added, body.clusters[0].restarts], [[], []]);
    const passed = { change: 'approve', request_id: eve, expires_at: '2001-01-01T00:00:00Z' };
    assert.equal((await plan('ada', passed)).body.changes[0].code, 'invalid_request');
    assert.equal((await plan('eve', { change: 'approve', request_id: eve })).status, 403);
    const [still] = (await service.business('/me/access-requests', { as: 'eve' })).body.requests;
    assert.equal(still.state, 'open');
  });

  await t.test('who plans too often waits', async () => {
    const change = { change: 'add', email: 'x@physics.example' };
    const replies = await Promise.all(Array.from({ length: 60 }, () => plan('amy', change)));
    const late = replies.filter(({ status }) => status === 429);
    assert.ok(
      late.length > 0 &&
        late.every(({ body, headers }) => body.retryable && headers.get('retry-after') === '1'),
      `${late.length}`,
    );
    assert.equal((await plan('ada', change)).status, 200);
  });
});

test('while a cluster does not say which jobs run, a plan says that any may end', async () => {
  await using opened = await openTestStore(lab);
  const { store } = opened;
  const report = {
    ...{ manifestGeneration: 0, desiredGeneration: 1, controlPlaneReady: false },
    ...{ loginNodes: [], accounts: [], failure: null },
  };
  const planWith = async (runningJobs?: ReturnType<typeof run>[]) => {
    await recordSlurmReport(store, alpha, { ...report, ...(runningJobs && { runningJobs }) });
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
