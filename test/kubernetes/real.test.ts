/**
 * The driver against a real API server, of which ANDROMEDA_TEST_KUBECONFIG names a kubeconfig that may bind everything
 * there; without, against the fake one, so that it works on the day when there is a real one. It makes bindings under a
 * cluster ID of its own, in the namespace `default` and cluster-wide, for people who do not exist, and takes them away again.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { ownLabels } from '../../src/domain/kubernetes/bindings.ts';
import { createLogger } from '../../src/lib/log.ts';
import { checkKubernetes } from '../../src/sync/kubernetes/check.ts';
import { KubernetesClient } from '../../src/sync/kubernetes/client.ts';
import { createKubernetesDriver } from '../../src/sync/kubernetes/index.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { kubeconfigFor, startFakeApi } from './fake-api.ts';
import { grant, passOf } from './lab.ts';

const rbac = 'rbac.authorization.k8s.io';
const bindingsPath = `/apis/${rbac}/v1/namespaces/default/rolebindings`;

test('an API server', async (t) => {
  const given = process.env['ANDROMEDA_TEST_KUBECONFIG'];
  if (given !== undefined) return tryReal(t, given);
  await using api = await startFakeApi();
  using directory = temporaryDirectory();
  const file = join(directory.path, 'kubeconfig');
  writeFileSync(file, kubeconfigFor(api, 'admin'), { mode: 0o600 });
  await tryReal(t, file);
  assert.equal(api.bindings.all.size, 0, 'what it made is gone');
});

interface Found {
  metadata: { name: string; uid: string; resourceVersion: string; labels: Record<string, string> };
  subjects: { name: string }[];
  roleRef: { name: string };
}

async function tryReal(t: TestContext, file: string): Promise<void> {
  const clusterId = randomUUID();
  const signal = AbortSignal.timeout(300_000);
  const client = new KubernetesClient({ kubeconfig: file });
  const access = { members: [], grants: [] as ReturnType<typeof grant>[] };
  const driver = createKubernetesDriver({
    clusterId,
    name: 'real',
    settings: { kubeconfig: file },
    rule: { claim: 'email', issuer: 'https://issuer.invalid' },
    wake() {},
    log: createLogger('silent'),
  });
  await using ending = new AsyncDisposableStack();
  ending.defer(() => client.close());
  ending.defer(() => driver.release(AbortSignal.timeout(60_000)).finally(() => driver.close()));
  const pass = () => passOf(driver, access, signal);
  const list = async () => {
    const labels = Object.entries(ownLabels(clusterId)).map(([label, value]) => `${label}=${value}`);
    const query = { labelSelector: labels.join() };
    return (await client.request<{ items: Found[] }>({ path: bindingsPath, query }, signal)).items;
  };
  const nameOf = (id: string) => `andromeda.${clusterId}.grant_${id}`;
  const drop = (id: string) =>
    client.request({ method: 'DELETE', path: `${bindingsPath}/${nameOf(id)}` }, signal);
  const make = (id: string, labels: object) =>
    client.request(
      {
        method: 'POST',
        path: bindingsPath,
        body: {
          apiVersion: `${rbac}/v1`,
          kind: 'RoleBinding',
          metadata: { name: nameOf(id), labels },
          roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: 'edit' },
          subjects: [{ apiGroup: rbac, kind: 'User', name: 'mallory@physics.invalid' }],
        },
      },
      signal,
    );
  // The credentials have every right.
  const check = await checkKubernetes({ kubeconfig: file }, []);
  assert.equal(check.fault, null);
  assert.deepEqual(
    check.rights.filter(({ allowed }) => !allowed),
    [],
  );

  // It says how the cluster is.
  const { kubernetes, controlPlaneReady, failure } = await pass();
  assert.match(kubernetes?.version ?? '', /^v1\.\d+\./);
  assert.deepEqual([controlPlaneReady, failure], [true, null]);

  // A grant is bound, once, and again when it was changed.
  access.grants.push(grant('x', { scope: 'default' }));
  await pass();
  const [first] = await list();
  assert.deepEqual(
    [first?.metadata.name, first?.roleRef.name, first?.subjects[0]?.name],
    [nameOf('x'), 'edit', 'x@physics.example'],
  );
  await pass();
  assert.equal((await list())[0]?.metadata.resourceVersion, first?.metadata.resourceVersion);
  await drop('x');
  await make('x', ownLabels(clusterId));
  await pass();
  assert.equal((await list())[0]?.subjects[0]?.name, 'x@physics.example');

  // A namespace and a role that are not there are reported.
  const [namespace, roleId] = [`missing-${clusterId}`, `missing-${clusterId}`];
  access.grants.push(grant('n', { scope: namespace }), grant('r', { scope: 'default', roleId }));
  const words = (await pass()).failure ?? '';
  assert.match(words, new RegExp(`The namespace ${namespace} does not exist`));
  assert.match(words, new RegExp(`There is no ClusterRole ${roleId}`));
  access.grants.splice(1);

  // A binding that is not ours and has our name is left alone.
  await make('y', {});
  access.grants.push(grant('y', { scope: 'default' }));
  assert.match((await pass()).failure ?? '', /is there already and is not ours/);
  const path = `${bindingsPath}/${nameOf('y')}`;
  const found = await client.request<Found>({ path }, signal);
  assert.equal(found.subjects[0]?.name, 'mallory@physics.invalid');
  await drop('y');
  assert.equal((await pass()).failure, null);

  for (let n = 0; n < 1000; n++) access.grants.push(grant(`g${n}`, { scope: 'default' }));
  const started = performance.now();
  await driver.apply(access, signal);
  t.diagnostic(`1,000 grants took ${Math.round(performance.now() - started)} ms`);
  assert.equal((await list()).length, 1002);
  access.grants.push(grant('more', { scope: 'default' }));
  await driver.apply(access, signal);
  assert.equal((await list()).length, 1003);

  // What is no longer wanted goes.
  access.grants.splice(0);
  assert.equal((await pass()).failure, null);
  assert.deepEqual(await list(), []);
}
