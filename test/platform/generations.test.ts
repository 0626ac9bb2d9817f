/** What moves a cluster's generations, versions and times, and what does not. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findCluster, startRelease, updateClusterSettings } from '../../src/store/clusters/clusters.ts';
import { eventually, physics, startTestApp } from '../support/app.ts';
import { requireRow } from '../support/store.ts';
import { labCluster, setSimulated } from './support.ts';

const kubernetes = { version: 'v1.33.1' };
const clusters = [
  labCluster('alpha', 1, { kubernetes }),
  labCluster('beta', 2, { kubernetes, silent: true }),
];
const [alpha, beta] = clusters.map(({ id }) => id) as [string, string];

test('each generation of a cluster increases with what it counts, and with nothing else', async () => {
  await using service = await startTestApp({ lab: { ...physics, clusters } });
  const { store } = service.app;
  const { org_id: org } = (await service.business('/me', { as: 'ada' })).body.memberships[0];
  const get = async (id = alpha) =>
    (await service.platform(`/clusters/${id}?businessOrgId=${org}`, { as: 'ada' })).body;
  const numbers = ({ spec, status }: Awaited<ReturnType<typeof get>>) => ({
    version: spec.versionGeneration,
    desired: spec.desiredGeneration,
    scheduler: spec.schedulerGeneration,
    lifecycle: status.lifecycleVersion,
  });
  const reports = async () =>
    (await requireRow(store.read, 'machines', { cluster_id: alpha })).report_generation;
  const staysThrough2Reports = async (expected: object) => {
    const before = await reports();
    await eventually(reports, (count) => count >= before + 2);
    assert.deepEqual(await get(), expected);
  };

  const unreported = await get(beta);
  const { spec, status, metadata } = unreported;
  assert.deepEqual(status, { lifecycleState: 'provisioning', lifecycleVersion: 1, kubeletVersion: '' });
  assert.deepEqual([spec.version, spec.versionGeneration], ['', 0]);
  assert.equal(metadata.updatedAt, metadata.createdAt);

  const active = await eventually(get, (body) => body.status.lifecycleState === 'active');
  assert.deepEqual(numbers(active), { version: 1, desired: 1, scheduler: 0, lifecycle: 2 });
  assert.deepEqual([active.spec.version, active.status.kubeletVersion], ['v1.33.1', 'v1.33.1']);
  assert.ok(active.metadata.updatedAt > active.metadata.createdAt);
  await staysThrough2Reports(active);

  await setSimulated(service, alpha, { kubernetes: { version: 'v1.33.1', kubeletVersion: 'v1.32.9' } });
  const older = await eventually(get, (body) => body.status.kubeletVersion === 'v1.32.9');
  assert.deepEqual([numbers(older), older.spec.version], [numbers(active), 'v1.33.1']);
  assert.ok(older.metadata.updatedAt > active.metadata.updatedAt);

  await setSimulated(service, alpha, { kubernetes: { version: 'v1.34.0', kubeletVersion: 'v1.32.9' } });
  const upgraded = await eventually(get, (body) => body.spec.version === 'v1.34.0');
  assert.deepEqual(numbers(upgraded), { ...numbers(active), version: 2 });
  await staysThrough2Reports(upgraded);

  const site = { id: 'room-2', name: 'Machine room 2' };
  await store.write(async (tx) => {
    const cluster = await findCluster(tx.db, alpha);
    assert.ok(cluster);
    await updateClusterSettings(tx, cluster, { site });
  });
  const moved = await get();
  assert.deepEqual([numbers(moved), moved.spec.site], [{ ...numbers(upgraded), desired: 2 }, site]);
  await service.platform(`/clusters/${alpha}/scheduler-configuration?businessOrgId=${org}`, {
    ...{ as: 'ada', method: 'PUT', body: { slurmExtraConfig: 'x' } },
  });
  const configured = { ...numbers(upgraded), desired: 3, scheduler: 1 };
  const before = await get();
  assert.deepEqual(numbers(before), configured);

  await store.write((tx) => startRelease(tx, { clusterId: alpha, commandId: null }));
  const seen = new Set<string>();
  const released = await eventually(get, (body) => {
    seen.add(`${body.status.lifecycleState} ${body.status.lifecycleVersion}`);
    return body.status.lifecycleState === 'released';
  });
  seen.delete('releasing 3');
  assert.deepEqual([...seen], ['released 4']);
  assert.deepEqual(numbers(released), { ...configured, lifecycle: 4 });
  assert.ok(released.metadata.updatedAt > before.metadata.updatedAt);
});
