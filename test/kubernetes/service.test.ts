/** The whole service with a Kubernetes cluster: from what people are given to what is bound, and back. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import type { Lab, LabCluster, LabGrant } from '../../src/domain/clusters/lab.ts';
import { organizationOf } from '../business/organization.ts';
import { becomes, eventually, physics, startTestApp, type TestApp } from '../support/app.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { type FakeApi, kubeconfigFor, startFakeApi } from './fake-api.ts';

const gamma = '9d6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50';

interface Installation extends AsyncDisposable {
  api: FakeApi;
  service: TestApp;
  org: string;
}

async function startInstallation(
  grants: LabGrant[],
  also: Partial<LabCluster>,
  intervalSeconds: number,
): Promise<Installation> {
  await using parts = new AsyncDisposableStack();
  const directory = parts.use(temporaryDirectory());
  const api = parts.use(await startFakeApi());
  const kubeconfig = join(directory.path, 'gamma.kubeconfig');
  writeFileSync(kubeconfig, kubeconfigFor(api), { mode: 0o600 });
  const about = { name: 'gamma', id: gamma, organization: 'physics', kubernetes: { kubeconfig } };
  const lab: Lab = { ...physics, clusters: [{ ...about, scheduler: 'kubernetes', ...also }], grants };
  const service = parts.use(
    await startTestApp({
      lab,
      sync: { intervalSeconds },
      identity: { kubernetes: { clientId: 'andromeda-kubernetes' } },
    }),
  );
  const { body } = await service.business('/me', { as: 'ada' });
  const kept = parts.move();
  return { api, service, org: body.default_org_id, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}

/** As `role subject`, in the order of the alphabet. */
const bound = ({ api }: Installation) =>
  [...api.bindings.all.values()]
    .map(({ roleRef, subjects }) => `${roleRef.name} ${subjects?.[0]?.name}`)
    .sort()
    .join();

const untilBound = (installation: Installation, ...expected: string[]) =>
  becomes(() => bound(installation), expected.join());

const owner = 'cluster-admin ada@physics.example';
const guest = 'eve@elsewhere.example';

test('what people are given reaches the cluster at once, and goes from it at once, though its Slurm is away', async () => {
  const slurm = {
    login: [{ name: 'login1', host: '127.0.0.1', port: 1, hostKey: 'ssh-ed25519 AAAA' }],
    controller: { host: '127.0.0.1', port: 1, hostKey: 'ssh-ed25519 AAAA' },
    manage: { identityFile: '/nowhere/manage' },
  };
  // Nothing happens by itself: what is tested is not what an interval would bring.
  await using installation = await startInstallation([], { scheduler: 'sunk', slurm }, 60);
  const { service, org } = installation;
  await untilBound(installation, owner);
  const organization = await organizationOf(service);
  const permit = (...permissions: string[]) => organization.permit('ada', 'bob', permissions);
  await permit('clusters.kubernetes');
  await untilBound(installation, owner, 'edit bob@physics.example');
  await permit('clusters.kubernetes', 'clusters.kubernetes.admin');
  await untilBound(installation, owner, 'cluster-admin bob@physics.example');
  await permit();
  await untilBound(installation, owner);
  const grantGuest = (relation: string) =>
    service.write('/operator/grants', {
      as: 'root',
      body: { email: guest, cluster_id: gamma, relation, scope: 'team-a' },
    });
  const made = await grantGuest('kubernetes.viewer');
  await untilBound(installation, owner, `view ${guest}`);
  await service.write(`/operator/grants/${made.body.grant.id}/revoke`, { as: 'root' });
  await untilBound(installation, owner);
  await grantGuest('kubernetes.developer');
  await untilBound(installation, owner, `edit ${guest}`);
  const { body: found } = await service.business('/operator/people', { as: 'root' });
  const { id } = found.people.find((one: { primary_email: string }) => one.primary_email === guest);
  await service.write(`/operator/people/${id}/deactivate`, { as: 'root' });
  await untilBound(installation, owner);

  const kubeconfig = await eventually(
    () => service.platform(`/clusters/${gamma}/kubeconfig?organizationId=${org}`, { as: 'ada' }),
    ({ status }) => status === 200,
  );
  assert.match(kubeconfig.body.kubeconfig, /oidc-login/);
  // The sides report by themselves: Kubernetes may answer before Slurm has been tried at all.
  const { body: clusters } = await eventually(
    () => service.business('/operator/clusters', { as: 'root' }),
    (answer) => answer.body.clusters[0].failure !== null,
  );
  assert.deepEqual(clusters.clusters[0].drivers, ['slurm', 'kubernetes']);
  assert.match(clusters.clusters[0].failure, /127\.0\.0\.1/);
  const ssh = await service.platform(`/clusters/${gamma}/ssh-access?organizationId=${org}`, { as: 'ada' });
  assert.equal(ssh.body.ready, false);
});

test('the cluster reports how it is and what a person must mend, shows within an interval that its API server is away, and released keeps nothing', async () => {
  await using installation = await startInstallation(
    [
      { user: guest, cluster: 'gamma', relation: 'kubernetes.viewer' },
      { user: guest, cluster: 'gamma', relation: 'kubernetes.viewer', namespace: 'nowhere' },
    ],
    {},
    2,
  );
  const { service, org, api } = installation;
  const get = async (path: string, query = 'businessOrgId') =>
    (await service.platform(`/clusters/${gamma}${path}?${query}=${org}`, { as: 'ada' })).body;
  const clusterOf = async () =>
    (await service.business('/operator/clusters', { as: 'root' })).body.clusters[0];
  const { spec, status } = await eventually(
    () => get(''),
    (cluster) => cluster.status.lifecycleState === 'active',
  );
  assert.deepEqual([spec.version, status.kubeletVersion], ['v1.34.9', 'v1.34.1']);
  const machines = (await get('/machines')).items.map((one: { name: string }) => one.name);
  assert.deepEqual(machines.sort(), ['control-1', 'gpu-1', 'gpu-2']);
  const words = 'The namespace nowhere does not exist, or is being deleted; 1 grant waits for it.';
  const { scheduler, storage } = await eventually(
    () => get('/options'),
    (options) => options.scheduler.ready?.message === words,
  );
  assert.deepEqual(scheduler.configured, { state: 'configured', value: 'kubernetes' });
  assert.deepEqual([scheduler.ready.type, scheduler.ready.status], ['ControlPlaneAvailable', 'True']);
  assert.deepEqual(storage.configured, { ceph: 'not_configured', weka: 'configured', nfs: 'not_configured' });
  const { failure, drivers } = await clusterOf();
  assert.deepEqual([failure, drivers], [words, ['kubernetes']]);
  const { kubeconfig } = await get('/kubeconfig', 'organizationId');
  const { cluster } = parse(kubeconfig).clusters[0];
  assert.deepEqual([cluster.server, cluster['tls-server-name']], [api.url, 'localhost']);
  assert.equal(Buffer.from(cluster['certificate-authority-data'], 'base64').toString(), api.authority.ca);
  assert.doesNotMatch(kubeconfig, /token: /);

  api.world.namespaces.set('nowhere', true);
  const observe = async () => {
    const all = await service.business('/operator/grants', { as: 'root' });
    const token = await service.issuer.token('eve', { email: guest });
    const own = await service.business('/me/kubernetes-access', { token });
    const states = [...all.body.grants.map((one: { access?: { state: string } }) => one.access?.state)];
    states.push(...own.body.grants.map((one: { state: string }) => one.state));
    return [(await get('/options')).scheduler.ready?.status === 'True', ...new Set(states)].join();
  };
  await becomes(observe, 'true,applied');
  await becomes(async () => (await clusterOf()).failure, null);
  await api.stop();
  // Long before a report is too old to count, which takes two minutes.
  await becomes(observe, 'false,unknown');
  assert.match(String((await clusterOf()).failure), /^The API server of gamma cannot be reached: /);
  const refused = await service.platform(`/clusters/${gamma}/kubeconfig?organizationId=${org}`, {
    as: 'ada',
  });
  assert.equal(refused.status, 409);
  await api.start();
  await becomes(observe, 'true,applied');

  await service.write(`/operator/clusters/${gamma}/release`, { as: 'root' });
  await becomes(async () => (await clusterOf()).cluster.state, 'released');
  assert.equal(bound(installation), '');
});
