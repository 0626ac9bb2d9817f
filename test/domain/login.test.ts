import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decideLogin, type LoginFacts, parseLoginName } from '../../src/domain/login.ts';

const clusterId = '7b6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50';
const now = 1_000_000_000;
const facts: LoginFacts = {
  clusterId,
  clusterState: 'active',
  userId: 'user_1',
  username: 'ada',
  role: 'member',
  permissions: ['clusters.ssh'],
  shell: '/bin/zsh',
  key: { id: 'ssh_key_1', fingerprint: 'SHA256:a', active: true },
  confirmed: { loginState: 'ready', keyFingerprints: ['SHA256:a', 'SHA256:b'] },
  loginNode: { host: '10.0.0.5', port: 22, hostKey: 'ssh-ed25519 AAAA' },
  observedAt: now,
  failure: null,
};

const names: [string, { clusterId: string; username: string } | undefined][] = [
  [`${clusterId}.ada`, { clusterId, username: 'ada' }],
  [`${clusterId.toUpperCase()}.ada`, { clusterId, username: 'ada' }],
  [`${clusterId}.a_b-9`, { clusterId, username: 'a_b-9' }],
  [`${clusterId}.a${'b'.repeat(31)}`, { clusterId, username: `a${'b'.repeat(31)}` }],
  [`${clusterId}.a${'b'.repeat(32)}`, undefined],
  ['ada', undefined],
  ['', undefined],
  [clusterId, undefined],
  [`${clusterId}.`, undefined],
  [`${clusterId}-ada`, undefined],
  [`${clusterId}.Ada`, undefined],
  [`${clusterId}.a.b`, undefined],
  [`${clusterId}.ada\n`, undefined],
  [`alpha.ada`, undefined],
];
for (const [name, expected] of names) {
  test(`login name ${JSON.stringify(name)} ${expected ? 'is taken apart' : 'is none'}`, () => {
    assert.deepEqual(parseLoginName(name), expected);
  });
}

test('whoever is confirmed on every count is let in, with the shell they asked for', () => {
  assert.deepEqual(decideLogin(facts, now), {
    allowed: true,
    route: {
      clusterId,
      userId: 'user_1',
      username: 'ada',
      keyId: 'ssh_key_1',
      shell: '/bin/zsh',
      loginNode: facts.loginNode,
    },
  });
});

/** In the order in which they count; each is true together with all that come behind it. */
const refusals: [string, Partial<LoginFacts>, string][] = [
  ['whose key is revoked', { key: { ...facts.key, active: false } }, 'key_revoked'],
  ['who lost SSH access', { permissions: ['clusters.read'] }, 'access_removed'],
  ['on a cluster that is not active', { clusterState: 'releasing' }, 'cluster_inactive'],
  ['on a cluster that has not reported lately', { observedAt: now - 120_001 }, 'observation_stale'],
  ['whom the cluster does not know', { confirmed: undefined }, 'projection_pending'],
  ['on a cluster without a login node that answers', { loginNode: undefined }, 'gateway_unavailable'],
];
for (const [index, [who, fact, reason]] of refusals.entries()) {
  const behind = Object.assign({}, ...refusals.slice(index).map(([, later]) => later)) as Partial<LoginFacts>;
  test(`nobody is let in ${who}: ${reason}`, () => {
    for (const change of [fact, behind]) {
      const decision = decideLogin({ ...facts, ...change }, now);
      assert.ok(!decision.allowed);
      assert.equal(decision.reason, reason);
      assert.equal(decision.disclose, true);
    }
  });
}

const unconfirmed: [string, LoginFacts['confirmed']][] = [
  ['waits for a key there', { loginState: 'waiting_for_key', keyFingerprints: ['SHA256:a'] }],
  ['is known there by other keys', { loginState: 'ready', keyFingerprints: ['SHA256:b'] }],
];
for (const [who, confirmed] of unconfirmed) {
  test(`nobody is let in who ${who}`, () => {
    const decision = decideLogin({ ...facts, confirmed }, now);
    assert.equal(decision.allowed === false && decision.reason, 'projection_pending');
  });
}

test('a key that is not that person’s is told nothing', () => {
  assert.deepEqual(decideLogin(undefined, now), {
    allowed: false,
    reason: 'unknown',
    message: 'Permission denied.',
    disclose: false,
  });
});

test('a cluster that never reported lets nobody in', () => {
  const decision = decideLogin({ ...facts, observedAt: undefined }, now);
  assert.equal(decision.allowed === false && decision.reason, 'observation_stale');
});
