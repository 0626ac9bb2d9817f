/** Bad days of an API server: each is said in words, and ends converged when its cause is gone. */
import assert from 'node:assert/strict';
import { unlinkSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createAuthority } from '../support/certificate.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { leastPrivilege, without } from './accounts.ts';
import { type Asked, kubeconfigFor, startFakeApi } from './fake-api.ts';
import { clusterId, grant, type KubernetesLab, startBound, startKubernetesLab } from './lab.ts';
import { recorded } from './recorded.ts';

const isWrite = ({ method }: Asked) => method !== 'GET';

/** The cause is gone: what should be there is there, and nothing is reported any more. */
async function converges(lab: KubernetesLab): Promise<void> {
  lab.api.fault = undefined;
  const report = await lab.pass();
  assert.equal(report.failure, null);
  assert.equal(report.kubernetes?.ready, true);
  const wanted = lab.access.grants.map(
    ({ scope, grantId, email }) => `${scope ?? ''}/${grantId} edit ${email}`,
  );
  assert.deepEqual(lab.bound(), wanted.sort());
}

function allow(lab: KubernetesLab, rules: typeof leastPrivilege): void {
  lab.api.accounts['andromeda'] = { user: 'system:serviceaccount:andromeda-system:andromeda', rules };
}

test('unreachable: it throws, so that nothing is recorded, and goes on when the server is back', async () => {
  await using lab = await startBound('x');
  await lab.api.stop();
  lab.access.grants.push(grant('y'));
  await assert.rejects(lab.pass(), /^Error: The API server of gamma cannot be reached: .*ECONNREFUSED/);
  await lab.api.start();
  await converges(lab);
});

test('settings that cannot be used and a token that is refused are no observation; the right token in the file is enough', async () => {
  using directory = temporaryDirectory();
  const tokenFile = `${directory.path}/token`;
  await using lab = await startKubernetesLab({ settings: { tokenFile } });
  lab.access.grants.push(grant('x'));
  await assert.rejects(lab.pass(), { message: `Cannot read ${tokenFile}: there is no such file.` });
  writeFileSync(tokenFile, 'old');
  await assert.rejects(
    lab.pass(),
    /API server of gamma cannot be reached: it does not accept our credentials/,
  );
  writeFileSync(tokenFile, 'andromeda\n');
  await converges(lab);
});

test('a kubeconfig, or a certificate authority in a file of its own, that changes is used from the next look on, whatever connections there are', async () => {
  using directory = temporaryDirectory();
  await using api = await startFakeApi();
  const kubeconfig = `${directory.path}/kubeconfig`;
  const certificateAuthority = `${directory.path}/ca.pem`;
  const write = (authority: string) => {
    writeFileSync(certificateAuthority, authority);
    writeFileSync(kubeconfig, kubeconfigFor(api, 'andromeda', authority), { mode: 0o600 });
  };
  for (const settings of [{ kubeconfig }, { certificateAuthority }]) {
    write(api.authority.ca);
    await using lab = await startKubernetesLab({ api, settings });
    lab.access.grants.push(grant('x'));
    await lab.pass();
    write(createAuthority().ca);
    await assert.rejects(lab.pass(), /cannot be reached: .*certificate/);
    const [file = ''] = Object.values(settings);
    unlinkSync(file);
    await assert.rejects(lab.pass(), { message: `Cannot read ${file}: there is no such file.` });
    write(api.authority.ca);
    await converges(lab);
  }
});

const lacking: [string, typeof leastPrivilege, RegExp][] = [
  ['list', without({ verb: 'list' }), /right to list clusterrolebindings .*right to list rolebindings/],
  ['create', without({ verb: 'create' }), /right to create rolebindings \(rbac\.authorization\.k8s\.io\)/],
  ['nodes', without({ resource: 'nodes' }), /right to list nodes\./],
  ['storage', without({ resource: 'storageclasses' }), /right to list storageclasses \(storage\.k8s\.io\)/],
  ['rook', without({ resource: 'cephclusters' }), /right to list cephclusters \(ceph\.rook\.io\)/],
  ['namespaces', without({ resource: 'namespaces' }), /right to list namespaces\./],
  [
    'bind',
    leastPrivilege.filter(({ verbs }) => !verbs.includes('bind')),
    /right to bind the ClusterRole edit/,
  ],
];
test('403: which right is missing is named, and the rest is done', async () => {
  await using lab = await startKubernetesLab();
  for (const [what, rules, expected] of lacking) {
    allow(lab, rules);
    lab.access.grants = [grant(what)];
    const report = await lab.pass();
    assert.match(report.failure ?? '', expected, what);
    assert.equal(report.kubernetes?.ready, true, what);
    allow(lab, leastPrivilege);
    await converges(lab);
  }
});

test('403 on nodes leaves the machines as they are known; 403 on storage leaves it unknown', async () => {
  await using lab = await startKubernetesLab();
  allow(lab, []);
  const { machines, storage } = await lab.pass();
  assert.equal(machines, undefined);
  assert.deepEqual(storage, {});
});

test('an account that lacks a right is not asked for it once for each grant', async () => {
  await using lab = await startKubernetesLab();
  allow(
    lab,
    leastPrivilege.filter(({ verbs }) => !verbs.includes('bind')),
  );
  for (let n = 0; n < 200; n++) lab.access.grants.push(grant(`g${n}`));
  const { failure } = await lab.pass();
  assert.equal(failure, 'Our credentials lack the right to bind the ClusterRole edit (200 times).');
  // As many as were under way together.
  assert.ok(lab.api.asked.filter(isWrite).length <= 64);
});

for (const [title, recording, words] of [
  [
    'a policy',
    'errors/webhook-denies-403',
    /refuses RoleBinding team-b\/.*: admission webhook .*need a ticket/,
  ],
  ['a webhook that is down', 'errors/webhook-down-500', /in trouble \(500\): .*failed calling webhook/],
] as const)
  test(`${title} refuses one grant: it is said in its words, and the others are made`, async () => {
    await using lab = await startKubernetesLab();
    lab.access.grants.push(grant('x', { scope: 'team-b' }), grant('y'), grant('z'));
    lab.api.fault = ({ method, path }) =>
      method === 'POST' && path.includes('team-b') ? recorded(recording) : undefined;
    assert.match((await lab.pass()).failure ?? '', words);
    assert.equal(lab.bound().length, 2);
    await converges(lab);
  });

test('409: a binding that is changed under our hands is looked at again at once', async () => {
  await using lab = await startBound('x');
  const key = `team-a/andromeda.${clusterId}.grant_x`;
  lab.api.bindings.edit(key, ({ subjects }) => subjects?.pop());
  let times = 0;
  lab.api.fault = ({ method }) => {
    if (method === 'PATCH' && times++ === 0) {
      lab.api.bindings.edit(key, ({ metadata }) => Object.assign(metadata.labels ?? {}, { team: 'blue' }));
    }
    return undefined;
  };
  assert.equal((await lab.pass()).failure, null);
  assert.equal(times, 2);
  await converges(lab);
});

test('409: what was replaced between the look and the delete is not deleted unless it is ours still', async () => {
  await using lab = await startBound('x');
  lab.access.grants.pop();
  const key = `team-a/andromeda.${clusterId}.grant_x`;
  lab.api.fault = ({ method }) => {
    if (method === 'DELETE') lab.api.bindings.edit(key, ({ metadata }) => delete metadata.labels);
    return undefined;
  };
  assert.match((await lab.pass()).failure ?? '', /none of our labels: look whose it is/);
  assert.equal(lab.api.bindings.all.size, 1);
});

test('a namespace that goes between the look and the write is reported, not taken for a missing binding', async () => {
  await using lab = await startKubernetesLab();
  lab.access.grants.push(grant('x', { scope: 'team-b' }));
  lab.api.fault = ({ method }) => {
    if (method === 'POST') lab.api.world.namespaces.delete('team-b');
    return undefined;
  };
  assert.match((await lab.pass()).failure ?? '', /namespace of RoleBinding team-b\/.* is missing/);
  lab.api.world.namespaces.set('team-b', true);
  await converges(lab);
});

test('429 with Retry-After: it waits as long as that says, and then goes on', async () => {
  await using lab = await startKubernetesLab();
  lab.access.grants.push(grant('x'), grant('y'));
  const at: number[] = [];
  lab.api.fault = ({ method }) => {
    if (method !== 'POST') return undefined;
    at.push(performance.now());
    return at.length <= 2 ? recorded('errors/too-many-requests-apply-429') : undefined;
  };
  assert.equal((await lab.pass()).failure, null);
  assert.equal(at.length, 4);
  const [first = 0, , third = 0] = at;
  assert.ok(third - first >= 950, `${third - first} ms`);
  assert.equal(lab.bound().length, 2);
});

test('slow answers: it waits for each, and what runs out of time is done by the next look', async () => {
  await using lab = await startKubernetesLab();
  lab.access.grants.push(grant('x'), grant('y', { scope: 'team-b' }));
  lab.api.fault = async ({ path, method }) => {
    await sleep(50);
    return method === 'POST' && path.includes('team-b') ? recorded('errors/apply-timeout-504') : undefined;
  };
  assert.match((await lab.pass()).failure ?? '', /in trouble \(504\): Timeout/);
  await converges(lab);
});

test('no answer at all: it is waited for no longer than there is time, and the next look begins anew', async () => {
  await using lab = await startKubernetesLab();
  lab.access.grants.push(grant('x'));
  const never = Promise.withResolvers<undefined>();
  lab.api.fault = () => never.promise;
  const { driver } = lab;
  await assert.rejects(driver.apply(lab.access, AbortSignal.timeout(300)));
  await assert.rejects(
    driver.observe(AbortSignal.timeout(300)),
    /API server of gamma cannot be reached: it does not answer in time/,
  );
  // By itself it is known long before a request that the server works on is given up.
  const late = AbortSignal.timeout(10_000);
  await assert.rejects(driver.observe(late), /cannot be reached: it does not answer in time/);
  assert.equal(late.aborted, false);
  await converges(lab);
  never.resolve(undefined);
});

test('every request says to the server how long it may take', async () => {
  await using lab = await startBound('x');
  // A watch goes on, and has a time of its own.
  const limits = lab.api.asked.map(({ query }) => query.get('timeoutSeconds') ?? query.get('timeout'));
  assert.deepEqual(new Set(limits).difference(new Set(['60'])), new Set(['10s']));
});

test('ready by its own word, and serving nothing: the control plane is not available', async () => {
  await using lab = await startKubernetesLab();
  lab.api.fault = ({ path }) =>
    path.startsWith('/api') ? recorded('errors/request-timeout-504') : undefined;
  const { scheduler, kubernetes } = await lab.pass();
  assert.deepEqual([scheduler?.ready?.status, scheduler?.ready?.reason], ['False', 'RequestsFail']);
  assert.equal(kubernetes?.ready, false);
  await converges(lab);
});

test('a connection that ends just when it is needed is made anew, and no error is seen', async () => {
  await using lab = await startKubernetesLab();
  lab.access.grants.push(grant('x'));
  let cuts = 0;
  lab.api.fault = ({ path }) => (path === '/version' && ++cuts === 1 ? 'cut' : undefined);
  assert.equal((await lab.pass()).kubernetes?.version, 'v1.34.9');
  assert.equal(cuts, 2);
});

test('cut half-way: another one that knows nothing of the first brings it to its end', async () => {
  await using api = await startFakeApi();
  let posts = 0;
  api.fault = ({ method }) => (method === 'POST' && ++posts >= 20 ? 'cut' : undefined);
  {
    await using first = await startKubernetesLab({ api });
    for (let n = 0; n < 300; n++) first.access.grants.push(grant(`g${n}`));
    await first.pass().catch(() => {});
  }
  const made = api.bindings.all.size;
  assert.ok(made > 0 && made < 300, `${made} were made`);
  await using lab = await startKubernetesLab({ api });
  // Half of what was wanted then is wanted now, and some that was not.
  for (let n = 0; n < 310; n += 2) lab.access.grants.push(grant(`g${n}`));
  await converges(lab);
});
