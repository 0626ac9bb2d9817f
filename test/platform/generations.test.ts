/** What moves a cluster's generations, versions and times, and what does not. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findCluster, startRelease, updateClusterSettings } from '../../src/store/clusters/clusters.ts';
import { alpha, beta, eventually, physics, startTestApp } from '../support/app.ts';
import { setSimulated } from './support.ts';

test('a cluster’s generations', async (t) => {
  await using service = await startTestApp({
    lab: {
      ...physics,
      clusters: (physics.clusters ?? []).map((cluster) => ({
        ...cluster,
        simulated: {
          computeNodes: 1,
          gpusPerNode: 1,
          applyMs: 0,
          kubernetes: { version: 'v1.33.1' },
          ...(cluster.name === 'beta' ? { silent: true } : {}),
        },
      })),
    },
  });
  const { store } = service.app;
  const { org_id: org } = (await service.business('/me', { as: 'ada' })).body.memberships[0];
  const get = async (id = alpha) =>
    (await service.platform(`/clusters/${id}?businessOrgId=${org}`, { as: 'ada' })).body;
  type Cluster = Awaited<ReturnType<typeof get>>;
  const numbers = ({ spec, status }: Cluster) => ({
    version: spec.versionGeneration,
    desired: spec.desiredGeneration,
    scheduler: spec.schedulerGeneration,
    lifecycle: status.lifecycleVersion,
  });
  const reports = async () =>
    (
      await store.read
        .selectFrom('machines')
        .select('report_generation')
        .where('cluster_id', '=', alpha)
        .executeTakeFirst()
    )?.report_generation ?? 0;
  const twoMoreReports = async () => {
    const before = await reports();
    await eventually(reports, (count) => count >= before + 2);
  };

  await t.test('before the first report: provisioning, and no version is known', async () => {
    const { spec, status, metadata } = await get(beta);
    assert.deepEqual(status, { lifecycleState: 'provisioning', lifecycleVersion: 1, kubeletVersion: '' });
    assert.deepEqual([spec.version, spec.versionGeneration], ['', 0]);
    assert.equal(metadata.updatedAt, metadata.createdAt);
  });

  await t.test('lifecycleVersion increases with the transition to active', async () => {
    const body = await eventually(get, ({ status }) => status.lifecycleState === 'active');
    assert.deepEqual(numbers(body), { version: 1, desired: 1, scheduler: 0, lifecycle: 2 });
    assert.deepEqual([body.spec.version, body.status.kubeletVersion], ['v1.33.1', 'v1.33.1']);
    assert.ok(body.metadata.updatedAt > body.metadata.createdAt);
  });

  await t.test('reports that say nothing new move nothing', async () => {
    const before = await get();
    await twoMoreReports();
    assert.deepEqual(await get(), before);
  });

  await t.test('kubeletVersion is what is observed; it moves no generation', async () => {
    const before = await get();
    await setSimulated(service, alpha, { kubernetes: { version: 'v1.33.1', kubeletVersion: 'v1.32.9' } });
    const after = await eventually(get, ({ status }) => status.kubeletVersion === 'v1.32.9');
    assert.deepEqual(numbers(after), numbers(before));
    assert.equal(after.spec.version, 'v1.33.1');
    assert.ok(after.metadata.updatedAt > before.metadata.updatedAt);
  });

  await t.test('versionGeneration increases when the target version changes, and only then', async () => {
    const before = await get();
    await setSimulated(service, alpha, { kubernetes: { version: 'v1.34.0', kubeletVersion: 'v1.32.9' } });
    const after = await eventually(get, ({ spec }) => spec.version === 'v1.34.0');
    assert.deepEqual(numbers(after), { ...numbers(before), version: 2 });
    assert.equal(after.status.kubeletVersion, 'v1.32.9');
    await twoMoreReports();
    assert.deepEqual(await get(), after);
  });

  await t.test('desiredGeneration increases when the desired configuration changes', async () => {
    const before = await get();
    await store.write(async (tx) => {
      const cluster = await findCluster(tx.db, alpha);
      assert.ok(cluster);
      await updateClusterSettings(tx, cluster, { site: { id: 'room-2', name: 'Machine room 2' } });
    });
    const after = await get();
    assert.deepEqual(numbers(after), { ...numbers(before), desired: 2 });
    assert.deepEqual(after.spec.site, { id: 'room-2', name: 'Machine room 2' });
    await service.platform(`/clusters/${alpha}/scheduler-configuration?businessOrgId=${org}`, {
      as: 'ada',
      method: 'PUT',
      body: { slurmExtraConfig: 'x' },
    });
    assert.deepEqual(numbers(await get()), { ...numbers(before), desired: 3, scheduler: 1 });
  });

  await t.test('lifecycleVersion increases with each transition on the way out', async () => {
    const before = await get();
    await store.write((tx) => startRelease(tx, { clusterId: alpha, commandId: null }));
    const seen = new Set<string>();
    const released = await eventually(get, ({ status }) => {
      seen.add(`${status.lifecycleState} ${status.lifecycleVersion}`);
      return status.lifecycleState === 'released';
    });
    seen.delete('releasing 3');
    assert.deepEqual([...seen], ['released 4']);
    assert.deepEqual(numbers(released), { ...numbers(before), lifecycle: 4 });
    assert.ok(released.metadata.updatedAt > before.metadata.updatedAt);
  });
});
