/** People's permissions as RBAC bindings at an API server. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { leastPrivilege, without } from './accounts.ts';
import type { BindingObject } from './bindings.ts';
import type { FakeApi } from './fake-api.ts';
import { clusterId, grant, type KubernetesLab, member, startBound, startKubernetesLab } from './lab.ts';

const rbac = 'rbac.authorization.k8s.io';
const writes = (api: FakeApi) =>
  api.asked.filter(({ method }) => method !== 'GET').map(({ method }) => method);

/** A binding that somebody makes by hand, in `team-a`. */
function makeByHand(
  { api }: KubernetesLab,
  name: string,
  labels: Record<string, string> = {},
): BindingObject {
  const admin = api.accounts['admin'];
  assert.ok(admin);
  const ask = { verb: 'create', group: rbac, resource: 'rolebindings', name, namespace: 'team-a' };
  const { status } = api.bindings.create(ask, admin, {
    metadata: { name, labels },
    roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: 'view' },
    subjects: [{ kind: 'User', apiGroup: rbac, name: 'carl@elsewhere.example' }],
  });
  assert.equal(status, 201);
  return structuredClone(api.bindings.all.get(`team-a/${name}`)) as BindingObject;
}

test('organization permissions are ClusterRoleBindings: edit, and cluster-admin for who may everything; a grant is a binding of its relation where it holds', async () => {
  await using lab = await startKubernetesLab({ token: 'admin' });
  lab.access.members.push(
    member('ada', 'owner'),
    member('bea', 'admin'),
    member('bob', 'member', ['clusters.kubernetes']),
    member('cem', 'member', ['clusters.kubernetes', 'clusters.kubernetes.admin']),
    member('eve', 'member', ['clusters.ssh']),
  );
  lab.access.grants.push(
    grant('a', { relation: 'kubernetes.viewer' }),
    grant('b', { relation: 'kubernetes.developer' }),
    grant('c', { relation: 'kubernetes.admin' }),
    grant('d', { relation: 'kubernetes.viewer', scope: null }),
    grant('e', { relation: 'kubernetes.developer', scope: null }),
    grant('f', { relation: 'kubernetes.admin', scope: null }),
    // This ClusterRole takes the place of the relation.
    grant('g', { roleId: 'gpu-quota-reader' }),
  );
  assert.equal((await lab.pass()).failure, null);
  assert.deepEqual(lab.bound(), [
    'grant_d view d@physics.example',
    'grant_e edit e@physics.example',
    'grant_f cluster-admin f@physics.example',
    'team-a/grant_a view a@physics.example',
    'team-a/grant_b edit b@physics.example',
    'team-a/grant_c admin c@physics.example',
    'team-a/grant_g gpu-quota-reader g@physics.example',
    'user_ada.cluster-admin cluster-admin ada@physics.example',
    'user_bea.cluster-admin cluster-admin bea@physics.example',
    'user_bob.edit edit bob@physics.example',
    'user_cem.cluster-admin cluster-admin cem@physics.example',
  ]);
});

test("no one is bound under a name of Kubernetes' own, which is named, nor before they have one", async () => {
  await using lab = await startKubernetesLab({ claim: 'sub', settings: { usernamePrefix: '-' } });
  const subjects = ['system:kube-controller-manager'];
  lab.access.grants.push(grant('x', { subjects }), grant('y', { subjects: [] }));
  assert.equal(
    (await lab.pass()).failure,
    'The name of x@physics.example begins with system:, which Kubernetes keeps for itself.',
  );
  assert.deepEqual(lab.bound(), []);
});

test('a claim by which no one is known binds no one, and is named', async () => {
  await using lab = await startKubernetesLab({ claim: 'name' });
  lab.access.grants.push(grant('x'));
  assert.match((await lab.pass()).failure ?? '', /usernameClaim is name, by which nobody is known/);
  assert.deepEqual(lab.bound(), []);
});

test('one more grant is one write, and a converged cluster costs the same few requests whatever its size', async () => {
  await using lab = await startBound('one');
  lab.api.asked = [];
  await lab.pass();
  // Pods are counted as time allows, and have a test of their own.
  const asked = () => lab.api.asked.filter(({ path }) => path !== '/api/v1/pods').length;
  const requests = asked();
  assert.deepEqual(writes(lab.api), []);
  for (let n = 0; n < 300; n++) lab.access.grants.push(grant(`g${n}`, { scope: n % 2 ? 'team-b' : null }));
  lab.api.asked = [];
  await lab.pass();
  assert.equal(writes(lab.api).length, 300);
  lab.api.asked = [];
  await lab.pass();
  assert.ok(asked() <= requests);
  lab.access.grants.push(grant('more'));
  lab.api.asked = [];
  await lab.pass();
  assert.deepEqual(writes(lab.api), ['POST']);
  assert.equal(asked(), requests + 1);
  assert.equal(lab.api.connections, 1);
});

test('a binding that is no longer wanted is removed, and nothing that is not ours is touched', async () => {
  await using lab = await startKubernetesLab();
  const foreign = [
    makeByHand(lab, 'platform-admins'),
    makeByHand(lab, 'helm', { 'app.kubernetes.io/managed-by': 'Helm' }),
    makeByHand(lab, 'other', { 'app.kubernetes.io/managed-by': 'andromeda' }),
    makeByHand(lab, 'labelled', { 'andromeda/cluster': clusterId }),
  ];
  // A copy of one of ours, with its labels.
  makeByHand(lab, 'copy', { 'app.kubernetes.io/managed-by': 'andromeda', 'andromeda/cluster': clusterId });
  lab.access.grants.push(grant('x'));
  lab.access.members.push(member('bob', 'member', ['clusters.kubernetes']));
  await lab.pass();
  assert.equal(lab.api.bindings.all.size, 6);
  lab.access.grants.pop();
  lab.access.members.pop();
  await lab.pass();
  assert.deepEqual([...lab.api.bindings.all.values()], foreign);
});

test('another grant keeps what one gave: each is a binding of its own', async () => {
  await using lab = await startKubernetesLab();
  lab.access.grants.push(grant('x'), { ...grant('x'), grantId: 'grant_y' });
  await lab.pass();
  lab.access.grants.shift();
  await lab.pass();
  assert.deepEqual(lab.bound(), ['team-a/grant_y edit x@physics.example']);
});

const drifts: [string, (binding: BindingObject) => void][] = [
  ['another subject', ({ subjects }) => subjects?.push({ kind: 'User', apiGroup: rbac, name: 'mallory' })],
  [
    'a subject in its place',
    (binding) => (binding.subjects = [{ kind: 'Group', apiGroup: rbac, name: 'x@physics.example' }]),
  ],
  ['no subjects', (binding) => delete binding.subjects],
  ['no label of the person', ({ metadata }) => delete metadata.labels?.['andromeda/user']],
  ['another role', ({ roleRef }) => Object.assign(roleRef, { name: 'cluster-admin' })],
  ['a Role for a ClusterRole', ({ roleRef }) => Object.assign(roleRef, { kind: 'Role' })],
];
test('what we make carries our labels, and drift is repaired, once', async () => {
  await using lab = await startKubernetesLab();
  // Each pass lists.
  lab.api.accounts['andromeda'] = { user: 'andromeda', rules: without({ verb: 'watch' }) };
  lab.access.grants.push(grant('x'));
  await lab.pass();
  const key = `team-a/andromeda.${clusterId}.grant_x`;
  const essence = () => {
    const { subjects, roleRef, metadata } = lab.api.bindings.all.get(key) ?? {};
    return structuredClone({ subjects, roleRef, labels: metadata?.labels });
  };
  const before = essence();
  assert.deepEqual(before.labels, {
    ...{ 'app.kubernetes.io/managed-by': 'andromeda', 'andromeda/cluster': clusterId },
    ...{ 'andromeda/user': 'user_x', 'andromeda/grant': 'grant_x' },
  });
  for (const [what, change] of drifts) {
    lab.api.bindings.edit(key, change);
    await lab.pass();
    assert.deepEqual(essence(), before, what);
    lab.api.asked = [];
    await lab.pass();
    assert.deepEqual(writes(lab.api), [], what);
  }
});

test('a label that was added to ours stays, and is no drift', async () => {
  await using lab = await startBound('x');
  const key = `team-a/andromeda.${clusterId}.grant_x`;
  lab.api.bindings.edit(key, ({ metadata }) => Object.assign(metadata.labels ?? {}, { team: 'blue' }));
  lab.api.asked = [];
  await lab.pass();
  assert.deepEqual(writes(lab.api), []);
});

test('a grant whose namespace does not exist is reported, and bound as soon as it does', async () => {
  await using lab = await startKubernetesLab();
  lab.access.grants.push(grant('x', { scope: 'team-c' }), grant('y', { scope: 'team-c' }), grant('z'));
  const report = await lab.pass();
  assert.equal(
    report.failure,
    'The namespace team-c does not exist, or is being deleted; 2 grants wait for it.',
  );
  assert.equal(report.kubernetes?.ready, true);
  assert.deepEqual(lab.bound(), ['team-a/grant_z edit z@physics.example']);
  lab.api.world.namespaces.set('team-c', true);
  assert.equal((await lab.pass()).failure, null);
  assert.equal(lab.bound().length, 3);
  // One that is being deleted takes no binding, and none is tried.
  lab.api.world.namespaces.set('leaving', false);
  lab.access.grants.push(grant('v', { scope: 'leaving' }));
  lab.api.asked = [];
  assert.match((await lab.pass()).failure ?? '', /namespace leaving .* is being deleted; 1 grant waits/);
  assert.deepEqual(writes(lab.api), []);
});

test('a ClusterRole that does not exist is not bound, whatever the server would take, and is reported', async () => {
  await using lab = await startKubernetesLab({ token: 'admin' });
  lab.access.grants.push(grant('x', { roleId: 'trainers' }));
  assert.equal((await lab.pass()).failure, 'There is no ClusterRole trainers; 1 grant waits for it.');
  assert.deepEqual(lab.bound(), []);
  lab.api.world.clusterRoles.add('trainers');
  assert.equal((await lab.pass()).failure, null);
  assert.deepEqual(lab.bound(), ['team-a/grant_x trainers x@physics.example']);
});

test('a binding that has our name and is not ours is left as it is, reported, and made when it is gone', async () => {
  await using lab = await startKubernetesLab();
  const name = `andromeda.${clusterId}.grant_x`;
  const foreign = makeByHand(lab, name);
  lab.access.grants.push(grant('x'));
  const { failure } = await lab.pass();
  assert.match(failure ?? '', new RegExp(`^RoleBinding team-a/${name} is there already and is not ours`));
  assert.deepEqual(lab.api.bindings.all.get(`team-a/${name}`), foreign);
  lab.api.bindings.drop(`team-a/${name}`);
  assert.equal((await lab.pass()).failure, null);
  assert.deepEqual(lab.bound(), ['team-a/grant_x edit x@physics.example']);
});

test('two organizations on one API server do not disturb each other; released, nothing of the one is left, and everything else is', async () => {
  await using physics = await startKubernetesLab();
  const other = '8c6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50';
  await using chemistry = await startKubernetesLab({ api: physics.api, clusterId: other });
  const foreign = makeByHand(physics, 'platform-admins');
  physics.access.grants.push(grant('x'));
  chemistry.access.grants.push(grant('x'), grant('y'));
  for (const lab of [physics, chemistry, physics, chemistry]) await lab.pass();
  assert.equal(physics.api.bindings.all.size, 4);
  await chemistry.driver.release(AbortSignal.timeout(10_000));
  assert.equal(physics.bound()[0], 'team-a/grant_x edit x@physics.example');
  await physics.driver.release(AbortSignal.timeout(10_000));
  assert.deepEqual([...physics.api.bindings.all.values()], [foreign]);
  await physics.driver.release(AbortSignal.timeout(10_000));
});

test('a release that may not remove what is ours says which right is missing', async () => {
  await using lab = await startBound('x');
  lab.api.accounts['andromeda'] = { user: 'andromeda', rules: without({ verb: 'delete' }) };
  await assert.rejects(
    lab.driver.release(AbortSignal.timeout(10_000)),
    /lack the right to delete rolebindings \(rbac\.authorization\.k8s\.io\)/,
  );
});

test('a binding of ours that lost a label is found by its name, and goes with its grant', async () => {
  await using lab = await startBound('x', 'y');
  const key = [...lab.api.bindings.all.keys()].find((one) => one.endsWith('.grant_x')) ?? '';
  lab.api.bindings.edit(key, ({ metadata }) => {
    delete metadata.labels?.['app.kubernetes.io/managed-by'];
  });
  lab.access.grants.shift();
  assert.equal((await lab.pass()).failure, null);
  assert.deepEqual(lab.bound(), ['team-a/grant_y edit y@physics.example']);
});

test('one with our name and no label at all is left where it is, and named as a fault', async () => {
  await using lab = await startBound('x', 'y');
  const key = [...lab.api.bindings.all.keys()].find((one) => one.endsWith('.grant_x')) ?? '';
  lab.api.bindings.edit(key, ({ metadata }) => {
    delete metadata.labels;
  });
  lab.access.grants.shift();
  const { failure } = await lab.pass();
  assert.match(
    failure ?? '',
    /RoleBinding team-a\/andromeda\..*grant_x has one of our names and none of our labels/,
  );
  assert.equal(lab.bound().length, 2);
  await assert.rejects(lab.driver.release(AbortSignal.timeout(30_000)), /none of our labels/);
});

function mayBind(lab: KubernetesLab, resourceNames: string[]): void {
  const rules = leastPrivilege.map((rule) => (rule.resourceNames ? { ...rule, resourceNames } : rule));
  lab.api.accounts['andromeda'] = { user: 'andromeda', rules };
}

test('who goes from edit to cluster-admin, which may not be bound, keeps edit until it may', async () => {
  await using lab = await startKubernetesLab();
  mayBind(lab, ['view', 'edit', 'admin']);
  lab.access.members.push(member('ada', 'member', ['clusters.kubernetes']));
  await lab.pass();
  lab.access.members.splice(0, 1, member('ada', 'member', ['clusters.kubernetes.admin']));
  assert.match((await lab.pass()).failure ?? '', /lack the right to bind the ClusterRole cluster-admin/);
  assert.deepEqual(lab.bound(), ['user_ada.edit edit ada@physics.example']);
  mayBind(lab, ['view', 'edit', 'admin', 'cluster-admin']);
  assert.equal((await lab.pass()).failure, null);
  assert.deepEqual(lab.bound(), ['user_ada.cluster-admin cluster-admin ada@physics.example']);
});

test('who goes from cluster-admin to edit loses cluster-admin even where edit may not be bound', async () => {
  await using lab = await startKubernetesLab();
  lab.access.members.push(member('ada', 'member', ['clusters.kubernetes.admin']));
  await lab.pass();
  mayBind(lab, ['view']);
  lab.access.members.splice(0, 1, member('ada', 'member', ['clusters.kubernetes']));
  assert.match((await lab.pass()).failure ?? '', /lack the right to bind the ClusterRole edit/);
  assert.deepEqual(lab.bound(), []);
});

test('a server that may have been taken over from changes nothing more, not even what it tries again', async () => {
  let mayChange = true;
  await using lab = await startKubernetesLab({
    async confirm() {
      if (!mayChange) throw new Error('Another server may do this by now.');
    },
  });
  lab.access.grants.push(grant('x'));
  await lab.pass();
  lab.access.grants.push(grant('y', { scope: 'team-b' }), grant('z', { scope: 'team-b' }));
  lab.access.grants.splice(0, 1);
  lab.api.asked.length = 0;
  // It is refused once, and stands still before it tries again.
  lab.api.fault = ({ method }) => {
    if (method === 'GET') return undefined;
    mayChange = false;
    return { status: 429, headers: { 'retry-after': '0' }, body: { kind: 'Status', code: 429 } };
  };
  const { failure } = await lab.pass();
  assert.match(failure ?? '', /Another server may do this by now/);
  assert.deepEqual(writes(lab.api), ['DELETE']);
  assert.deepEqual(lab.bound(), ['team-a/grant_x edit x@physics.example']);
});
