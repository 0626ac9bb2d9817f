import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  checkQuote,
  isUndecided,
  mostClusterBytes,
  type StorageTarget,
  totalWith,
} from '../../src/domain/clusters/storage-purchase.ts';

const target: StorageTarget = { state: 'active', activeBytes: 0, types: [] };
const ceph = { type: 'ceph', bytes: 10 } as const;
const nfs = { type: 'nfs', bytes: 10 } as const;

test('each purchase adds capacity to the existing total', () => {
  assert.equal(totalWith(target, ceph), 10);
  assert.equal(totalWith({ ...target, activeBytes: 32, types: ['ceph'] }, ceph), 42);
});

test('storage is bought for clusters that are provisioning or active', () => {
  assert.equal(totalWith({ ...target, state: 'provisioning' }, ceph), 10);
  for (const state of ['releasing', 'released'] as const) {
    assert.throws(() => totalWith({ ...target, state }, ceph), {
      code: 'invalid_state',
      message: `The cluster is ${state}; storage can be bought while it is provisioning or active.`,
    });
  }
});

const together: [StorageTarget['types'], 'ceph' | 'nfs', boolean][] = [
  [[], 'ceph', true],
  [[], 'nfs', true],
  [['ceph'], 'ceph', true],
  [['nfs'], 'nfs', true],
  [['weka'], 'ceph', true],
  [['ceph', 'weka'], 'ceph', true],
  [['weka'], 'nfs', false],
  [['ceph'], 'nfs', false],
  [['ceph', 'weka'], 'nfs', false],
  [['nfs'], 'ceph', false],
];
for (const [types, type, isAllowed] of together) {
  const what = types.join(' and ') || 'nothing';
  test(`Ceph and WEKA can coexist, NFS excludes both: ${type} with ${what} is ${isAllowed ? 'sold' : 'refused'}`, () => {
    const buy = () => totalWith({ ...target, types }, { type, bytes: 1 });
    if (isAllowed) assert.equal(buy(), 1);
    else assert.throws(buy, { code: 'invalid_state', message: /cannot go with it/ });
  });
}

test('a total is a number that JSON holds exactly, and the refusal says how much is left', () => {
  assert.ok(Number.isSafeInteger(mostClusterBytes));
  const nearly = { ...target, activeBytes: mostClusterBytes - 10 };
  assert.equal(totalWith(nearly, ceph), mostClusterBytes);
  assert.throws(() => totalWith(nearly, { type: 'ceph', bytes: 11 }), {
    code: 'invalid_state',
    message: /4 PiB.* 10 bytes can still be bought/,
  });
});

test('a quote holds until it expires, is used, or the storage of the cluster has grown', () => {
  const quote = { ...nfs, currentBytes: 0, expiresAt: new Date(1000).toISOString(), used: false };
  assert.doesNotThrow(() => checkQuote(quote, target, 999));
  const refusals: [string, Partial<typeof quote>, StorageTarget, number, RegExp][] = [
    ['expired', {}, target, 1000, /expired; ask for a new quote/],
    ['used', { used: true }, target, 0, /used for a purchase already; ask for a new quote/],
    ['grown', {}, { ...target, activeBytes: 1, types: ['nfs'] }, 0, /has grown.*ask for a new quote/],
    ['excluded', {}, { ...target, types: ['ceph'] }, 0, /NFS cannot go with it/],
    ['released', {}, { ...target, state: 'released' }, 0, /The cluster is released/],
  ];
  for (const [what, change, cluster, now, message] of refusals) {
    const check = () => checkQuote({ ...quote, ...change }, cluster, now);
    assert.throws(check, { code: 'invalid_state', message }, what);
  }
});

test('a purchase is accepted or declined from requested only; accepting an active one changes nothing', () => {
  for (const decision of ['active', 'declined'] as const) {
    assert.equal(isUndecided('requested', decision), true);
    assert.throws(() => isUndecided('declined', decision), { code: 'invalid_state' });
  }
  assert.equal(isUndecided('active', 'active'), false);
  assert.throws(() => isUndecided('active', 'declined'), { code: 'invalid_state', message: /never shrinks/ });
});
