import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually, physics, startTestApp } from '../support/app.ts';
import { fieldsOf } from '../support/fields.ts';
import { addPurchases, labCluster, setCluster, silence, tokenFor } from './support.ts';

// IDs in the opposite order of the names.
const ceph = labCluster('ceph', 99, { storage: { types: ['ceph', 'weka'], quotaBytes: 7_000 } });
const gone = labCluster('gone', 98, { storage: { types: ['ceph'], quotaBytes: 5 } });
const clusters = [ceph, gone, labCluster('nfs', 97, { storage: { types: ['nfs'] } })];

test('the storage of an organization is that of each of its clusters, with quota, purchases and where to buy', async () => {
  const grants = [
    { user: 'guest@elsewhere.example', cluster: 'ceph', relation: 'kubernetes.admin' as const },
  ];
  await using service = await startTestApp({ lab: { ...physics, clusters, grants } });
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
  const { status, body } = await eventually(storage, ({ body: { items } }) =>
    items.every(
      (one: Entry) => one.state === 'available' && (one.clusterName !== 'ceph' || one.backends[0]?.ready),
    ),
  );
  assert.deepEqual([status, Object.keys(body)], [200, ['items']], 'without pages');
  assert.deepEqual(fieldsOf(body.items, 'clusterName'), ['nfs', 'gone', 'ceph']);

  await addPurchases(service, ceph.id, 10_000);
  const { observedAt, backends, ...rest } = await entry('ceph');
  assert.ok(Date.parse(observedAt));
  const common = { clusterName: 'ceph', lifecycleState: 'active', state: 'available' };
  assert.deepEqual(rest, { clusterId: ceph.id, ...common });
  const { lastTransitionTime, ...ready } = backends[0].ready;
  assert.ok(lastTransitionTime);
  const purchase = { method: 'POST', path: `/organizations/${org}/purchases` };
  assert.deepEqual(ready, { type: 'StorageReady', status: 'True', reason: 'Ready', observedGeneration: 1 });
  assert.deepEqual(backends, [
    {
      ...{ type: 'ceph', configured: 'configured', configuredQuotaBytes: 7_000, purchasedRawBytes: 20_001 },
      purchase: { ...purchase, target_cluster_id: ceph.id, admittedQuotaBytes: 20_001 },
      ready: backends[0].ready,
    },
    { type: 'weka', configured: 'configured' },
    { type: 'nfs', configured: 'not_configured' },
  ]);
  // Another cluster has bought nothing, and no quota is not a quota of zero.
  const [none, ...others] = (await entry('nfs')).backends;
  assert.deepEqual(
    [Object.keys(none), fieldsOf(others, 'configured')],
    [
      ['type', 'configured', 'purchase'],
      ['not_configured', 'configured'],
    ],
  );

  const token = await tokenFor(service, 'guest@elsewhere.example');
  const options = await service.platform(`/clusters/${ceph.id}/options?businessOrgId=${org}`, { token });
  assert.equal(options.body.storage.purchase.admittedQuotaBytes, 20_001, 'for who has a grant, too');
  const carl = await tokenFor(service, 'carl@chemistry.example');
  const { org_id } = (await service.business('/me', { token: carl })).body.memberships[0];
  assert.deepEqual((await storage({ token: carl }, org_id)).body, { items: [] });

  await silence(service, gone.id);
  await setCluster(service, gone.id, { state: 'released' });
  const { lifecycleState, state, backends: past } = await entry('gone');
  assert.deepEqual([lifecycleState, state], ['released', 'unavailable'], 'it stays listed');
  for (const { type, ...more } of past) assert.deepEqual(more, { configured: 'unknown' }, type);
});
