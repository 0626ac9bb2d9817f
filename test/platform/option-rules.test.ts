import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clusterOptions, type OptionFacts, storageInventory } from '../../src/api/platform/options.ts';
import { freshness, withTransitionTimes } from '../../src/domain/clusters/cluster.ts';
import { defaultSharedVolumeBytes } from '../../src/domain/clusters/lab.ts';
import { fieldsOf } from '../support/fields.ts';

const now = Date.parse('2030-01-01T12:00:00.000Z');
const ready = { status: 'True', observedGeneration: 3 } as const;
const report = {
  scheduler: { configured: 'sunk', ready },
  storage: { ceph: true, weka: true, nfs: false, quotaBytes: 500, ready },
} as const;
const facts: OptionFacts = {
  clusterId: 'c',
  organizationId: 'org_1',
  clusterState: 'active',
  desiredGeneration: 3,
  observation: { observedAt: now - 1000, report },
  purchased: { ceph: 0, nfs: 0 },
  now,
};
const observedAt = '2030-01-01T11:59:59.000Z';
type Part = { ready?: object };

/** What a report changes; a condition that does not say of which configuration is of the one in force, 3. */
const withReport = (
  change: { scheduler?: object | undefined; storage?: object | undefined },
  more: Partial<OptionFacts> = {},
): OptionFacts => {
  const changed = Object.entries(change as Record<string, Part | undefined>).map(([part, fields]) => {
    const ready = fields?.ready && { ready: { observedGeneration: 3, ...fields.ready } };
    return [part, fields && { ...fields, ...ready }];
  });
  return {
    ...facts,
    ...more,
    observation: { observedAt: now - 1000, report: { ...report, ...Object.fromEntries(changed) } },
  };
};

const supported = { kubernetes: true, sunk: true };
const offer = {
  supported: { ceph: true, nfs: true },
  purchase: { method: 'POST', path: '/organizations/org_1/purchases', target_cluster_id: 'c' },
};

test('available: configured values, readiness, what can be bought and where', () => {
  assert.deepEqual(clusterOptions(facts), {
    ...{ state: 'available', observedAt },
    scheduler: {
      configured: { state: 'configured', value: 'sunk' },
      ready: { type: 'SUNKReady', ...ready },
      supported,
    },
    storage: {
      configured: { ceph: 'configured', weka: 'configured', nfs: 'not_configured' },
      ...{ quotaBytes: 500, ready: { type: 'StorageReady', ...ready }, ...offer },
    },
  });
});

test('configured values and readiness are omitted without a recent report, and out of service', () => {
  const nothingKnown = {
    scheduler: { configured: { state: 'unknown' }, supported },
    storage: { configured: { ceph: 'unknown', weka: 'unknown', nfs: 'unknown' }, ...offer },
  };
  const at = (age: number) => ({ ...facts, observation: { observedAt: now - age, report } });
  const stale = { state: 'unknown', reason: 'observation_stale', ...nothingKnown };
  assert.equal(clusterOptions(at(120_000)).state, 'available');
  assert.deepEqual(clusterOptions(at(120_001)), { ...stale, observedAt: '2030-01-01T11:57:59.999Z' });
  assert.deepEqual(clusterOptions({ ...facts, observation: undefined }), stale);
  const unavailable = { state: 'unavailable', reason: 'cluster_not_active', observedAt, ...nothingKnown };
  for (const clusterState of ['releasing', 'released'] as const) {
    assert.deepEqual(clusterOptions({ ...facts, clusterState }), unavailable);
    assert.equal(clusterOptions({ ...at(999_999), clusterState }).state, 'unavailable');
  }
  assert.equal(clusterOptions({ ...facts, clusterState: 'provisioning' }).state, 'available');
});

test('a condition is present only when it describes the cluster’s current configuration', () => {
  for (const desiredGeneration of [2, 4]) {
    const { scheduler, storage } = clusterOptions({ ...facts, desiredGeneration });
    const [ceph] = storageInventory({ ...facts, desiredGeneration }).backends;
    for (const one of [scheduler, storage, ceph]) assert.ok(one && !('ready' in one));
    assert.deepEqual(scheduler.configured, { state: 'configured', value: 'sunk' });
    assert.equal(storage.quotaBytes, 500);
  }
  // One about another configuration than the one in force counts when that is the current one.
  const later = { configured: 'sunk', ready: { status: 'False', observedGeneration: 4 } };
  const of = (desiredGeneration: number) =>
    clusterOptions(withReport({ scheduler: later }, { desiredGeneration })).scheduler.ready
      ?.observedGeneration;
  assert.deepEqual([of(3), of(4), of(5)], [undefined, 4, undefined]);
});

test('a condition says why, what to mend, and since when', () => {
  const why = { reason: 'ControllerDown', message: 'slurmctld is away.', lastTransitionTime: observedAt };
  const scheduler = { configured: 'kubernetes', ready: { status: 'False', ...why } };
  assert.deepEqual(clusterOptions(withReport({ scheduler })).scheduler.ready, {
    ...{ type: 'ControlPlaneAvailable', status: 'False', observedGeneration: 3, ...why },
  });
});

test('scheduler.configured: a value only when something is configured', () => {
  const configured = (scheduler: object | undefined) =>
    clusterOptions(withReport({ scheduler })).scheduler.configured;
  assert.deepEqual(configured({ configured: null }), { state: 'none' });
  assert.deepEqual(configured(undefined), { state: 'unknown' });
  assert.deepEqual(configured({ configured: 'kubernetes' }), { state: 'configured', value: 'kubernetes' });
});

test('storage.ready is the readiness of Ceph or NFS, not of WEKA', () => {
  const ready = { status: 'True' };
  const of = (storage: object) => clusterOptions(withReport({ storage })).storage.ready?.type;
  assert.equal(of({ ceph: false, weka: true, nfs: false, ready }), undefined);
  assert.equal(of({ ceph: false, weka: false, nfs: true, ready }), 'StorageReady');
  assert.equal(of({ ceph: true, weka: true, nfs: false, ready }), 'StorageReady');
  assert.equal(of({ ceph: true, weka: false, nfs: false }), undefined);
});

test('quota, purchased bytes and the default request for a shared volume are three different quantities', () => {
  assert.equal(defaultSharedVolumeBytes, 107_374_182_400);
  const storage = { ceph: true, weka: false, nfs: false, sharedVolumeBytes: defaultSharedVolumeBytes };
  const bare = withReport({ storage });
  assert.equal('quotaBytes' in clusterOptions(bare).storage, false, 'no quota reported');
  assert.equal('admittedQuotaBytes' in clusterOptions(bare).storage.purchase, false, 'nothing bought');
  assert.equal(JSON.stringify(storageInventory(bare)).includes(String(defaultSharedVolumeBytes)), false);

  const bought = withReport({ storage: { ...storage, quotaBytes: 7 } }, { purchased: { ceph: 20, nfs: 0 } });
  assert.equal(clusterOptions(bought).storage.quotaBytes, 7);
  assert.equal(clusterOptions(bought).storage.purchase.admittedQuotaBytes, 20);
  const [ceph] = storageInventory(bought).backends;
  assert.deepEqual([ceph?.configuredQuotaBytes, ceph?.purchasedRawBytes], [7, 20]);
});

test('admittedQuotaBytes is what was bought of Ceph, or of NFS where the cluster has that', () => {
  const types = (ceph: boolean, nfs: boolean) => ({ storage: { ceph, weka: false, nfs } });
  const bought = { purchased: { ceph: 20, nfs: 3 } };
  for (const [what, admitted] of [
    [withReport(types(true, false), bought), 20],
    [{ ...facts, observation: undefined, ...bought }, 20],
    [withReport(types(false, true), bought), 3],
    [withReport(types(false, false), { purchased: { ceph: 0, nfs: 3 } }), undefined],
  ] as const) {
    assert.equal(clusterOptions(what).storage.purchase.admittedQuotaBytes, admitted);
    assert.equal(storageInventory(what).backends[0]?.purchase?.admittedQuotaBytes, admitted);
  }
});

test('the storage inventory has Ceph, WEKA and NFS of every cluster, the quota and purchases on Ceph only', () => {
  const entry = storageInventory({ ...facts, purchased: { ceph: 20, nfs: 0 } });
  assert.deepEqual(entry, {
    ...{ state: 'available', observedAt },
    backends: [
      {
        ...{ type: 'ceph', configured: 'configured', configuredQuotaBytes: 500, purchasedRawBytes: 20 },
        ready: { type: 'StorageReady', ...ready },
        purchase: { ...offer.purchase, admittedQuotaBytes: 20 },
      },
      { type: 'weka', configured: 'configured' },
      { type: 'nfs', configured: 'not_configured' },
    ],
  });
  // The readiness of NFS is not said to be Ceph's.
  const storage = { ceph: false, weka: false, nfs: true, ready: { status: 'True' } };
  const { backends } = storageInventory(withReport({ storage }));
  assert.deepEqual(fieldsOf(backends, 'configured'), ['not_configured', 'not_configured', 'configured']);
  assert.ok(backends.every((one) => !('ready' in one)));
  const before = storageInventory({ ...facts, observation: undefined });
  assert.equal(before.state, 'unknown');
  assert.deepEqual(fieldsOf(before.backends, 'configured'), ['unknown', 'unknown', 'unknown']);
});

test('purchase is on the Ceph entry of an active or provisioning cluster only; what was bought is still shown', () => {
  const offered = { provisioning: true, active: true, releasing: false, released: false };
  for (const clusterState of ['provisioning', 'active', 'releasing', 'released'] as const) {
    const [ceph, ...others] = storageInventory({
      ...{ ...facts, clusterState, purchased: { ceph: 20, nfs: 0 } },
    }).backends;
    assert.ok(ceph?.purchasedRawBytes === 20 && others.every((one) => !('purchase' in one)));
    assert.equal('purchase' in ceph, offered[clusterState], clusterState);
  }
});

test('lastTransitionTime is when the status last changed', () => {
  type Of = Parameters<typeof withTransitionTimes>[0];
  const of = (status: 'True' | 'False', more = {}, configured: 'sunk' | 'kubernetes' = 'sunk'): Of => ({
    scheduler: { configured, ready: { status, ...more } },
  });
  const since = (one: Of) => one.scheduler?.ready?.lastTransitionTime;
  const first = withTransitionTimes(of('True'), undefined, 't1');
  const second = withTransitionTimes(of('True'), first, 't2');
  const third = withTransitionTimes(of('False', { reason: 'x' }), second, 't3');
  assert.deepEqual([first, second, third].map(since), ['t1', 't1', 't3']);
  assert.equal(since(withTransitionTimes(of('False', { reason: 'y' }), third, 't4')), 't3', 'reworded');
  assert.equal(since(withTransitionTimes(of('True'), third, 't5')), 't5');
  const own = of('True', { lastTransitionTime: 'its own' });
  assert.equal(since(withTransitionTimes(own, second, 't6')), 'its own');
  const other = of('True', {}, 'kubernetes');
  assert.equal(since(withTransitionTimes(other, second, 't7')), 't7', 'another scheduler, another condition');
  const storage = { storage: { ceph: true, weka: false, nfs: false, ready: { status: 'True' as const } } };
  const stored = withTransitionTimes(storage, undefined, 't1');
  assert.deepEqual(withTransitionTimes(storage, stored, 't2'), stored);
  assert.deepEqual(withTransitionTimes({}, stored, 't2'), {});
});

test('a machine is fresh, stale when its heartbeat is missed, unknown when none is due any more', () => {
  const at = (age: number, isHeartbeatDue = true) =>
    freshness({ observedAt: now - age, isHeartbeatDue, now });
  assert.equal(at(0), 'fresh');
  assert.equal(at(120_000), 'fresh');
  assert.equal(at(120_001), 'stale');
  assert.equal(at(120_001, false), 'unknown');
});
