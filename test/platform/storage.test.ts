import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LabCluster } from '../../src/domain/clusters/lab.ts';
import { eventually, physics, startTestApp } from '../support/app.ts';
import { addPurchases, setCluster, silence, tokenFor } from './support.ts';

const ids: Record<string, string> = {};
const cluster = (name: string, storage?: NonNullable<LabCluster['simulated']>['storage']): LabCluster => {
  // IDs in the opposite order of the names.
  ids[name] = `${(99 - Object.keys(ids).length).toString(16).padStart(8, '0')}-3c39-4a8e-9a55-0d1c2b3a4f50`;
  return {
    name,
    id: ids[name] as string,
    organization: 'physics',
    scheduler: 'kubernetes',
    simulated: { computeNodes: 1, gpusPerNode: 1, applyMs: 0, ...(storage ? { storage } : {}) },
  };
};
const clusters = [
  cluster('ceph', { types: ['ceph', 'weka'], quotaBytes: 7_000 }),
  cluster('nfs', { types: ['nfs'] }),
  cluster('none'),
  cluster('gone', { types: ['ceph'], quotaBytes: 5 }),
];

test('GET /organizations/{orgId}/storage', async (t) => {
  await using service = await startTestApp({
    lab: {
      ...physics,
      clusters,
      grants: [{ user: 'guest@elsewhere.example', cluster: 'ceph', relation: 'kubernetes.admin' }],
    },
  });
  const { org_id: org } = (await service.business('/me', { as: 'ada' })).body.memberships[0];
  const storage = (call: object = { as: 'bob' }, of = org) =>
    service.platform(`/organizations/${of}/storage`, call);
  interface Entry {
    clusterName: string;
    state: string;
    backends: { ready?: object; configured: string }[];
  }
  const entry = async (name: string) =>
    (await storage()).body.items.find((one: Entry) => one.clusterName === name);
  const ready = await eventually(
    () => storage(),
    ({ body }) =>
      body.items.every((one: Entry) => one.state === 'available') &&
      body.items.some((one: Entry) => one.clusterName === 'ceph' && one.backends[0]?.ready),
  );
  const purchase = (name: string) => ({
    method: 'POST',
    path: `/organizations/${org}/purchases`,
    target_cluster_id: ids[name],
  });

  await t.test('one entry for every cluster that the organization owns, not paginated', async () => {
    assert.equal(ready.status, 200);
    assert.deepEqual(Object.keys(ready.body), ['items']);
    assert.deepEqual(
      ready.body.items.map((one: Entry) => one.clusterName),
      ['gone', 'none', 'nfs', 'ceph'],
    );
  });

  await t.test('Ceph and WEKA: the quota that the cluster applied, its readiness, where to buy', async () => {
    const { observedAt, backends, ...rest } = await entry('ceph');
    assert.equal(Number.isNaN(Date.parse(observedAt)), false);
    assert.deepEqual(rest, {
      clusterId: ids['ceph'],
      clusterName: 'ceph',
      lifecycleState: 'active',
      state: 'available',
    });
    const { lastTransitionTime } = backends[0].ready;
    assert.deepEqual(backends, [
      {
        type: 'ceph',
        configured: 'configured',
        configuredQuotaBytes: 7_000,
        ready: {
          type: 'StorageReady',
          status: 'True',
          reason: 'Ready',
          observedGeneration: 1,
          lastTransitionTime,
        },
        purchase: purchase('ceph'),
      },
      { type: 'weka', configured: 'configured' },
      { type: 'nfs', configured: 'not_configured' },
    ]);
  });

  await t.test('NFS has no quota and no readiness of Ceph; no quota is not zero capacity', async () => {
    assert.deepEqual((await entry('nfs')).backends, [
      { type: 'ceph', configured: 'not_configured', purchase: purchase('nfs') },
      { type: 'weka', configured: 'not_configured' },
      { type: 'nfs', configured: 'configured' },
    ]);
  });

  await t.test('purchasedRawBytes is what active purchases come to, next to the quota', async () => {
    await addPurchases(service, ids['ceph'] ?? '', 10_000);
    const [ceph, weka, nfs] = (await entry('ceph')).backends;
    assert.deepEqual(
      [ceph.purchasedRawBytes, ceph.configuredQuotaBytes, ceph.purchase],
      [20_001, 7_000, { ...purchase('ceph'), admittedQuotaBytes: 20_001 }],
    );
    for (const one of [weka, nfs]) assert.deepEqual(Object.keys(one), ['type', 'configured']);
    assert.equal('purchasedRawBytes' in (await entry('none')).backends[0], false);
  });

  await t.test('what was bought for a cluster is in the options that a grant on it opens', async () => {
    const token = await tokenFor(service, 'guest@elsewhere.example');
    const options = await service.platform(`/clusters/${ids['ceph']}/options?businessOrgId=${org}`, {
      token,
    });
    assert.equal(options.status, 200);
    assert.equal(options.body.storage.purchase.admittedQuotaBytes, 20_001);
  });

  await t.test('an organization without clusters has no items', async () => {
    const token = await tokenFor(service, 'carl@chemistry.example');
    const { org_id } = (await service.business('/me', { token })).body.memberships[0];
    assert.deepEqual((await storage({ token }, org_id)).body, { items: [] });
  });

  await t.test('a released cluster stays listed: unavailable, unknown, and nothing to buy', async () => {
    await silence(service, ids['gone'] ?? '');
    await setCluster(service, ids['gone'] ?? '', { state: 'released' });
    const { lifecycleState, state, backends } = await entry('gone');
    assert.deepEqual([lifecycleState, state], ['released', 'unavailable']);
    for (const { type, ...rest } of backends) assert.deepEqual(rest, { configured: 'unknown' }, type);
  });
});
