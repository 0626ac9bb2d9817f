import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually, physics, startTestApp } from '../support/app.ts';
import { labCluster, setSimulated } from './support.ts';

const fault = { reason: 'ControllerDown', message: 'slurmctld does not answer on 10.0.0.5.' };
const failure = 'The account ada is there already, and not ours.';
const sunk = { scheduler: 'sunk' as const };
const degraded = { reason: 'Degraded', message: 'One of three monitors is down.' };
const clusters = [
  labCluster('slurm', 1, { storage: { types: ['ceph', 'weka'], quotaBytes: 5_000_000_000_000 } }, sunk),
  labCluster('broken', 2, { schedulerFault: fault, storage: { types: ['ceph'], fault: degraded } }, sunk),
  labCluster('failing', 3, { failure }, sunk),
  labCluster('starting', 4, { provisionMs: 600_000 }, sunk),
  labCluster('mute', 5, { silent: true }),
];
const [slurm, broken, failing, starting, mute] = clusters.map(({ id }) => id) as [
  ...[string, string, string, string, string],
];

// What the options follow from: option-rules.test.ts.
test('the options of a cluster are those of its latest report, and say in words what does not work', async () => {
  await using service = await startTestApp({ lab: { ...physics, clusters } });
  const { org_id: org } = (await service.business('/me', { as: 'ada' })).body.memberships[0];
  const ask = (path: string, call = {}) =>
    service.platform(`/clusters/${path}?businessOrgId=${org}`, { as: 'ada', ...call });
  const options = async (id: string) => (await ask(`${id}/options`)).body;
  const settled = (id: string) =>
    eventually(
      () => options(id),
      ({ state, scheduler }) => state === 'available' && scheduler.ready !== undefined,
    );
  const stateOf = async (id: string) => (await ask(id)).body.status.lifecycleState;

  const first = await settled(slurm);
  const { lastTransitionTime } = first.scheduler.ready;
  assert.ok(Date.parse(lastTransitionTime) && Date.parse(first.observedAt));
  const condition = { status: 'True', reason: 'Ready', observedGeneration: 1 };
  assert.deepEqual(first, {
    state: 'available',
    observedAt: first.observedAt,
    scheduler: {
      configured: { state: 'configured', value: 'sunk' },
      ready: { type: 'SUNKReady', ...condition, lastTransitionTime },
      supported: { kubernetes: true, sunk: true },
    },
    storage: {
      configured: { ceph: 'configured', weka: 'configured', nfs: 'not_configured' },
      quotaBytes: 5_000_000_000_000,
      ready: { ...first.storage.ready, type: 'StorageReady', ...condition },
      supported: { ceph: true, nfs: true },
      purchase: { method: 'POST', path: `/organizations/${org}/purchases`, target_cluster_id: slurm },
    },
  });
  const next = await eventually(
    () => options(slurm),
    ({ observedAt }) => observedAt > first.observedAt,
  );
  assert.equal(next.scheduler.ready.lastTransitionTime, lastTransitionTime);

  const { scheduler, storage } = await settled(broken);
  const { lastTransitionTime: before, ...ready } = scheduler.ready;
  assert.deepEqual(ready, { type: 'SUNKReady', status: 'False', observedGeneration: 1, ...fault });
  assert.deepEqual([storage.ready.status, storage.ready.reason], ['False', 'Degraded']);
  assert.equal(await stateOf(broken), 'active', 'all the same');
  const refusing = (await settled(failing)).scheduler.ready;
  assert.deepEqual([refusing.status, refusing.reason, refusing.message], ['False', 'ApplyFailed', failure]);
  const { status, reason } = (await settled(starting)).scheduler.ready;
  assert.deepEqual([status, reason, await stateOf(starting)], ['False', 'Provisioning', 'provisioning']);
  await setSimulated(service, broken, { schedulerFault: undefined });
  const mended = await eventually(
    () => options(broken),
    (body) => body.scheduler.ready.status === 'True',
  );
  assert.ok(mended.scheduler.ready.lastTransitionTime > before);

  const { state, observedAt } = await options(mute);
  assert.deepEqual([state, observedAt], ['unknown', undefined], 'it never reported');

  // A condition of another configuration than the present one is not there.
  await setSimulated(service, slurm, { applyMs: 1500 });
  await ask(`${slurm}/scheduler-configuration`, { method: 'PUT', body: { slurmExtraConfig: 'x' } });
  const meanwhile = await options(slurm);
  assert.deepEqual([meanwhile.state, 'ready' in meanwhile.scheduler], ['available', false]);
  assert.equal((await settled(slurm)).scheduler.ready.observedGeneration, 2);
});
