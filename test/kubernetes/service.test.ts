/** The whole service with a Kubernetes cluster: from what people are given to what is bound, and back. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse, stringify } from 'yaml';
import type { Lab, LabCluster, LabGrant } from '../../src/domain/clusters/lab.ts';
import { eventually, physics, startTestApp, type TestApp } from '../support/app.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { type FakeApi, startFakeApi } from './fake-api.ts';

const gamma = '9d6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50';

interface Installation extends AsyncDisposable {
  api: FakeApi;
  service: TestApp;
  org: string;
}

/** Nothing happens by itself: what is tested is not what an interval would bring. */
async function startInstallation(
  grants: LabGrant[] = [],
  also: Partial<LabCluster> = {},
  intervalSeconds = 60,
): Promise<Installation> {
  await using parts = new AsyncDisposableStack();
  const directory = parts.use(temporaryDirectory());
  const api = parts.use(await startFakeApi());
  const kubeconfig = join(directory.path, 'gamma.kubeconfig');
  const content = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: 'c',
        cluster: {
          server: api.url,
          'certificate-authority-data': Buffer.from(api.authority.ca).toString('base64'),
          'tls-server-name': 'localhost',
        },
      },
    ],
    users: [{ name: 'u', user: { token: 'andromeda' } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  };
  writeFileSync(kubeconfig, stringify(content), { mode: 0o600 });
  const lab: Lab = {
    ...physics,
    clusters: [
      {
        name: 'gamma',
        id: gamma,
        organization: 'physics',
        scheduler: 'kubernetes',
        kubernetes: { kubeconfig },
        ...also,
      },
    ],
    grants,
  };
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
const bound = async ({ api }: Installation) =>
  [...api.bindings.all.values()]
    .map(({ roleRef, subjects }) => `${roleRef.name} ${subjects?.[0]?.name}`)
    .sort();

const untilBound = (installation: Installation, expected: string[]) =>
  eventually(
    () => bound(installation),
    (now) => now.join() === expected.join(),
  );

const owner = 'cluster-admin ada@physics.example';

test('what people are given reaches the cluster at once, and goes from it at once', async () => {
  await using installation = await startInstallation();
  const { service, org } = installation;
  await untilBound(installation, [owner]);
  const { body } = await service.business(`/organizations/${org}/members`, { as: 'ada' });
  const bob = body.members.find((one: { email: string }) => one.email.startsWith('bob')).user_id;
  const permit = (permissions: string[]) =>
    service.write(`/organizations/${org}/members/${bob}/permissions`, {
      as: 'ada',
      method: 'PUT',
      body: { permissions },
    });
  await permit(['clusters.kubernetes']);
  await untilBound(installation, [owner, 'edit bob@physics.example']);
  await permit(['clusters.kubernetes', 'clusters.kubernetes.admin']);
  await untilBound(installation, [owner, 'cluster-admin bob@physics.example']);
  await permit([]);
  await untilBound(installation, [owner]);
  const made = await service.write('/operator/grants', {
    as: 'root',
    body: {
      email: 'eve@elsewhere.example',
      cluster_id: gamma,
      relation: 'kubernetes.viewer',
      scope: 'team-a',
    },
  });
  await untilBound(installation, [owner, 'view eve@elsewhere.example']);
  await service.write(`/operator/grants/${made.body.grant.id}/revoke`, { as: 'root' });
  await untilBound(installation, [owner]);
});

test('expiry removes the binding within seconds, when nothing else happens', async () => {
  const user = 'eve@elsewhere.example';
  await using installation = await startInstallation([
    { user, cluster: 'gamma', relation: 'kubernetes.developer', namespace: 'team-b' },
  ]);
  await untilBound(installation, [owner, `edit ${user}`]);
  const expiresAt = Date.now() + 5000;
  const body = { email: user, cluster_id: gamma, relation: 'kubernetes.developer', scope: 'team-a' };
  const expires_at = new Date(expiresAt).toISOString();
  await installation.service.write('/operator/grants', { as: 'root', body: { ...body, expires_at } });
  await untilBound(installation, [owner, `edit ${user}`, `edit ${user}`]);
  await untilBound(installation, [owner, `edit ${user}`]);
  assert.ok(Date.now() >= expiresAt, 'not before');
  assert.equal([...installation.api.bindings.all.values()].at(-1)?.metadata.namespace, 'team-b');
});

test('a guest whose account is deactivated loses what they were granted', async () => {
  const user = 'eve@elsewhere.example';
  await using installation = await startInstallation([
    { user, cluster: 'gamma', relation: 'kubernetes.admin' },
  ]);
  const { service } = installation;
  await untilBound(installation, [owner, `cluster-admin ${user}`]);
  const { body } = await service.business('/operator/people', { as: 'root' });
  const { id } = body.people.find((one: { primary_email: string }) => one.primary_email === user);
  await service.write(`/operator/people/${id}/deactivate`, { as: 'root' });
  await untilBound(installation, [owner]);
});

test('the cluster is active, reports its versions, machines and storage, and gives people a kubeconfig', async () => {
  await using installation = await startInstallation();
  const { service, org, api } = installation;
  const get = async (path: string, query = 'businessOrgId') =>
    (await service.platform(`/clusters/${gamma}${path}?${query}=${org}`, { as: 'ada' })).body;
  const { spec, status } = await eventually(
    () => get(''),
    (cluster) => cluster.status.lifecycleState === 'active',
  );
  assert.deepEqual([spec.version, status.kubeletVersion], ['v1.34.9', 'v1.34.1']);
  assert.deepEqual((await get('/machines')).items.map((one: { name: string }) => one.name).sort(), [
    'control-1',
    'gpu-1',
    'gpu-2',
  ]);
  const options = await eventually(
    () => get('/options'),
    ({ scheduler }) => scheduler.ready !== undefined,
  );
  assert.deepEqual(options.scheduler.configured, { state: 'configured', value: 'kubernetes' });
  assert.deepEqual(
    [options.scheduler.ready.type, options.scheduler.ready.status],
    ['ControlPlaneAvailable', 'True'],
  );
  assert.deepEqual(options.storage.configured, {
    ceph: 'not_configured',
    weka: 'configured',
    nfs: 'not_configured',
  });
  const { kubeconfig } = await get('/kubeconfig', 'organizationId');
  const { cluster } = parse(kubeconfig).clusters[0];
  assert.deepEqual([cluster.server, cluster['tls-server-name']], [api.url, 'localhost']);
  assert.equal(Buffer.from(cluster['certificate-authority-data'], 'base64').toString(), api.authority.ca);
  assert.doesNotMatch(kubeconfig, /token: /);
});

test('a fault that a person must mend is named to operators and in the condition', async () => {
  await using installation = await startInstallation([
    { user: 'eve@elsewhere.example', cluster: 'gamma', relation: 'kubernetes.viewer', namespace: 'nowhere' },
  ]);
  const { service, org } = installation;
  const words = 'The namespace nowhere does not exist, or is being deleted; 1 grant waits for it.';
  const { body } = await eventually(
    () => service.business('/operator/clusters', { as: 'root' }),
    (reply) => reply.body.clusters[0].failure !== null,
  );
  assert.deepEqual([body.clusters[0].failure, body.clusters[0].drivers], [words, ['kubernetes']]);
  const options = await eventually(
    () => service.platform(`/clusters/${gamma}/options?businessOrgId=${org}`, { as: 'ada' }),
    (reply) => reply.body.scheduler.ready !== undefined,
  );
  const { status, message } = options.body.scheduler.ready;
  assert.deepEqual([status, message], ['True', words]);
});

test('an API server that goes away shows within an interval: condition, kubeconfig, FAILURE and the state of grants', async () => {
  const user = 'eve@elsewhere.example';
  const grants: LabGrant[] = [{ user, cluster: 'gamma', relation: 'kubernetes.viewer' }];
  await using installation = await startInstallation(grants, {}, 2);
  const { service, org, api } = installation;
  const observe = async () => {
    const [options, kubeconfig, clusters, all, own] = await Promise.all([
      service.platform(`/clusters/${gamma}/options?businessOrgId=${org}`, { as: 'ada' }),
      service.platform(`/clusters/${gamma}/kubeconfig?organizationId=${org}`, { as: 'ada' }),
      service.business('/operator/clusters', { as: 'root' }),
      service.business('/operator/grants', { as: 'root' }),
      service.issuer
        .token('eve', { email: user })
        .then((token) => service.business('/me/kubernetes-access', { token })),
    ]);
    return {
      condition: options.body.scheduler.ready?.status,
      kubeconfig: kubeconfig.status,
      failure: clusters.body.clusters[0].failure,
      granted: [all.body.grants[0].access?.state, own.body.grants[0].state],
    };
  };
  const is = (state: string, now: Awaited<ReturnType<typeof observe>>) =>
    now.granted.every((one) => one === state) && (now.condition === 'True') === (state === 'applied');
  const before = await eventually(observe, (now) => is('applied', now));
  assert.deepEqual(before, { ...before, kubeconfig: 200, failure: null });
  await api.stop();
  // Long before a report is too old to count, which takes two minutes.
  const away = await eventually(observe, (now) => is('unknown', now));
  assert.equal(away.kubeconfig, 409);
  assert.match(String(away.failure), /^The API server of gamma cannot be reached: /);
  await api.start();
  await eventually(observe, (now) => is('applied', now));
});

test('a cluster that is released keeps nothing of ours', async () => {
  await using installation = await startInstallation();
  const { service } = installation;
  await untilBound(installation, [owner]);
  await service.write(`/operator/clusters/${gamma}/release`, { as: 'root' });
  await eventually(
    () => service.business('/operator/clusters', { as: 'root' }),
    ({ body }) => body.clusters[0].cluster.state === 'released',
  );
  assert.deepEqual(await bound(installation), []);
});

test('a cluster with slurm and kubernetes sections: a Slurm that is away hides nothing of Kubernetes', async () => {
  const slurm = {
    login: [{ name: 'login1', host: '127.0.0.1', port: 1, hostKey: 'ssh-ed25519 AAAA' }],
    controller: { host: '127.0.0.1', port: 1, hostKey: 'ssh-ed25519 AAAA' },
    manage: { identityFile: '/nowhere/manage' },
  };
  await using installation = await startInstallation([], { scheduler: 'sunk', slurm });
  const { service, org } = installation;
  await untilBound(installation, [owner]);
  const kubeconfig = await eventually(
    () => service.platform(`/clusters/${gamma}/kubeconfig?organizationId=${org}`, { as: 'ada' }),
    ({ status }) => status === 200,
  );
  assert.match(kubeconfig.body.kubeconfig, /oidc-login/);
  // The sides report by themselves: Kubernetes may answer before Slurm has been tried at all.
  const { body } = await eventually(
    () => service.business('/operator/clusters', { as: 'root' }),
    (answer) => answer.body.clusters[0].failure !== null,
  );
  assert.deepEqual(body.clusters[0].drivers, ['slurm', 'kubernetes']);
  assert.match(body.clusters[0].failure, /127\.0\.0\.1/);
  const ssh = await service.platform(`/clusters/${gamma}/ssh-access?organizationId=${org}`, { as: 'ada' });
  assert.equal(ssh.body.ready, false);
});
