import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type AccessFacts,
  isObservationCurrent,
  type ReadinessReason,
  readinessReason,
} from '../../src/domain/readiness.ts';

const now = 1_000_000_000;
const ready: AccessFacts = {
  clusterState: 'active',
  hasUsername: true,
  activeKeys: 1,
  keySetGeneration: 2,
  observedKeySetGeneration: 2,
  takesAccessList: true,
  inManifest: true,
  listGeneration: 7,
  observedManifestGeneration: 7,
  gatewayUp: true,
  observedAt: now,
  now,
};

/** In the order in which they count; each is true together with all that come behind it. */
const ladder: [Partial<AccessFacts>, ReadinessReason][] = [
  [{ clusterState: 'provisioning' }, 'cluster_inactive'],
  [{ hasUsername: false }, 'named_user_required'],
  [{ activeKeys: 0 }, 'no_keys'],
  [{ inManifest: false }, 'access_not_projected'],
  [{ gatewayUp: false }, 'gateway_unavailable'],
  [{ observedAt: now - 120_001 }, 'observation_stale'],
  [{ observedManifestGeneration: 6 }, 'projection_pending'],
];

for (const [index, [fact, reason]] of ladder.entries()) {
  const behind = Object.assign({}, ...ladder.slice(index).map(([later]) => later)) as Partial<AccessFacts>;
  test(`${reason} counts before everything that comes behind it`, () => {
    assert.equal(readinessReason({ ...ready, ...fact }), reason);
    assert.equal(readinessReason({ ...ready, ...behind }), reason);
  });
}

test('with nothing in the way it is ready', () => assert.equal(readinessReason(ready), 'ready'));

const more: [string, Partial<AccessFacts>, ReadinessReason][] = [
  ['a cluster being released', { clusterState: 'releasing' }, 'cluster_inactive'],
  ['a cluster released', { clusterState: 'released' }, 'cluster_inactive'],
  ['a cluster that never reported', { observedAt: undefined }, 'observation_stale'],
  ['a report exactly two minutes old', { observedAt: now - 120_000 }, 'ready'],
  ['a key set not yet applied', { observedKeySetGeneration: 1 }, 'projection_pending'],
  ['a key set unknown', { observedKeySetGeneration: 0 }, 'projection_pending'],
  [
    'a cluster that takes no access list and has no login node',
    { takesAccessList: false, inManifest: false, gatewayUp: false },
    'gateway_unavailable',
  ],
];
for (const [what, fact, reason] of more) {
  test(`${what}: ${reason}`, () => assert.equal(readinessReason({ ...ready, ...fact }), reason));
}

test('an observation is current when it is recent and covers the newest list', () => {
  assert.equal(isObservationCurrent(ready), true);
  assert.equal(isObservationCurrent({ ...ready, observedManifestGeneration: 6 }), false);
  assert.equal(isObservationCurrent({ ...ready, observedAt: now - 120_001 }), false);
  assert.equal(isObservationCurrent({ ...ready, observedAt: undefined }), false);
});

test('an observation can be current while nothing is ready, for want of a key', () => {
  const facts = { ...ready, activeKeys: 0 };
  assert.equal(isObservationCurrent(facts), true);
  assert.equal(readinessReason(facts), 'no_keys');
});
