import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LabCluster } from '../../src/domain/clusters/lab.ts';
import { eventually, physics, startTestApp } from '../support/app.ts';
import { addPurchases, setSimulated } from './support.ts';

const ids: Record<string, string> = {};
const cluster = (name: string, scheduler: 'sunk' | 'kubernetes', simulated = {}): LabCluster => {
  ids[name] = `${(Object.keys(ids).length + 1).toString(16).padStart(8, '0')}-3c39-4a8e-9a55-0d1c2b3a4f50`;
  return {
    name,
    id: ids[name] as string,
    organization: 'physics',
    scheduler,
    simulated: { computeNodes: 1, gpusPerNode: 1, applyMs: 0, ...simulated },
  };
};
const fault = { reason: 'ControllerDown', message: 'slurmctld does not answer on 10.0.0.5.' };
const clusters = [
  cluster('slurm', 'sunk', { storage: { types: ['ceph', 'weka'], quotaBytes: 5_000_000_000_000 } }),
  cluster('plain', 'kubernetes'),
  cluster('broken', 'sunk', {
    schedulerFault: fault,
    storage: { types: ['ceph'], fault: { reason: 'Degraded', message: 'One of three monitors is down.' } },
  }),
  cluster('failing', 'sunk', { failure: 'The account ada is there already, and not ours.' }),
  cluster('starting', 'sunk', { provisionMs: 600_000 }),
  cluster('mute', 'kubernetes', { silent: true }),
];

test('GET /clusters/{clusterId}/options', async (t) => {
  await using service = await startTestApp({ lab: { ...physics, clusters } });
  const { org_id: org } = (await service.business('/me', { as: 'ada' })).body.memberships[0];
  const options = (name: string) =>
    service.platform(`/clusters/${ids[name]}/options?businessOrgId=${org}`, { as: 'ada' });
  const settled = async (name: string) => {
    const reply = await eventually(
      () => options(name),
      ({ body }) => body.state === 'available' && body.scheduler.ready !== undefined,
    );
    assert.equal(reply.status, 200);
    return reply.body;
  };
  const purchase = (name: string) => ({
    method: 'POST',
    path: `/organizations/${org}/purchases`,
    target_cluster_id: ids[name],
  });

  await t.test('a Slurm cluster with Ceph and WEKA: everything, from the latest observation', async () => {
    const body = await settled('slurm');
    const { lastTransitionTime } = body.scheduler.ready;
    assert.equal(Number.isNaN(Date.parse(lastTransitionTime)), false);
    const condition = { status: 'True', reason: 'Ready', observedGeneration: 1 };
    assert.deepEqual(body, {
      state: 'available',
      observedAt: body.observedAt,
      scheduler: {
        configured: { state: 'configured', value: 'sunk' },
        ready: { type: 'SUNKReady', ...condition, lastTransitionTime },
        supported: { kubernetes: true, sunk: true },
      },
      storage: {
        configured: { ceph: 'configured', weka: 'configured', nfs: 'not_configured' },
        quotaBytes: 5_000_000_000_000,
        ready: {
          type: 'StorageReady',
          ...condition,
          lastTransitionTime: body.storage.ready.lastTransitionTime,
        },
        supported: { ceph: true, nfs: true },
        purchase: purchase('slurm'),
      },
    });
  });

  await t.test('observedAt moves with each report, lastTransitionTime does not', async () => {
    const before = await settled('slurm');
    const after = await eventually(
      () => options('slurm'),
      ({ body }) => body.observedAt > before.observedAt,
    );
    assert.equal(after.body.scheduler.ready.lastTransitionTime, before.scheduler.ready.lastTransitionTime);
  });

  await t.test('a Kubernetes cluster: ControlPlaneAvailable, no storage configured', async () => {
    const { scheduler, storage } = await settled('plain');
    assert.deepEqual(scheduler.configured, { state: 'configured', value: 'kubernetes' });
    assert.equal(scheduler.ready.type, 'ControlPlaneAvailable');
    assert.deepEqual(storage, {
      configured: { ceph: 'not_configured', weka: 'not_configured', nfs: 'not_configured' },
      supported: { ceph: true, nfs: true },
      purchase: purchase('plain'),
    });
  });

  await t.test('what does not work is said in words; the cluster is active all the same', async () => {
    const { scheduler, storage } = await settled('broken');
    const { lastTransitionTime: before, ...ready } = scheduler.ready;
    assert.deepEqual(ready, { type: 'SUNKReady', status: 'False', observedGeneration: 1, ...fault });
    assert.deepEqual([storage.ready.status, storage.ready.reason], ['False', 'Degraded']);
    const lifecycleOf = async (name: string) =>
      (await service.platform(`/clusters/${ids[name]}?businessOrgId=${org}`, { as: 'ada' })).body.status
        .lifecycleState;
    assert.equal(await lifecycleOf('broken'), 'active');
    const { scheduler: failing } = await settled('failing');
    assert.deepEqual(
      [failing.ready.status, failing.ready.reason, failing.ready.message],
      ['False', 'ApplyFailed', 'The account ada is there already, and not ours.'],
    );
    const { scheduler: starting } = await settled('starting');
    assert.deepEqual([starting.ready.status, starting.ready.reason], ['False', 'Provisioning']);
    assert.equal(await lifecycleOf('starting'), 'provisioning');

    await setSimulated(service, ids['broken'] ?? '', { schedulerFault: undefined });
    const { body } = await eventually(
      () => options('broken'),
      (reply) => reply.body.scheduler.ready.status === 'True',
    );
    assert.ok(body.scheduler.ready.lastTransitionTime > before);
  });

  await t.test('a condition is present only when it describes the current configuration', async () => {
    const id = ids['slurm'] ?? '';
    await settled('slurm');
    await setSimulated(service, id, { applyMs: 1500 });
    await service.platform(`/clusters/${id}/scheduler-configuration?businessOrgId=${org}`, {
      as: 'ada',
      method: 'PUT',
      body: { slurmExtraConfig: 'MaxArraySize=2000' },
    });
    const { body } = await options('slurm');
    assert.equal(body.state, 'available');
    assert.equal('ready' in body.scheduler || 'ready' in body.storage, false);
    assert.deepEqual(body.scheduler.configured, { state: 'configured', value: 'sunk' });
    assert.equal((await settled('slurm')).scheduler.ready.observedGeneration, 2);
  });

  await t.test('a cluster that never reported: unknown, observation_stale, no observedAt', async () => {
    assert.deepEqual((await options('mute')).body, {
      state: 'unknown',
      reason: 'observation_stale',
      scheduler: { configured: { state: 'unknown' }, supported: { kubernetes: true, sunk: true } },
      storage: {
        configured: { ceph: 'unknown', weka: 'unknown', nfs: 'unknown' },
        supported: { ceph: true, nfs: true },
        purchase: purchase('mute'),
      },
    });
  });

  await t.test('admittedQuotaBytes is what accepted purchases come to, whatever the quota', async () => {
    await addPurchases(service, ids['slurm'] ?? '', 1000);
    const { storage } = await settled('slurm');
    assert.deepEqual(storage.purchase, { ...purchase('slurm'), admittedQuotaBytes: 2001 });
    assert.equal(storage.quotaBytes, 5_000_000_000_000);
  });
});
