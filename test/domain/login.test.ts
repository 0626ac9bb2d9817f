import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decideLogin, type LoginFacts, parseLoginName } from '../../src/domain/login.ts';
import { mulberry } from '../support/random.ts';

const clusterId = '7b6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50';
const now = 1_000_000_000;
const facts: LoginFacts = {
  clusterId,
  clusterState: 'active',
  userId: 'user_1',
  username: 'ada',
  member: true,
  role: 'member',
  permissions: ['clusters.ssh'],
  shell: '/bin/zsh',
  key: { id: 'ssh_key_1', fingerprint: 'SHA256:a', active: true },
  inManifest: true,
  takesAccessList: true,
  confirmed: { loginState: 'ready', keyFingerprints: ['SHA256:a', 'SHA256:b'] },
  loginNodes: [
    { host: '10.0.0.5', port: 22, hostKey: 'ssh-ed25519 AAAA' },
    { host: '10.0.0.6', port: 22, hostKey: 'ssh-ed25519 BBBB' },
  ],
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
      loginNode: facts.loginNodes[0],
    },
  });
});

/** In the order in which they count; each is true together with all that come behind it. */
const refusals: [string, Partial<LoginFacts>, string][] = [
  ['whose key is revoked', { key: { ...facts.key, active: false } }, 'key_revoked'],
  ['who is no longer a member, or whose organization is retired', { member: false }, 'access_removed'],
  ['who lost SSH access', { permissions: ['clusters.read'] }, 'access_removed'],
  ['on a cluster that is not active', { clusterState: 'releasing' }, 'cluster_inactive'],
  ['on a cluster that has not reported lately', { observedAt: now - 120_001 }, 'observation_stale'],
  ['whom the cluster does not know', { confirmed: undefined }, 'projection_pending'],
  ['on a cluster without a login node that answers', { loginNodes: [] }, 'gateway_unavailable'],
];
for (const [index, [who, fact, reason]] of refusals.entries()) {
  const behind = Object.assign({}, ...refusals.slice(index).map(([, later]) => later)) as Partial<LoginFacts>;
  test(`nobody is let in ${who}: ${reason}`, () => {
    for (const change of [fact, behind]) {
      const decision = decideLogin({ ...facts, ...change }, now);
      assert.ok(!decision.allowed);
      assert.equal(decision.reason, reason);
      assert.equal(decision.disclose, true);
      assert.deepEqual(decision.subject, { clusterId, userId: 'user_1', keyId: 'ssh_key_1' });
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

const said: [string, Partial<LoginFacts>, RegExp][] = [
  ['a revoked key', { key: { ...facts.key, active: false } }, /key was revoked\. Register another/],
  ['access removed', { permissions: [] }, /no SSH access.*Ask an owner/],
  [
    'an inactive cluster',
    { clusterState: 'releasing' },
    /releasing \(cluster_inactive\); .* when it is active/,
  ],
  ['a stale report', { observedAt: 0 }, /\(observation_stale\)\. Wait for its next report/],
  [
    'a list without them',
    { confirmed: undefined, inManifest: false },
    /\(access_not_projected\)\. Try again in a few seconds/,
  ],
  ['an access not applied', { confirmed: undefined }, /\(projection_pending\)\. Try again in a few seconds/],
  [
    'a fault on the cluster',
    { confirmed: undefined, failure: 'no disk' },
    /fault.*\(projection_pending\)\. Please tell your administrator/,
  ],
  ['a cluster without accounts', { takesAccessList: false }, /Kubernetes only.*Use kubectl/],
  ['no login node', { loginNodes: [] }, /\(gateway_unavailable\)\. Try again in a minute/],
];
for (const [what, fact, message] of said) {
  test(`cluster not ready: ${what} is told with the readiness reason and what to wait for`, () => {
    const decision = decideLogin({ ...facts, ...fact }, now);
    assert.ok(!decision.allowed);
    assert.match(decision.message, message);
    assert.ok(decision.message.length <= 140, 'one line');
  });
}

const open = { loginNode: { host: '10.0.0.6', port: 22 }, graceMs: 300_000 };

test('an open session continues on its own login node, whichever answers first', () => {
  const decision = decideLogin(facts, now, open);
  assert.deepEqual(decision.allowed && decision.route.loginNode, facts.loginNodes[1]);
  const elsewhere = decideLogin({ ...facts, loginNodes: facts.loginNodes.slice(0, 1) }, now, open);
  assert.deepEqual(elsewhere.allowed && elsewhere.route.loginNode, facts.loginNodes[0]);
});

test('an open session outlives five minutes without an observation, and no more; a new login two', () => {
  const at = (age: number) => ({ ...facts, observedAt: now - age });
  assert.equal(decideLogin(at(300_000), now, open).allowed, true);
  assert.equal(decideLogin(at(300_001), now, open).allowed, false);
  assert.equal(decideLogin(at(120_000), now).allowed, true);
  assert.equal(decideLogin(at(120_001), now).allowed, false);
});

for (const [who, fact, reason] of refusals.filter(([, , name]) => name !== 'observation_stale')) {
  test(`the grace of an open session is for a silent cluster only: it ends for somebody ${who}`, () => {
    const decision = decideLogin({ ...facts, observedAt: now - 200_000, ...fact }, now, open);
    assert.equal(decision.allowed === false && decision.reason, reason);
  });
}

const names32 = (random: () => number) => {
  const letters = 'abcdef0123456789-._ABZ\n\0é\u202e';
  const pick = () => letters[Math.floor(random() * letters.length)] ?? '';
  const base = random() < 0.5 ? `${clusterId}.` : '';
  return base + Array.from({ length: Math.floor(random() * 60) }, pick).join('');
};

test('fuzz: a login name is taken apart only when it is exactly <cluster-id>.<username>', (t) => {
  const seed = Number(process.env['FUZZ_SEED'] ?? Date.now() % 1_000_000_007);
  t.diagnostic(`FUZZ_SEED=${seed}`);
  const random = mulberry(seed);
  const until = Date.now() + Number(process.env['FUZZ_SECONDS'] ?? 1) * 1000;
  for (let round = 0; round % 1000 !== 0 || Date.now() < until; round += 1) {
    const name = names32(random);
    const parsed = parseLoginName(name);
    const context = `FUZZ_SEED=${seed} ${JSON.stringify(name)}`;
    if (parsed) assert.equal(`${parsed.clusterId}.${parsed.username}`, name.toLowerCase(), context);
    if (parsed) assert.match(parsed.username, /^[a-z][a-z0-9_-]{0,31}$/, context);
    const isName = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.[a-z][a-z0-9_-]{0,31}$/.test(
      name.slice(0, 36).toLowerCase() + name.slice(36),
    );
    assert.equal(parsed !== undefined, isName && !name.endsWith('\n'), context);
  }
});
