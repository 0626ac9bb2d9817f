/** Rights at an API server: those that the given credentials lack, and the name that a person signs in with. */
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { createRemoteJWKSet, jwtVerify } from 'jose';
import { parse, stringify } from 'yaml';
import { describeCheck } from '../../src/cli/admin/cluster.ts';
import { kubeconfig } from '../../src/domain/kubernetes/kubeconfig.ts';
import { leastPrivilege } from '../../src/domain/kubernetes/status.ts';
import { checkKubernetes } from '../../src/sync/kubernetes/check.ts';
import { ada, kubernetes, signIn, startHarness } from '../identity/issuer/harness.ts';
import { physics, startTestApp } from '../support/app.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { fieldsOf } from '../support/fields.ts';
import { limit } from '../support/limit.ts';
import type { Rule } from './accounts.ts';
import { type FakeApi, startFakeApi } from './fake-api.ts';
import { grant, startKubernetesLab } from './lab.ts';

function settingsFor(api: FakeApi, directory: string, token: string) {
  const [certificateAuthority, tokenFile] = [join(directory, 'ca.pem'), join(directory, 'token')];
  writeFileSync(certificateAuthority, api.authority.ca);
  writeFileSync(tokenFile, token, { mode: 0o600 });
  return { server: api.url, certificateAuthority, tokenFile };
}

test('every right is asked for, those that lack are named, and the ClusterRole that gives them is printed', async () => {
  await using api = await startFakeApi();
  using directory = temporaryDirectory();
  const check = await checkKubernetes(settingsFor(api, directory.path, 'no-create'), ['trainers']);
  assert.deepEqual(
    fieldsOf(
      check.rights.filter(({ allowed }) => !allowed),
      'right',
    ),
    [
      'create clusterrolebindings (rbac.authorization.k8s.io)',
      'create rolebindings (rbac.authorization.k8s.io)',
      'bind clusterroles trainers (rbac.authorization.k8s.io)',
    ],
  );
  const { text, message, status } = await describeCheck(check);
  assert.ok(
    message?.includes(`system:serviceaccount:andromeda-system:no-create lacks 3 of 23 rights at ${api.url}.`),
  );
  assert.equal(status, 1);
  assert.match(
    message ?? '',
    /^RIGHT +ALLOWED\nlist clusterrolebindings .* yes\nwatch clusterrolebindings .* yes\ncreate clusterrolebindings .* NO\n/,
  );
  const role = parse(text);
  assert.deepEqual([role.kind, role.metadata.name], ['ClusterRole', 'andromeda']);
  assert.deepEqual(role.rules.find((rule: Rule) => rule.verbs.includes('bind')).resourceNames, [
    'view',
    'edit',
    'admin',
    'cluster-admin',
    'trainers',
  ]);
});

test('the ClusterRole that is printed is all that it takes, and every rule of it is needed', async () => {
  await using api = await startFakeApi();
  using directory = temporaryDirectory();
  const { cluster_role: role } = await checkKubernetes(settingsFor(api, directory.path, 'nobody'), []);
  await using lab = await startKubernetesLab({ api });
  lab.access.grants.push(grant('x'), grant('y', { scope: null, relation: 'kubernetes.admin' }));
  const failureWith = async (rules: readonly Rule[]) => {
    api.accounts['andromeda'] = { user: 'andromeda', rules };
    for (const key of api.bindings.all.keys()) api.bindings.drop(key);
    return (await lab.pass()).failure;
  };
  assert.equal(await failureWith(role.rules), null);
  lab.access.grants.push(grant('z', { roleId: 'gpu-quota-reader' }));
  const bindable = role.rules.map((rule) =>
    rule.verbs.includes('bind')
      ? { ...rule, resourceNames: [...(rule.resourceNames ?? []), 'gpu-quota-reader'] }
      : rule,
  );
  assert.equal(await failureWith(bindable), null);
  for (const left of bindable) {
    assert.match((await failureWith(bindable.filter((rule) => rule !== left))) ?? '', /lack the right/);
  }
});

test('docs/clusters.md has the same ClusterRole', () => {
  const page = readFileSync(new URL('../../docs/clusters.md', import.meta.url), 'utf8');
  const [, block] = /`andromeda-role\.yaml`:\n\n((?: {4}.*\n)+)/.exec(page) ?? [];
  assert.deepEqual(parse(block ?? ''), JSON.parse(JSON.stringify(leastPrivilege([]))));
});

test('with every right it says so', async () => {
  await using api = await startFakeApi();
  using directory = temporaryDirectory();
  const answer = await describeCheck(
    await checkKubernetes(settingsFor(api, directory.path, 'andromeda'), []),
  );
  assert.match(answer.message ?? '', /^system:serviceaccount:andromeda-system:andromeda has every right/);
  assert.deepEqual([answer.status, answer.text.includes('ClusterRole')], [undefined, false]);
});

test('an API server that cannot be asked is said in words, with the ClusterRole all the same', async () => {
  await using api = await startFakeApi();
  using directory = temporaryDirectory();
  const settings = settingsFor(api, directory.path, 'unknown');
  const refused = await checkKubernetes(settings, []);
  assert.match(refused.fault ?? '', /401 Unauthorized/);
  await api.stop();
  const away = await describeCheck(await checkKubernetes(settings, []));
  assert.match(away.message ?? '', /^https:\/\/127\.0\.0\.1:\d+: .*ECONNREFUSED/);
  assert.match(away.text, /kind: ClusterRole/);
  assert.equal(away.status, 1);
  const missing = await checkKubernetes({ kubeconfig: '/nowhere' }, []);
  assert.equal(missing.fault, 'Cannot read /nowhere: there is no such file.');
});

test('an operator has the rights checked of a cluster that has an API server, and no other person has', async () => {
  await using api = await startFakeApi();
  using directory = temporaryDirectory();
  const kubernetes = settingsFor(api, directory.path, 'no-patch');
  const gamma = { name: 'gamma', organization: 'physics', scheduler: 'kubernetes' as const, kubernetes };
  const roleId = 'trainers';
  await using service = await startTestApp({
    lab: {
      ...physics,
      clusters: [...(physics.clusters ?? []), gamma],
      grants: [{ user: 'eve@physics.example', cluster: 'gamma', relation: 'kubernetes.viewer', roleId }],
    },
  });
  const { body } = await service.business('/operator/clusters', { as: 'root' });
  const idOf = (name: string) => body.clusters.find((one: { name: string }) => one.name === name).cluster.id;
  const check = (name: string, as: string) =>
    service.business(`/operator/clusters/${idOf(name)}/check`, { as });

  // With the roles that grants name.
  const reply = await check('gamma', 'root');
  assert.equal(reply.status, 200);
  assert.deepEqual(
    reply.body.rights.filter((one: { allowed: boolean }) => !one.allowed).length,
    3,
    'patch, twice, and bind trainers',
  );
  assert.equal(reply.body.user, 'system:serviceaccount:andromeda-system:no-patch');

  assert.equal((await check('gamma', 'ada')).status, 403);
  assert.equal((await check('beta', 'root')).status, 409);
});

const noKubectl =
  spawnSync('kubectl', ['version', '--client']).status === 0
    ? false
    : 'kubectl is not installed (Debian package kubernetes-client)';

/** The flags of an API server that trusts the issuer (docs/clusters.md). */
interface OidcFlags {
  issuer: string;
  clientId: string;
  claim: string;
  prefix?: string;
}

/**
 * The name that an API server gives a token's person, as recorded: RS256 with the issuer's published keys, audience the
 * client ID, no leeway, an email only if it is not said to be unverified, and a prefix unless the claim is the email.
 */
async function usernameOf(token: string, { issuer, clientId, claim, prefix }: OidcFlags): Promise<string> {
  const answer = await fetch(`${issuer}/.well-known/openid-configuration`);
  const discovery = (await answer.json()) as { issuer: string; jwks_uri: string };
  assert.equal(discovery.issuer, issuer);
  const keys = createRemoteJWKSet(new URL(discovery.jwks_uri));
  const rules = { issuer, audience: clientId, algorithms: ['RS256'], clockTolerance: 0 };
  const { payload } = await jwtVerify(token, keys, rules);
  if (claim === 'email') assert.notEqual(payload['email_verified'], false);
  const name = payload[claim];
  if (typeof name !== 'string') throw new Error(`the token has no ${claim}`);
  if (prefix === '-') return name;
  return (prefix ?? (claim === 'email' ? '' : `${issuer}#`)) + name;
}

/** The arguments that the kubeconfig has kubectl's plugin run with. */
function pluginArguments(issuer: string, claim: string): string[] {
  const server = 'https://gamma.example:6443';
  const facts = { clusterId: 'c', server, issuer, clientId: kubernetes, usernameClaim: claim };
  return kubeconfig(facts).users[0]?.user.exec.args ?? [];
}

/** Signs in as the plugin oidc-login does with these arguments; returns the ID token. */
async function runPlugin(args: readonly string[]): Promise<string> {
  const [, , ...flags] = args;
  const all = (name: string) =>
    flags.filter((flag) => flag.startsWith(`--${name}=`)).map((flag) => flag.slice(name.length + 3));
  assert.deepEqual([args[0], args[1], all('grant-type')], ['oidc-login', 'get-token', ['device-code']]);
  const scope = ['openid', ...all('oidc-extra-scope')].join(' ');
  const tokens = await signIn(all('oidc-issuer-url')[0] ?? '', all('oidc-client-id')[0], scope);
  return String(tokens['id_token']);
}

test('the AuthenticationConfiguration of the documentation is one that API servers take', () => {
  const text = readFileSync(new URL('../../docs/clusters.md', import.meta.url), 'utf8');
  const [example = ''] = /^ {6}apiVersion: apiserver.config.k8s.io\/(?:.*\n {6})*.*\n/m.exec(text) ?? [];
  const { apiVersion, kind, jwt } = parse(example);
  assert.deepEqual([apiVersion, kind], ['apiserver.config.k8s.io/v1beta1', 'AuthenticationConfiguration']);
  const [{ issuer, claimValidationRules, claimMappings }] = jwt;
  const flag = (name: string) => new RegExp(`--oidc-${name}=(\\S+)`).exec(text)?.[1];
  assert.deepEqual(issuer, { url: flag('issuer-url'), audiences: [flag('client-id')] });
  // Validation of the API server: who maps `claims.email` by an expression has to use `claims.email_verified`.
  assert.equal(claimMappings.username.expression, 'claims.email.lowerAscii()');
  assert.deepEqual(claimValidationRules, [{ expression: 'claims.email_verified == true' }]);
});

const rules: { claim: string; prefix?: string }[] = [
  { claim: 'email' },
  { claim: 'email', prefix: 'lab:' },
  { claim: 'sub' },
  { claim: 'sub', prefix: '-' },
  { claim: 'preferred_username', prefix: 'lab:' },
];
test('the name in the token is the name that is bound; a token of another client is no user to an API server', async () => {
  await using harness = await startHarness();
  for (const { claim, prefix } of rules) {
    const token = await runPlugin(pluginArguments(harness.url, claim));
    const flags = {
      issuer: harness.url,
      clientId: kubernetes,
      claim,
      ...(prefix !== undefined && { prefix }),
    };
    const username = await usernameOf(token, flags);
    const settings = prefix === undefined ? {} : { usernamePrefix: prefix };
    await using lab = await startKubernetesLab({ claim, issuer: harness.url, settings });
    const person = { userId: ada.id, email: ada.email, preferredUsername: 'ada', subjects: [ada.id] };
    lab.access.grants.push(grant('ada', person));
    await lab.pass();
    assert.deepEqual(lab.bound(), [`team-a/grant_ada edit ${username}`]);
  }
  const { id_token: id, access_token: access } = await signIn(harness.url);
  for (const token of [String(id ?? access), String(access)])
    await assert.rejects(
      usernameOf(token, { issuer: harness.url, clientId: kubernetes, claim: 'email' }),
      /aud/,
    );
});

test('kubectl with that kubeconfig reaches the API server as the person', { skip: noKubectl }, async () => {
  await using harness = await startHarness();
  await using api = await startFakeApi();
  using directory = temporaryDirectory();
  const facts = { issuer: harness.url, clientId: kubernetes, usernameClaim: 'email' };
  const file = kubeconfig({
    clusterId: '7b6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50',
    server: api.url,
    certificateAuthority: api.authority.ca,
    ...facts,
  });
  const token = await runPlugin(pluginArguments(harness.url, 'email'));
  api.signIn = async (given) => {
    const flags = { issuer: harness.url, clientId: kubernetes, claim: 'email' };
    const user = await usernameOf(given, flags).catch(() => undefined);
    return user === undefined ? undefined : { user, rules: [] };
  };
  // Where kubectl finds its plugins: this one has signed in already.
  const credential = {
    apiVersion: 'client.authentication.k8s.io/v1',
    kind: 'ExecCredential',
    status: { token },
  };
  const plugin = join(directory.path, 'kubectl-oidc_login');
  writeFileSync(plugin, `#!/bin/sh\ncat <<'END'\n${JSON.stringify(credential)}\nEND\n`, { mode: 0o755 });
  const path = join(directory.path, 'kubeconfig');
  writeFileSync(path, stringify(file));
  const kubectl = (...args: string[]) =>
    promisify(execFile)('kubectl', ['--kubeconfig', path, ...args], {
      env: { ...process.env, PATH: `${directory.path}:${process.env['PATH']}`, HOME: directory.path },
      timeout: limit(20_000),
    });
  const { stdout } = await kubectl('get', '--raw', '/version');
  assert.equal(JSON.parse(stdout).gitVersion, 'v1.34.9');
  assert.equal(api.asked.at(-1)?.user, ada.email);
  await assert.rejects(kubectl('get', '--raw', '/api/v1/nodes'), (error: { stderr: string }) => {
    assert.match(error.stderr, /User "ada@physics\.example" cannot list resource "nodes"/);
    return true;
  });
});
