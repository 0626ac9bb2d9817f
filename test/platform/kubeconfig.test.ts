import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'yaml';
import { kubeconfig as kubeconfigOf } from '../../src/domain/kubernetes/kubeconfig.ts';
import {
  alpha,
  becomes,
  beta,
  eventually,
  loginless,
  physics,
  physicsWith,
  startTestApp,
} from '../support/app.ts';
import { refused } from '../support/refused.ts';
import { setCluster, setSimulated, silence, tokenFor } from './support.ts';

const soon = new Date(Math.floor(Date.now() / 1000) * 1000 + 3_600_000).toISOString();
const later = new Date(Date.parse(soon) + 3_600_000).toISOString();
const pem = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n';
const kubernetes = { server: 'https://10.0.0.5:6443', certificateAuthority: pem, version: 'v1.33.1' };
/** Names that a namespace may have, and that YAML 1.1 reads as something else than text. */
const oddNames = 'no n off yes y on true null 0b1 0x1 017 0o17 1e3 12'.split(' ');
const grant = (name: string, cluster: string, rest = {}) => ({
  user: `${name}@elsewhere.example`,
  cluster,
  relation: 'kubernetes.viewer' as const,
  ...rest,
});

test('kubectl gets a file without credentials, of clusters whose Kubernetes API is known to be ready', async () => {
  await using service = await startTestApp({
    identity: { kubernetes: { clientId: 'the-clusters', usernameClaim: 'email' } },
    lab: {
      ...physicsWith({ email: 'dora@physics.example', role: 'member', permissions: ['clusters.kubernetes'] }),
      clusters: (physics.clusters ?? []).map((cluster) =>
        cluster.name === 'alpha'
          ? { ...cluster, simulated: { computeNodes: 1, gpusPerNode: 1, applyMs: 0, kubernetes } }
          : cluster,
      ),
      grants: [
        grant('forever', 'beta', { expiresAt: soon }),
        grant('forever', 'beta', { namespace: 'team-a' }),
        grant('longest', 'beta', { namespace: 'team-a', expiresAt: later }),
        grant('longest', 'beta', { expiresAt: soon }),
        grant('longest', 'alpha'),
        { ...grant('', 'beta', { expiresAt: soon }), user: 'dora@physics.example' },
        ...oddNames.map((namespace) => grant(`in-${namespace}`, 'beta', { namespace })),
      ],
    },
  });
  const { org_id: org } = (await service.business('/me', { as: 'ada' })).body.memberships[0];
  const kubeconfig = (call: object = { as: 'dora' }, id = alpha) =>
    service.platform(`/clusters/${id}/kubeconfig?organizationId=${org}`, call);
  const held = async (name: string, id = beta) =>
    kubeconfig({ token: await tokenFor(service, `${name}@elsewhere.example`) }, id);
  for (const id of [alpha, beta]) {
    await becomes(async () => (await kubeconfig({ as: 'dora' }, id)).status, 200);
  }

  const { status, body, headers } = await kubeconfig();
  assert.deepEqual([status, headers.get('cache-control')], [200, 'no-store']);
  assert.deepEqual(Object.keys(body), ['kubeconfig']);
  const file = kubeconfigOf({
    ...{ clusterId: alpha, server: 'https://10.0.0.5:6443', certificateAuthority: pem },
    ...{ issuer: service.issuer.url, clientId: 'the-clusters', usernameClaim: 'email', staysSignedIn: true },
  });
  assert.deepEqual(parse(body.kubeconfig), JSON.parse(JSON.stringify(file)));
  assert.deepEqual(Object.keys(file.users[0]?.user ?? {}), ['exec'], 'no credential');
  assert.equal((await kubeconfig({ as: 'ada' })).body.kubeconfig, body.kubeconfig, 'nothing of the caller');

  // As long as the grant that lasts longest, and without an end where a permission admits.
  assert.equal((await held('longest')).body.accessExpiresAt, later);
  for (const one of [
    await kubeconfig({ as: 'dora' }, beta),
    await held('longest', alpha),
    await held('forever'),
  ]) {
    assert.equal('accessExpiresAt' in one.body, false);
  }
  // Admitted to one namespace, kubectl begins there.
  const contextOf = async (name: string, id = beta) =>
    parse((await held(name, id)).body.kubeconfig).contexts[0].context;
  assert.deepEqual(await contextOf('longest'), { cluster: beta, user: beta, namespace: 'team-a' });
  assert.deepEqual(await contextOf('longest', alpha), { cluster: alpha, user: alpha });
  for (const name of oddNames) {
    const { kubeconfig: text } = (await held(`in-${name}`)).body;
    for (const version of ['1.1', '1.2'] as const) {
      assert.equal(parse(text, { version }).contexts[0].context.namespace, name);
    }
    assert.match(text, new RegExp(`namespace: "${name}"`));
  }

  await setSimulated(service, alpha, { kubernetes: { ready: false } });
  refused(await eventually(kubeconfig, (reply) => reply.status !== 200), 409, 'invalid_state', /not ready/);
  await setSimulated(service, alpha, { kubernetes: {} });
  await becomes(async () => (await kubeconfig()).status, 200);
  await silence(service, alpha);
  service.advance(121_000);
  refused(await kubeconfig(), 409, 'invalid_state', /not reported/);
  service.advance(-121_000);
  for (const state of ['provisioning', 'releasing', 'released']) {
    await setCluster(service, alpha, { state });
    refused(await kubeconfig(), 409, 'invalid_state', new RegExp(state));
  }
  refused(await kubeconfig({ as: 'bob' }), 403, 'forbidden');
});

test('503 where the installation offers no sign-in to Kubernetes, to all who may ask', async () => {
  await using service = await startTestApp({ lab: { ...physics, clusters: loginless } });
  const { org_id: org } = (await service.business('/me', { as: 'ada' })).body.memberships[0];
  const path = `/clusters/${beta}/kubeconfig?organizationId=${org}`;
  const code = 'customer_kubernetes_login_not_configured';
  refused(await service.platform(path, { as: 'ada' }), 503, code, /identity\.kubernetes/);
  refused(await service.platform(path, { as: 'bob' }), 403, 'forbidden');
  const missing = path.replace(beta, '00000000-0000-4000-8000-000000000000');
  refused(await service.platform(missing, { as: 'ada' }), 404, 'not_found');
});
