import assert from 'node:assert/strict';
import { test } from 'node:test';
import { kubeconfig } from '../../src/domain/kubernetes/kubeconfig.ts';
import { quantity } from '../../src/domain/kubernetes/report.ts';
import { fieldsOf } from '../support/fields.ts';

const id = '7b6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50';
const facts = {
  clusterId: id,
  server: 'https://10.0.0.5:6443',
  issuer: 'https://login.example.org',
  clientId: 'andromeda-kubernetes',
  usernameClaim: 'email',
};

test('cluster, context and user are named after the cluster ID, and the context is the current one', () => {
  const file = kubeconfig(facts);
  assert.deepEqual([file.apiVersion, file.kind, file['current-context']], ['v1', 'Config', id]);
  assert.deepEqual(file.clusters, [{ name: id, cluster: { server: facts.server } }]);
  assert.deepEqual(file.contexts, [{ name: id, context: { cluster: id, user: id } }]);
  assert.deepEqual(fieldsOf(file.users, 'name'), [id]);
});

test('the user is kubectl oidc-login get-token with the device-code grant against the issuer, and nothing else', () => {
  const [user] = kubeconfig(facts).users;
  assert.deepEqual(Object.keys(user?.user ?? {}), ['exec']);
  const { command, args, apiVersion, interactiveMode } = user?.user.exec ?? {};
  assert.equal(apiVersion, 'client.authentication.k8s.io/v1');
  assert.equal(interactiveMode, 'IfAvailable');
  assert.equal(command, 'kubectl');
  assert.deepEqual(args, [
    'oidc-login',
    'get-token',
    '--oidc-issuer-url=https://login.example.org',
    '--oidc-client-id=andromeda-kubernetes',
    '--oidc-extra-scope=email',
    '--grant-type=device-code',
  ]);
});

test('the scope that brings the claim is asked for, and to stay signed in where that is offered', () => {
  for (const [usernameClaim, scopes] of [
    ['email', ['email']],
    ['sub', []],
    ['preferred_username', ['profile']],
  ] as const)
    for (const staysSignedIn of [false, true]) {
      const [user] = kubeconfig({ ...facts, usernameClaim, staysSignedIn }).users;
      assert.deepEqual(
        user?.user.exec.args.filter((arg) => arg.includes('scope')),
        [...scopes, ...(staysSignedIn ? ['offline_access'] : [])].map((one) => `--oidc-extra-scope=${one}`),
      );
    }
});

test('the cluster’s own certificate authority and a grant’s namespace are in it where there are any', () => {
  const pem = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';
  const file = kubeconfig({ ...facts, certificateAuthority: pem, namespace: 'team-a' });
  const data = file.clusters[0]?.cluster['certificate-authority-data'] ?? '';
  assert.equal(Buffer.from(data, 'base64').toString(), pem);
  assert.equal(file.contexts[0]?.context.namespace, 'team-a');
});

test('where the issuer has a certificate authority of its own, the sign-in gets its file', () => {
  const argsOf = (issuerAuthority?: string) =>
    kubeconfig({ ...facts, issuerAuthority }).users[0]?.user.exec.args;
  assert.ok(argsOf('PEM')?.includes(`--certificate-authority-data=${Buffer.from('PEM').toString('base64')}`));
  assert.ok(!argsOf()?.some((arg) => arg.startsWith('--certificate-authority')));
});

const table: [unknown, number | undefined][] = [
  ['16', 16],
  ['15500m', 15.5],
  ['64000Mi', 64000 * 2 ** 20],
  ['10Ti', 10 * 2 ** 40],
  ['1.5Gi', 1.5 * 2 ** 30],
  ['2k', 2000],
  ['1e3', 1000],
  ['12E', 12e18],
  ['1698756925985', 1_698_756_925_985],
  [107_374_182_400, 107_374_182_400],
  ['', undefined],
  ['many', undefined],
  ['10TiB', undefined],
  [undefined, undefined],
  [{}, undefined],
];
for (const [text, number] of table) {
  test(`the quantity ${JSON.stringify(text)} is ${number}`, () => assert.equal(quantity(text), number));
}
