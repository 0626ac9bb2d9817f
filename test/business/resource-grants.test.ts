import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Lab } from '../../src/domain/clusters/lab.ts';
import { alpha, beta, loginless, physics, startTestApp } from '../support/app.ts';
import { refused } from '../support/refused.ts';

const day = 86_400_000;
const after = (ms: number) => new Date(Date.now() + ms).toISOString();

const viewer = {
  ...{ user: 'guest@elsewhere.example', cluster: 'alpha', relation: 'kubernetes.viewer' as const },
};
const inTwoDays = after(2 * day);
const lab: Lab = {
  ...{ ...physics, clusters: loginless },
  grants: [
    { ...viewer, cluster: 'beta', relation: 'kubernetes.developer', namespace: 'team-a', roleId: 'trainers' },
    { ...viewer, expiresAt: inTwoDays },
    { ...viewer, namespace: 'b', expiresAt: after(day) },
  ],
};

test('resource-access says by which way a gate is passed', async () => {
  await using service = await startTestApp({ lab });
  const guest = { token: await service.issuer.token('guest', { email: 'guest@elsewhere.example' }) };
  // The holder of grants sees those that are live without membership.
  const { memberships, ...me } = (await service.business('/me', guest)).body;
  assert.deepEqual([memberships, 'default_org_id' in me], [[], false]);
  const grants = async (query = '', as: object = guest) =>
    (await service.business(`/me/resource-grants${query}`, as)).body.grants;
  const [namespaced, whole, ...more] = await grants();
  assert.deepEqual(['expires_at' in namespaced, 'scope' in whole, more.length], [false, false, 1]);
  assert.equal(whole.expires_at, inTwoDays);
  assert.equal((await grants('?kind=kubernetes_cluster')).length, 3);
  assert.deepEqual([await grants('?kind=machine'), await grants('', { as: 'ada' })], [[], []]);

  const ask = (query: string, as: object = guest) => service.business(`/resource-access?${query}`, as);
  const access = (id: string, name: string, as: object = guest, scope = '') =>
    ask(`kind=kubernetes_cluster&id=${id}&gate=${name}${scope && `&scope=${scope}`}`, as);
  const via = async (...of: Parameters<typeof access>) => (await access(...of)).body.via;

  const { body: owner } = await access(beta, 'kubernetes', { as: 'ada' });
  assert.deepEqual([owner.via, owner.gate, owner.id], ['organization', 'kubernetes', beta]);
  assert.equal(await via(beta, 'read', { as: 'bob' }), 'organization');
  assert.equal((await access(beta, 'kubernetes', { as: 'bob' })).status, 403);
  const { body: granted } = await access(beta, 'read');
  assert.deepEqual([granted.via, 'expires_at' in granted], ['grant', false]);
  assert.match(granted.grant_id, /^grant_/);
  assert.equal(await via(beta, 'read', { as: 'root' }), 'staff');
  // As for the kubeconfig.
  refused(await access(beta, 'kubernetes', { as: 'root' }), 403, 'forbidden');
  // A namespaced grant reaches its namespace and no other; some part is reachable.
  assert.equal(await via(beta, 'kubernetes', guest, 'team-a'), 'grant');
  assert.equal((await access(beta, 'kubernetes', guest, 'team-b')).status, 403);
  assert.equal(await via(beta, 'kubernetes'), 'grant');
  // The admitting grant that lasts longest is named.
  assert.equal((await access(alpha, 'kubernetes', guest, 'b')).body.expires_at, inTwoDays);

  for (const query of [
    `id=${beta}&gate=read`,
    `kind=kubernetes_cluster&gate=read`,
    `kind=kubernetes_cluster&id=${beta}`,
    `kind=machine&id=${beta}&gate=read`,
    `kind=kubernetes_cluster&id=${beta}&gate=ssh`,
  ])
    refused(await ask(query), 422, 'invalid_request');
  assert.equal((await access('00000000-0000-4000-8000-000000000000', 'read')).status, 403);
});
