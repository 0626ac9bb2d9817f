/** A cluster with `slurm` and `kubernetes` sections is driven by both; one failing does not hide the other. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Manifest, Report } from '../../src/domain/manifest.ts';
import { createLogger } from '../../src/log.ts';
import { createBothDriver } from '../../src/sync/drivers/both.ts';
import type { Driver } from '../../src/sync/index.ts';
import { grant, startKubernetesLab } from '../kubernetes/lab.ts';

const manifest: Manifest = {
  clusterId: 'c',
  generation: 3,
  desiredGeneration: 2,
  schedulerGeneration: 0,
  slurmConfiguration: {},
  listVersion: 7,
  accounts: [],
};

const loginNode = { name: 'login1', host: '10.0.0.5', port: 22, hostKey: 'ssh-ed25519 AAAA', up: true };

/** A Slurm cluster that does as it is told to. */
function slurmDriver() {
  const state = { generation: 0, calls: [] as string[], observeFault: '', applyFault: '', releaseFault: '' };
  const driver: Driver = {
    gatherMs: 2000,
    async observe(): Promise<Report> {
      state.calls.push('observe');
      if (state.observeFault) throw new Error(state.observeFault);
      return {
        manifestGeneration: state.generation,
        desiredGeneration: 2,
        listVersion: 7,
        controlPlaneReady: true,
        scheduler: { configured: 'sunk', ready: { status: 'True', reason: 'Ready' } },
        storage: { ceph: false, weka: false, nfs: true },
        machines: [
          { name: 'gpu-1', ready: true, phase: 'idle', ibSpeed: '400 Gb/sec' },
          { name: 'cpu-1', ready: true, phase: 'idle' },
        ],
        runningJobs: [],
        loginNodes: [loginNode],
        accounts: [],
        failure: null,
      };
    },
    async apply({ generation }) {
      state.calls.push('apply');
      if (state.applyFault) throw new Error(state.applyFault);
      state.generation = generation;
    },
    async release() {
      state.calls.push('release');
      if (state.releaseFault) throw new Error(state.releaseFault);
    },
    async close() {},
  };
  return { state, driver };
}

async function startBoth(hasReported = false) {
  const kubernetes = await startKubernetesLab();
  const slurm = slurmDriver();
  const clock = { now: 1_000_000 };
  const driver = createBothDriver({
    name: 'gamma',
    slurm: slurm.driver,
    kubernetes: kubernetes.driver,
    hasReported,
    log: createLogger('silent'),
    now: () => clock.now,
  });
  const signal = AbortSignal.timeout(60_000);
  return {
    kubernetes,
    slurm: slurm.state,
    driver,
    clock,
    signal,
    async pass() {
      await driver.permit?.(signal);
      return driver.observe(signal);
    },
    [Symbol.asyncDispose]: () => kubernetes[Symbol.asyncDispose](),
  };
}

test("one report: Slurm's list and scheduler, Kubernetes' API, and the machines and storage of both", async () => {
  await using both = await startBoth();
  await both.driver.apply(manifest, both.signal);
  both.kubernetes.access.grants.push(grant('x'));
  const report = await both.pass();
  assert.deepEqual(
    [report.manifestGeneration, report.desiredGeneration, report.listVersion, report.loginNodes],
    [3, 2, 7, [loginNode]],
  );
  assert.equal(report.scheduler?.configured, 'sunk');
  assert.equal(report.kubernetes?.version, 'v1.34.9');
  assert.deepEqual(
    report.machines?.map(({ name }) => name),
    ['gpu-1', 'cpu-1', 'control-1', 'gpu-2'],
  );
  const { phase, gpuCount, ibSpeed } = report.machines?.[0] ?? {};
  assert.deepEqual([phase, gpuCount, ibSpeed], ['idle', 8, '400 Gb/sec']);
  assert.deepEqual(report.storage, { ceph: false, weka: true, nfs: false });
  assert.deepEqual(
    [report.failure, report.kubernetesFailure, report.partialMachines],
    [null, undefined, false],
  );
  assert.deepEqual(both.kubernetes.bound(), ['team-a/grant_x edit x@physics.example']);
  assert.equal(both.driver.gatherMs, 2000);
});

test('an API server that is away: Slurm is applied and reported, and the access list does not fail for it', async () => {
  await using both = await startBoth();
  await both.kubernetes.api.stop();
  await both.driver.apply(manifest, both.signal);
  const report = await both.pass();
  assert.deepEqual([report.manifestGeneration, report.loginNodes, report.failure], [3, [loginNode], null]);
  assert.equal(report.kubernetes, undefined);
  assert.match(report.kubernetesFailure ?? '', /API server of gamma cannot be reached/);
  assert.deepEqual([report.machines?.length, report.partialMachines], [2, true]);
  await both.kubernetes.api.start();
  both.clock.now += 60_000;
  assert.equal((await both.pass()).kubernetes?.ready, true);
  assert.equal((await both.pass()).kubernetesFailure, undefined);
});

test('an API server that goes away: what it last said counts for two minutes, as any report', async () => {
  await using both = await startBoth();
  await both.pass();
  await both.kubernetes.api.stop();
  both.clock.now += 100_000;
  const soon = await both.pass();
  assert.equal(soon.kubernetes?.ready, true);
  assert.match(soon.kubernetesFailure ?? '', /permissions could not be changed|cannot be reached/);
  both.clock.now += 100_000;
  assert.equal((await both.pass()).kubernetes, undefined);
});

test('a Slurm cluster that is away: permissions are kept, Kubernetes is reported, and nobody is confirmed', async () => {
  await using both = await startBoth();
  both.slurm.observeFault = 'ssh: no route to host';
  both.kubernetes.access.grants.push(grant('x'));
  const report = await both.pass();
  assert.equal(report.kubernetes?.ready, true);
  assert.deepEqual(
    [report.manifestGeneration, report.loginNodes, report.failure, report.controlPlaneReady],
    [0, [], 'ssh: no route to host', true],
  );
  assert.deepEqual(both.kubernetes.bound(), ['team-a/grant_x edit x@physics.example']);
});

test('a Slurm cluster that is away just after a start: what is on record stays for as long as it is good', async () => {
  await using both = await startBoth(true);
  both.slurm.observeFault = 'ssh: no route to host';
  both.kubernetes.access.grants.push(grant('x'));
  await assert.rejects(both.pass(), /no route to host/);
  assert.equal(both.kubernetes.bound().length, 1, 'permissions do not wait for it');
  both.clock.now += 121_000;
  assert.equal((await both.pass()).kubernetes?.ready, true);
});

test('applying that fails on Slurm is said, keeps its distance, and holds up no permission', async () => {
  await using both = await startBoth();
  both.slurm.applyFault = 'the disk is full';
  await both.driver.apply(manifest, both.signal);
  await both.driver.apply(manifest, both.signal);
  assert.deepEqual(both.slurm.calls, ['apply'], 'not again at once');
  both.kubernetes.access.grants.push(grant('x'));
  assert.equal((await both.pass()).failure, 'the disk is full');
  assert.equal(both.kubernetes.bound().length, 1);
  both.slurm.applyFault = '';
  both.clock.now += 60_000;
  await both.driver.apply(manifest, both.signal);
  const { manifestGeneration, failure } = await both.pass();
  assert.deepEqual([manifestGeneration, failure], [3, null]);
});

test('both away: it throws, and nothing is recorded', async () => {
  await using both = await startBoth();
  both.slurm.observeFault = 'ssh: no route to host';
  await both.kubernetes.api.stop();
  await assert.rejects(both.pass(), /no route to host/);
});

test('released, each is released whether or not the other is, and what is left is said of both', async () => {
  await using both = await startBoth();
  both.kubernetes.access.grants.push(grant('x'));
  await both.pass();
  both.slurm.releaseFault = 'login1: no route to host';
  await assert.rejects(both.driver.release(both.signal), /^Error: login1: no route to host$/);
  assert.deepEqual(both.kubernetes.bound(), []);
  both.slurm.releaseFault = '';
  await both.kubernetes.api.stop();
  await assert.rejects(both.driver.release(both.signal), /API server of gamma cannot be reached/);
});

test('the end of the service is the end of both', async () => {
  await using both = await startBoth();
  const stop = new AbortController();
  stop.abort();
  await assert.rejects(async () => both.driver.permit?.(stop.signal), /abort/i);
});
