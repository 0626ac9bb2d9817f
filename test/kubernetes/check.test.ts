/** `andromeda admin cluster check`: which rights the given credentials lack, and what gives them. */

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { describeCheck } from '../../src/cli/admin/cluster.ts';
import { leastPrivilege } from '../../src/domain/kubernetes/status.ts';
import { checkKubernetes } from '../../src/sync/kubernetes/check.ts';
import { physics, startTestApp } from '../support/app.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { fieldsOf } from '../support/fields.ts';
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
