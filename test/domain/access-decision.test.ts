import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type AccessFacts,
  type AccessQuestion,
  decideAccess,
  isFitKey,
  isReadinessObstacle,
  type Obstacle,
  readinessAdvice,
} from '../../src/domain/access/decision.ts';
import { accessFacts } from '../support/access.ts';

const first = { host: '10.0.0.5', port: 22, hostKey: 'ssh-ed25519 AAAA' };
const second = { host: '10.0.0.6', port: 22, hostKey: 'ssh-ed25519 BBBB' };
const facts: AccessFacts = {
  ...{ ...accessFacts, activeKeys: ['SHA256:a', 'SHA256:b'] },
  policy: { maxHoursWithoutSignIn: 90 * 24, endOpenSessions: true, keyMaxDays: 365 },
  confirmed: { loginState: 'ready', keyFingerprints: ['SHA256:a', 'SHA256:b', 'SHA256:gone'] },
  loginNodes: [first, second].map((one) => ({ ...one, up: true })),
};
/** What `ssh-access` asks, and what the gateway asks. */
const allKeys: AccessQuestion = {};
const thisKey: AccessQuestion = { fingerprint: 'SHA256:a' };
const open = { loginNode: { host: '10.0.0.6', port: 22 }, graceMs: 300_000 };

const obstacle = (changes: Partial<AccessFacts>, question: AccessQuestion = thisKey) => {
  const decision = decideAccess({ ...facts, ...changes }, question);
  return decision.allowed ? undefined : decision.obstacle;
};

test('a person who is confirmed on every count is let in, on the best login node', () => {
  for (const question of [allKeys, thisKey])
    assert.deepEqual(decideAccess(facts, question), { allowed: true, loginNode: first });
});

/** In the order in which they count; each is true together with all that come behind it. */
const ladder: [Partial<AccessFacts>, Obstacle, string | undefined][] = [
  [{ permissions: ['clusters.read'] }, 'access_removed', undefined],
  [{ signIn: { ms: 90 * 86_400_000, leftMs: -1 } }, 'sign_in_lapsed', 'access_not_projected'],
  [{ clusterState: 'releasing' }, 'cluster_inactive', 'cluster_inactive'],
  [{ username: undefined }, 'named_user_required', 'named_user_required'],
  [{ isListed: false }, 'access_not_projected', 'access_not_projected'],
  [{ loginNodes: [] }, 'gateway_unavailable', 'gateway_unavailable'],
  [{ observedMsAgo: 120_001 }, 'observation_stale', 'observation_stale'],
  [{ confirmed: undefined }, 'projection_pending', 'projection_pending'],
];
for (const [index, [fact, expected, readiness]] of ladder.entries()) {
  const behind = Object.assign({}, ...ladder.slice(index).map(([later]) => later)) as Partial<AccessFacts>;
  test(`${expected} counts before everything that comes behind it, for one key and for all`, () => {
    for (const question of [allKeys, thisKey])
      for (const changes of [fact, behind]) {
        const decision = decideAccess({ ...facts, ...changes }, question);
        assert.ok(!decision.allowed);
        assert.deepEqual([decision.obstacle, decision.readiness], [expected, readiness]);
      }
  });
}

test('a revoked key counts before everything but access itself; without any active key it is no_keys', () => {
  const all = Object.assign({}, ...ladder.map(([fact]) => fact)) as Partial<AccessFacts>;
  assert.equal(obstacle({ ...all, permissions: facts.permissions, activeKeys: ['SHA256:b'] }), 'key_revoked');
  assert.equal(obstacle({ ...all, isMember: false, activeKeys: ['SHA256:b'] }), 'access_removed');
  assert.equal(obstacle({ activeKeys: [] }), 'key_revoked');
  assert.equal(obstacle({ activeKeys: [], isListed: false }, allKeys), 'no_keys');
  assert.equal(obstacle({ activeKeys: [], username: undefined }, allKeys), 'named_user_required');
});

const staffPolicy = { securityKeys: true, requireSecurityKeys: 'staff' } as const;
const ended = [{ key: 'clusters.configure', expiresAt: '2030-01-01T09:00:00.000Z' }] as const;
const knownAs = (loginState: 'ready' | 'waiting_for_key', key: string) => ({
  confirmed: { loginState, keyFingerprints: [key] },
});
const lapsed = { activeKeys: ['SHA256:b'], lapsedKeys: ['SHA256:a'] };
const unfit = { activeKeys: ['SHA256:b'], unfitKeys: ['SHA256:a'] };
const added = { activeKeys: ['SHA256:a', 'SHA256:c'] };
const addedKey = { fingerprint: 'SHA256:c' };
const noLogins = { takesAccessList: false, isListed: false, loginNodes: [] };
const more: [string, Partial<AccessFacts>, AccessQuestion, Obstacle | undefined][] = [
  ['one whose permission ended', { permissions: [], ended: [...ended] }, thisKey, 'access_ended'],
  ['one who left, or whose organization is retired', { isMember: false }, thisKey, 'access_removed'],
  ['an owner, who holds every permission', { role: 'owner', permissions: [] }, thisKey, undefined],
  ['a cluster that never reported', { observedMsAgo: undefined }, allKeys, 'observation_stale'],
  ['a report exactly two minutes old', { observedMsAgo: 120_000 }, thisKey, undefined],
  ['one who waits for a key there', knownAs('waiting_for_key', 'SHA256:a'), thisKey, 'projection_pending'],
  ['one known by revoked keys only', knownAs('ready', 'SHA256:gone'), allKeys, 'projection_pending'],
  ['a key that lapsed', lapsed, thisKey, 'key_lapsed'],
  ['one of whose keys another lapsed', { lapsedKeys: ['SHA256:c'] }, allKeys, undefined],
  ['one whose keys all lapsed', { ...lapsed, activeKeys: [] }, allKeys, 'key_lapsed'],
  ['a security key where they are not accepted', unfit, thisKey, 'security_key_off'],
  ['a plain key of the staff', { ...unfit, policy: staffPolicy }, thisKey, 'security_key_required'],
  ['one of whose keys another is of such a type', { unfitKeys: ['SHA256:c'] }, allKeys, undefined],
  [
    'one whose keys are all of such a type',
    { ...unfit, activeKeys: [], policy: staffPolicy },
    allKeys,
    'security_key_required',
  ],
  ['a revoked key next to such a one', { activeKeys: [], unfitKeys: ['SHA256:b'] }, thisKey, 'key_revoked'],
  ['a key next to one that waits', added, thisKey, undefined],
  ['a key that waits, itself', added, addedKey, 'projection_pending'],
  ['all keys, of which one waits', added, allKeys, 'projection_pending'],
  ['a fault on the cluster', { confirmed: undefined, failure: 'no disk' }, allKeys, 'projection_failed'],
  ['a fault that is another person’s', { failure: 'no disk' }, thisKey, undefined],
  ['a cluster without accounts and login nodes', noLogins, allKeys, 'no_login_nodes'],
];
const [plain, sk] = ['ssh-ed25519', 'sk-ssh-ed25519@openssh.com'];
const fit: [policy: AccessFacts['policy'], type: string, staff: boolean, others: boolean][] = [
  [{}, plain, true, true],
  [{}, sk, false, false],
  [{ securityKeys: true }, plain, true, true],
  [{ securityKeys: true }, sk, true, true],
  [staffPolicy, plain, false, true],
  [staffPolicy, sk, true, true],
  // Refused by the configuration; where it is so all the same, no one on the staff is let in.
  [{ requireSecurityKeys: 'staff' }, plain, false, true],
  [{ requireSecurityKeys: 'staff' }, sk, false, false],
  [{ securityKeys: true }, 'ecdsa-sha2-nistp256', false, false],
];
for (const [policy, type, staff, others] of fit) {
  test(`keys of type ${type} with ${JSON.stringify(policy)}: staff ${staff}, others ${others}`, () => {
    assert.equal(isFitKey(type, { isStaff: true, policy }), staff);
    assert.equal(isFitKey(type, { isStaff: false, policy }), others);
  });
}

for (const [what, changes, question, expected] of more) {
  test(`${what}: ${expected ?? 'let in'}`, () => assert.equal(obstacle(changes, question), expected));
}

const messages: [Partial<AccessFacts>, RegExp][] = [
  [{ activeKeys: [] }, /key was revoked\. Register another/],
  [
    { signIn: { ms: 90 * 86_400_000, leftMs: -1 } },
    /not signed in for 90 days.*`andromeda auth login`, and it comes back at once\.$/,
  ],
  [
    { activeKeys: [], lapsedKeys: ['SHA256:a'] },
    /lapsed \(no_keys\): keys are good for 365 days\. Register another/,
  ],
  [{ permissions: [] }, /no SSH access.*Ask an owner/],
  [{ clusterState: 'releasing' }, /releasing \(cluster_inactive\); .* when it is active/],
  [{ observedMsAgo: Number.POSITIVE_INFINITY }, /\(observation_stale\)\. Wait for its next report/],
  [{ isListed: false }, /\(access_not_projected\)\. Try again in a few seconds/],
  [{ confirmed: undefined }, /\(projection_pending\)\. Try again in a few seconds/],
  [{ confirmed: undefined, failure: 'x' }, /fault.*\(projection_pending\)\. Please tell your administrator/],
  [{ takesAccessList: false }, /Kubernetes only.*Use kubectl/],
  [{ loginNodes: [] }, /\(gateway_unavailable\)\. Try again in a minute/],
];
for (const [changes, message] of messages) {
  test(`one line says ${message.source}`, () => {
    const decision = decideAccess({ ...facts, ...changes }, thisKey);
    assert.ok(!decision.allowed);
    assert.match(decision.message, message);
    assert.ok(decision.message.length <= 140);
  });
}

test('an open session continues on its own login node, whichever answers first', () => {
  const decision = decideAccess(facts, { ...thisKey, open });
  assert.deepEqual(decision.allowed && decision.loginNode, second);
  const loginNodes = facts.loginNodes.slice(0, 1);
  const elsewhere = decideAccess({ ...facts, loginNodes }, { ...thisKey, open });
  assert.deepEqual(elsewhere.allowed && elsewhere.loginNode, first);
});

test('an open session continues on a login node that takes no new logins; these go to another, or wait', () => {
  const loginNodes = [
    { ...first, up: true },
    { ...second, up: false },
  ];
  const loginNodeOf = (changes: Partial<AccessFacts>, question: AccessQuestion) => {
    const decision = decideAccess({ ...facts, ...changes }, question);
    return decision.allowed ? decision.loginNode : decision.obstacle;
  };
  assert.deepEqual(loginNodeOf({ loginNodes }, { ...thisKey, open }), second);
  assert.deepEqual(loginNodeOf({ loginNodes: loginNodes.toReversed() }, thisKey), first);
  const down = { loginNodes: loginNodes.slice(1) };
  assert.deepEqual(loginNodeOf(down, { ...thisKey, open }), second);
  for (const question of [thisKey, allKeys]) assert.equal(loginNodeOf(down, question), 'gateway_unavailable');
  assert.equal(loginNodeOf({ ...down, permissions: [] }, { ...thisKey, open }), 'access_removed');
});

test('an open session outlives five minutes without an observation, and no more; a new login two', () => {
  const at = (age: number, question: AccessQuestion) => obstacle({ observedMsAgo: age }, question);
  assert.equal(at(300_000, { ...thisKey, open }), undefined);
  assert.equal(at(300_001, { ...thisKey, open }), 'observation_stale');
  assert.equal(at(120_000, thisKey), undefined);
  assert.equal(at(120_001, thisKey), 'observation_stale');
});

test('the grace of an open session is for a silent cluster only', () => {
  for (const [fact, expected] of ladder) {
    if (expected === 'observation_stale') continue;
    assert.equal(obstacle({ observedMsAgo: 200_000, ...fact }, { ...thisKey, open }), expected);
  }
});

test('without endOpenSessions an open session goes on without a sign-in; a new login does not', () => {
  const lapsed = { signIn: { ms: 1, leftMs: 0 }, policy: { maxHoursWithoutSignIn: 12 } };
  assert.equal(obstacle(lapsed, { ...thisKey, open }), undefined);
  assert.equal(obstacle(lapsed, thisKey), 'sign_in_lapsed');
});

test('the client has advice for each word of ssh-access, and for no other', () => {
  const words = ladder.flatMap(([, , readiness]) => readiness ?? []);
  for (const word of [...words, 'no_keys']) {
    assert.ok(isReadinessObstacle(word));
    assert.match(readinessAdvice[word]('alpha'), /\.$/);
  }
  for (const word of ['ready', 'toString', '']) assert.equal(isReadinessObstacle(word), false);
});
