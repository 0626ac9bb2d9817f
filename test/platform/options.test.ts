import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LabCluster } from '../../src/domain/clusters/lab.ts';
import { eventually, physics, startTestApp } from '../support/app.ts';
import { setCluster, setSimulated, silence } from './support.ts';

const ids: Record<string, string> = {};
const cluster = (name: string, scheduler: LabCluster['scheduler'] | null, simulated = {}): LabCluster => {
  ids[name] = `${(Object.keys(ids).length + 1).toString(16).padStart(8, '0')}-3c39-4a8e-9a55-0d1c2b3a4f50`;
  return {
    name,
    id: ids[name] as string,
    organization: 'physics',
    ...(scheduler ? { scheduler } : {}),
    simulated: { computeNodes: 1, gpusPerNode: 1, applyMs: 0, ...simulated },
  };
};
const fault = { reason: 'ControllerDown', message: 'slurmctld does not answer on 10.0.0.5.' };
const clusters = [
  cluster('slurm', 'sunk', { storage: { types: ['ceph', 'weka'], quotaBytes: 5_000_000_000_000 } }),
  cluster('plain', 'kubernetes'),
  cluster('bare', null),
  cluster('nfs', 'sunk', { storage: { types: ['nfs'] } }),
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

  await t.test(
    'observedAt moves with each report, lastTransitionTime stays while nothing turns',
    async () => {
      const before = await settled('slurm');
      const after = await eventually(
        () => options('slurm'),
        ({ body }) => body.observedAt > before.observedAt,
      );
      assert.equal(after.body.scheduler.ready.lastTransitionTime, before.scheduler.ready.lastTransitionTime);
    },
  );

  await t.test(
    'a Kubernetes cluster without storage: ControlPlaneAvailable, nothing configured',
    async () => {
      const { scheduler, storage } = await settled('plain');
      assert.deepEqual(scheduler.configured, { state: 'configured', value: 'kubernetes' });
      assert.equal(scheduler.ready.type, 'ControlPlaneAvailable');
      assert.deepEqual(storage, {
        configured: { ceph: 'not_configured', weka: 'not_configured', nfs: 'not_configured' },
        supported: { ceph: true, nfs: true },
        purchase: purchase('plain'),
      });
    },
  );

  await t.test('a cluster without a scheduler: none, without a value', async () => {
    const { body } = await eventually(
      () => options('bare'),
      (reply) => reply.body.state === 'available',
    );
    assert.deepEqual(body.scheduler, {
      configured: { state: 'none' },
      supported: { kubernetes: true, sunk: true },
    });
  });

  await t.test('NFS: its readiness, no quota', async () => {
    const { storage } = await settled('nfs');
    assert.deepEqual(storage.configured, {
      ceph: 'not_configured',
      weka: 'not_configured',
      nfs: 'configured',
    });
    assert.equal(storage.ready.type, 'StorageReady');
    assert.equal('quotaBytes' in storage, false);
  });

  await t.test('what does not work is said in words; the cluster is active all the same', async () => {
    const { scheduler, storage } = await settled('broken');
    assert.equal(scheduler.ready.status, 'False');
    assert.deepEqual({ reason: scheduler.ready.reason, message: scheduler.ready.message }, fault);
    assert.deepEqual([storage.ready.status, storage.ready.reason], ['False', 'Degraded']);
    const reply = await service.platform(`/clusters/${ids['broken']}?businessOrgId=${org}`, { as: 'ada' });
    assert.equal(reply.body.status.lifecycleState, 'active');
  });

  await t.test('a fault that is mended turns the condition, and says since when', async () => {
    const { lastTransitionTime: before } = (await settled('broken')).scheduler.ready;
    await setSimulated(service, ids['broken'] ?? '', { schedulerFault: undefined });
    const { body } = await eventually(
      () => options('broken'),
      (reply) => reply.body.scheduler.ready.status === 'True',
    );
    assert.ok(body.scheduler.ready.lastTransitionTime > before);
  });

  await t.test('provisioning: available, and the scheduler is not ready yet', async () => {
    const { scheduler } = await settled('starting');
    assert.deepEqual([scheduler.ready.status, scheduler.ready.reason], ['False', 'Provisioning']);
    const reply = await service.platform(`/clusters/${ids['starting']}?businessOrgId=${org}`, { as: 'ada' });
    assert.deepEqual(
      [reply.body.status.lifecycleState, reply.body.status.kubeletVersion],
      ['provisioning', ''],
    );
  });

  await t.test('what keeps a cluster from applying its configuration is said in words', async () => {
    const { scheduler } = await settled('failing');
    assert.deepEqual(scheduler.ready, {
      type: 'SUNKReady',
      status: 'False',
      reason: 'ApplyFailed',
      message: 'The account ada is there already, and not ours.',
      observedGeneration: 1,
      lastTransitionTime: scheduler.ready.lastTransitionTime,
    });
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

  const nothing = (name: string) => ({
    scheduler: { configured: { state: 'unknown' }, supported: { kubernetes: true, sunk: true } },
    storage: {
      configured: { ceph: 'unknown', weka: 'unknown', nfs: 'unknown' },
      supported: { ceph: true, nfs: true },
      purchase: purchase(name),
    },
  });

  await t.test('a cluster that never reported: unknown, observation_stale, no observedAt', async () => {
    assert.deepEqual((await options('mute')).body, {
      state: 'unknown',
      reason: 'observation_stale',
      ...nothing('mute'),
    });
  });

  await t.test('admittedQuotaBytes is what accepted purchases come to, whatever the quota', async () => {
    const { id: userId } = (await service.business('/me', { as: 'ada' })).body.user;
    await service.app.store.write(async ({ db }) => {
      for (const [n, state] of (['active', 'active', 'requested', 'declined'] as const).entries()) {
        const common = {
          organization_id: org,
          cluster_id: ids['slurm'] ?? '',
          storage_type: 'ceph' as const,
          bytes: 1000 + n,
          created_by_user_id: userId,
          created_at: new Date().toISOString(),
        };
        const expires_at = common.created_at;
        await db
          .insertInto('storage_quotes')
          .values({ id: `quote_${n}`, current_bytes: 0, expires_at, ...common })
          .execute();
        const decision = { decided_by_user_id: null, decided_at: null };
        await db
          .insertInto('storage_purchases')
          .values({ id: `purchase_${n}`, quote_id: `quote_${n}`, state, ...decision, ...common })
          .execute();
      }
    });
    const { storage } = await settled('slurm');
    assert.deepEqual(storage.purchase, { ...purchase('slurm'), admittedQuotaBytes: 2001 });
    assert.equal(storage.quotaBytes, 5_000_000_000_000);
  });

  for (const state of ['releasing', 'released'] as const) {
    await t.test(`${state}: unavailable, cluster_not_active`, async () => {
      await silence(service, ids['nfs'] ?? '');
      await setCluster(service, ids['nfs'] ?? '', { state });
      const { status, body } = await options('nfs');
      assert.equal(status, 200);
      const { observedAt, ...rest } = body;
      assert.ok(observedAt);
      assert.deepEqual(rest, { state: 'unavailable', reason: 'cluster_not_active', ...nothing('nfs') });
    });
  }

  await t.test('no observation in the last two minutes: unknown, observation_stale', async () => {
    const id = ids['plain'] ?? '';
    await silence(service, id);
    const { observedAt } = (await options('plain')).body;
    service.advance(Date.parse(observedAt) + 120_000 - Date.now() - 1000);
    assert.equal((await options('plain')).body.state, 'available');
    service.advance(1001);
    assert.deepEqual((await options('plain')).body, {
      state: 'unknown',
      reason: 'observation_stale',
      observedAt,
      ...nothing('plain'),
    });
  });
});
