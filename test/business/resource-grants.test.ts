import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Lab } from '../../src/domain/clusters/lab.ts';
import { alpha, beta, physics, startTestApp } from '../support/app.ts';

const minute = 60_000;
const after = (ms: number) => new Date(Date.now() + ms).toISOString();

const viewer = {
  ...{ user: 'guest@elsewhere.example', cluster: 'alpha', relation: 'kubernetes.viewer' as const },
};
const labWith = (inTwoMinutes: string): Lab => ({
  ...physics,
  grants: [
    { ...viewer, cluster: 'beta', relation: 'kubernetes.developer', namespace: 'team-a', roleId: 'trainers' },
    { ...viewer, expiresAt: inTwoMinutes },
    { ...viewer, namespace: 'b', expiresAt: after(minute) },
  ],
});

test('resource grants', async (t) => {
  const inTwoMinutes = after(2 * minute);
  await using service = await startTestApp({ lab: labWith(inTwoMinutes) });
  const token = await service.issuer.token('guest', { email: 'guest@elsewhere.example' });
  const guest = { token };
  const access = (query: string, as: object = guest) => service.business(`/resource-access?${query}`, as);
  const gate = (id: string, name: string, scope?: string) =>
    `kind=kubernetes_cluster&id=${id}&gate=${name}${scope === undefined ? '' : `&scope=${scope}`}`;

  await t.test('the holder sees their live grants without membership', async () => {
    const me = await service.business('/me', guest);
    assert.deepEqual(me.body.memberships, []);
    assert.equal('default_org_id' in me.body, false);
    const { status, body } = await service.business('/me/resource-grants', guest);
    assert.equal(status, 200);
    assert.equal(body.grants.length, 3);
    const [namespaced, whole] = body.grants;
    assert.equal('expires_at' in namespaced, false);
    assert.equal(whole.expires_at, inTwoMinutes);
    assert.equal('scope' in whole, false);
    const kind = await service.business('/me/resource-grants?kind=kubernetes_cluster', guest);
    assert.equal(kind.body.grants.length, 3);
    assert.deepEqual((await service.business('/me/resource-grants?kind=machine', guest)).body.grants, []);
    assert.deepEqual((await service.business('/me/resource-grants', { as: 'ada' })).body.grants, []);
  });

  await t.test('resource-access says by which way a gate is passed', async () => {
    const owner = await access(gate(beta, 'kubernetes'), { as: 'ada' });
    assert.equal(owner.body.via, 'organization');
    assert.equal(owner.body.gate, 'kubernetes');
    assert.equal(owner.body.id, beta);
    assert.equal((await access(gate(beta, 'read'), { as: 'bob' })).body.via, 'organization');
    assert.equal((await access(gate(beta, 'kubernetes'), { as: 'bob' })).status, 403);
    const granted = await access(gate(beta, 'read'));
    assert.equal(granted.body.via, 'grant');
    assert.match(granted.body.grant_id, /^grant_/);
    assert.equal('expires_at' in granted.body, false);
    assert.equal((await access(gate(beta, 'read'), { as: 'root' })).body.via, 'staff');
    const operator = await access(gate(beta, 'kubernetes'), { as: 'root' });
    assert.deepEqual([operator.status, operator.body.code], [403, 'forbidden'], 'as for the kubeconfig');
  });

  await t.test('a namespaced grant reaches its namespace and no other', async () => {
    assert.equal((await access(gate(beta, 'kubernetes', 'team-a'))).status, 200);
    assert.equal((await access(gate(beta, 'kubernetes', 'team-b'))).status, 403);
    assert.equal((await access(gate(beta, 'kubernetes'))).status, 200, 'some part is reachable');
  });

  await t.test('the admitting grant that lasts longest is named', async () => {
    assert.equal((await access(gate(alpha, 'kubernetes', 'b'))).body.expires_at, inTwoMinutes);
  });

  await t.test('what is missing or not one of the choices is 422', async () => {
    for (const query of [
      `id=${beta}&gate=read`,
      `kind=kubernetes_cluster&gate=read`,
      `kind=kubernetes_cluster&id=${beta}`,
      `kind=machine&id=${beta}&gate=read`,
      `kind=kubernetes_cluster&id=${beta}&gate=ssh`,
    ]) {
      const { status, body } = await access(query);
      assert.equal(status, 422, query);
      assert.equal(body.code, 'invalid_request');
    }
    assert.equal((await access(gate('00000000-0000-4000-8000-000000000000', 'read'))).status, 403);
  });
});
