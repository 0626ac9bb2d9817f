/** What the simulated driver makes of a Slurm configuration, and the faults it can be told to have. */

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SimulatedSettings } from '../../src/domain/clusters/lab.ts';
import type { SlurmConfiguration } from '../../src/domain/slurm/configuration.ts';
import { readLab } from '../../src/service/config/lab-file.ts';
import { createSimulatedKubernetesDriver } from '../../src/sync/simulated/index.ts';
import { manifestOf } from '../support/access.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { fieldsOf } from '../support/fields.ts';
import { start } from './simulated-driver.ts';

const signal = new AbortController().signal;
const job = { id: '7', user: 'ada', name: 'train', machines: ['alpha-1'] };
const manifest = (desiredGeneration: number, slurmConfiguration: SlurmConfiguration = {}) =>
  manifestOf({ desiredGeneration, schedulerGeneration: desiredGeneration, slurmConfiguration });

test('a Slurm configuration restarts the login node when it differs, and not when it is the same', async () => {
  using directory = temporaryDirectory();
  const { driver, nodes } = await start(directory.path, { runningJobs: [job] });
  await driver.apply(manifest(1), signal);
  assert.equal(nodes.length, 1);
  await driver.apply(manifest(2, { slurmExtraConfig: 'a' }), signal);
  assert.equal(nodes.length, 2);
  await driver.apply(manifest(3, { slurmExtraConfig: 'a' }), signal);
  assert.equal(nodes.length, 2);
  const report = await driver.observe(signal);
  assert.equal(report.desiredGeneration, 3);
  assert.deepEqual(
    report.runningJobs?.map(({ id, machines, gpus }) => ({ id, machines, gpus })),
    [{ id: job.id, machines: job.machines, gpus: 8 * job.machines.length }],
    'compute nodes did not restart',
  );

  const again = await start(directory.path, { runningJobs: [job] });
  await again.driver.apply(manifest(3, { slurmExtraConfig: 'a' }), signal);
  assert.equal(again.nodes.length, 1, 'what is in force is remembered');
});

test('another computeS6Packages restarts compute nodes and ends the jobs there', async () => {
  using directory = temporaryDirectory();
  const { driver } = await start(directory.path, { runningJobs: [job] });
  await driver.apply(manifest(1, { computeS6Packages: 'a' }), signal);
  assert.deepEqual((await driver.observe(signal)).runningJobs, []);
});

/** The Kubernetes side of a cluster of another scheduler. */
function startKubernetes(
  dataDir: string,
  more: Partial<SimulatedSettings> = {},
  scheduler: 'kubernetes' | null = 'kubernetes',
) {
  const settings: SimulatedSettings = { computeNodes: 3, gpusPerNode: 8, ...more };
  const driver = createSimulatedKubernetesDriver({
    name: 'Alpha',
    scheduler,
    settings: async () => settings,
    dataDir,
  });
  return { driver, settings };
}

test('a Kubernetes-only cluster that has a failure says so of the configuration that there is', async () => {
  using directory = temporaryDirectory();
  const { driver, settings } = startKubernetes(directory.path, { failure: 'the disk is full' });
  const { failure, scheduler } = await driver.observe(signal);
  assert.deepEqual([failure, scheduler?.ready?.reason], ['the disk is full', 'ApplyFailed']);
  await assert.rejects(driver.release(signal), /the disk is full/);
  delete settings.failure;
  assert.equal((await driver.observe(signal)).scheduler?.ready?.status, 'True');
});

test('provisionMs: the control plane works after that time, counted from the first start', async () => {
  using directory = temporaryDirectory();
  const { driver } = await start(directory.path, { provisionMs: 150 });
  await driver.apply(manifest(1), signal);
  const before = await driver.observe(signal);
  assert.deepEqual(
    [before.controlPlaneReady, before.kubernetes?.ready, before.scheduler?.ready?.reason],
    [false, false, 'Provisioning'],
  );
  assert.equal(before.kubernetes?.kubeletVersion, undefined);
  await sleep(160);
  assert.equal((await driver.observe(signal)).controlPlaneReady, true);
  const again = await start(directory.path, { provisionMs: 150 });
  assert.equal((await again.driver.observe(signal)).controlPlaneReady, true);
});

test('it reports machines, storage and Kubernetes as it is set to', async () => {
  using directory = temporaryDirectory();
  const { driver, settings } = await start(directory.path, {
    nodesDown: 1,
    machine: { gpuModel: 'H200', cpuCores: 192 },
    storage: { types: ['nfs'], quotaBytes: 5 },
  });
  const report = await driver.observe(signal);
  assert.deepEqual(fieldsOf(report.machines, 'name', 'ready', 'phase', 'gpuModel'), [
    ['Alpha-1', true, 'idle', 'H200'],
    ['Alpha-2', true, 'idle', 'H200'],
    ['Alpha-3', false, 'down', 'H200'],
  ]);
  assert.deepEqual(report.storage, {
    ceph: false,
    weka: false,
    nfs: true,
    sharedVolumeBytes: 107_374_182_400,
    ready: { status: 'True', reason: 'Ready' },
  });
  assert.equal(report.kubernetes?.server, 'https://alpha.simulated.invalid:6443');
  settings.storage = { types: ['ceph', 'weka'], quotaBytes: 5, sharedVolumeBytes: 9 };
  const { storage } = await driver.observe(signal);
  assert.deepEqual([storage?.quotaBytes, storage?.sharedVolumeBytes], [5, 9]);
  delete settings.storage;
  assert.deepEqual((await driver.observe(signal)).storage, { ceph: false, weka: false, nfs: false });
});

test('it says which GPUs are in use: those of its jobs, and so many more, and why a node is drained', async () => {
  using directory = temporaryDirectory();
  const { driver, settings } = await start(directory.path, {
    computeNodes: 5,
    runningJobs: [{ ...job, machines: ['Alpha-2'] }],
    gpusInUse: 11,
    nodesDown: 1,
    nodesDrained: 1,
    drainReason: 'ECC errors',
  });
  const machines = async () =>
    (await driver.observe(signal)).machines?.map(({ phase, gpusInUse, reason }) => [
      phase,
      gpusInUse,
      reason,
    ]);
  assert.deepEqual(await machines(), [
    ['allocated', 8, undefined],
    ['allocated', 8, undefined],
    ['mixed', 3, undefined],
    ['idle+drain', 0, 'ECC errors'],
    ['down', 0, 'Not responding'],
  ]);
  delete settings.runningJobs;
  settings.gpusInUse = 0;
  assert.equal((await machines())?.[1]?.[1], 0);
});

test('without a scheduler it says that there is none', async () => {
  using directory = temporaryDirectory();
  const { driver } = startKubernetes(directory.path, {}, null);
  assert.deepEqual((await driver.observe(signal)).scheduler, { configured: null });
});

test('the lab file takes every one of these settings, and no other', () => {
  using directory = temporaryDirectory();
  const file = join(directory.path, 'lab.yaml');
  const simulated: Required<SimulatedSettings> = {
    computeNodes: 3,
    gpusPerNode: 8,
    applyMs: 0,
    provisionMs: 100,
    runningJobs: [job],
    pendingJobs: [{ id: '9', user: 'ada', name: 'later', reason: 'Priority', gpus: 8 }],
    requeue: true,
    machine: { gpuModel: 'H200', cpuCores: 192, memoryGib: 2048, ibSpeed: '400 Gb/sec' },
    nodesDown: 1,
    nodesDrained: 1,
    drainReason: 'a disk is slow',
    gpusInUse: 5,
    loginMode: 'PerUser',
    silent: true,
    failure: 'the disk is full',
    schedulerFault: { reason: 'ControllerDown', message: 'slurmctld does not answer' },
    kubernetes: {
      version: 'v1.34.0',
      kubeletVersion: 'v1.33.0',
      server: 'https://10.0.0.5:6443',
      certificateAuthority: 'PEM',
      ready: false,
    },
    storage: {
      types: ['ceph', 'weka'],
      quotaBytes: 5,
      sharedVolumeBytes: 9,
      fault: { reason: 'Degraded', message: 'a monitor is down' },
    },
  };
  const write = (section: object) => {
    const lab = {
      organizations: [{ slug: 'x', name: 'X', members: [{ email: 'ada@x.example', role: 'owner' }] }],
      clusters: [{ name: 'alpha', organization: 'x', simulated: section }],
    };
    writeFileSync(file, JSON.stringify(lab));
    return readLab(file);
  };
  assert.deepEqual(write(simulated).clusters?.[0]?.simulated, simulated);
  assert.throws(() => write({ ...simulated, noise: 1 }), /noise/);
  assert.throws(() => write({ ...simulated, storage: { types: ['zfs'] } }), /storage/);
});

test('a Kubernetes cluster whose API is not ready has no control plane available', async () => {
  using directory = temporaryDirectory();
  const { driver, settings } = startKubernetes(directory.path, { kubernetes: { ready: false } });
  const down = await driver.observe(signal);
  assert.equal(down.kubernetes?.ready, false);
  assert.deepEqual([down.scheduler?.ready?.status, down.scheduler?.ready?.reason], ['False', 'ApiNotReady']);
  settings.kubernetes = { ready: true };
  assert.equal((await driver.observe(signal)).scheduler?.ready?.status, 'True');
});

test('Slurm works without the Kubernetes API being ready', async () => {
  using directory = temporaryDirectory();
  const { driver } = await start(directory.path, { kubernetes: { ready: false } });
  assert.equal((await driver.observe(signal)).scheduler?.ready?.status, 'True');
});
