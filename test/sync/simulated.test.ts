/** The simulated driver: its login node and accounts, a Slurm configuration, and the faults it can be told to have. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout, setTimeout as sleep } from 'node:timers/promises';
import type { Manifest, ManifestAccount } from '../../src/domain/access/manifest.ts';
import type { SimulatedSettings } from '../../src/domain/clusters/lab.ts';
import { isUsername } from '../../src/domain/people/person.ts';
import type { SlurmConfiguration } from '../../src/domain/slurm/configuration.ts';
import { readLab } from '../../src/service/config/lab-file.ts';
import { createSimulatedKubernetesDriver } from '../../src/sync/simulated/index.ts';
import { ada, bob, keyless, manifestOf } from '../support/access.ts';
import { alpha, eventually, physics, startTestApp } from '../support/app.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { fieldsOf } from '../support/fields.ts';
import { newPublicKey } from '../support/ssh-keys.ts';
import { start } from './simulated-driver.ts';

const signal = new AbortController().signal;
const manifest = (generation: number, ...accounts: ManifestAccount[]) =>
  manifestOf({ generation, listVersion: 10 + generation, accounts });

test('the login node restarts when a login account comes or goes, and only then', async () => {
  using directory = temporaryDirectory();
  const { driver, since } = await start(directory.path);
  const apply = async (next: Manifest) => {
    await driver.apply(next, signal);
    return since();
  };
  assert.deepEqual(since(), ['start ']);
  assert.deepEqual(await apply(manifest(1, ada, keyless)), ['stop', 'start ada']);
  assert.deepEqual(
    await apply(manifest(2, { ...ada, keySetGeneration: 2, keyFingerprints: ['a', 'b'] }, keyless)),
    [],
    'a key more is no matter of its accounts',
  );
  assert.deepEqual(await apply(manifest(3, { ...ada, shell: '/bin/zsh' }, keyless)), ['set ada']);
  assert.deepEqual(await apply(manifest(4, ada, bob)), ['stop', 'start ada,bob']);
  assert.deepEqual(await apply(manifest(5, ada, keyless)), ['stop', 'start ada']);
  assert.deepEqual(await apply(manifest(6, ada)), []);
  assert.deepEqual(await apply(manifest(6, ada)), []);
  await driver.close();
});

test('a look in the midst of a restart does not start a second login node, which would never stop', async () => {
  using directory = temporaryDirectory();
  const { driver, nodes } = await start(directory.path);
  const working = driver.apply(manifest(1, ada), signal);
  while (nodes[0]?.running) await setTimeout(1);
  const { loginNodes } = await driver.observe(signal);
  assert.deepEqual([loginNodes?.[0]?.port, loginNodes?.[0]?.up], [1000, false]);
  await working;
  assert.deepEqual(fieldsOf(nodes, 'running'), [false, true]);
  await driver.close();
});

test('it reports what it applied, as a real cluster does', async () => {
  using directory = temporaryDirectory();
  const { driver } = await start(directory.path);
  const before = await driver.observe(signal);
  assert.deepEqual([before.manifestGeneration, before.accounts, before.controlPlaneReady], [0, [], true]);
  await driver.apply(manifest(4, ada, keyless), signal);
  const report = await driver.observe(signal);
  assert.deepEqual([report.manifestGeneration, report.desiredGeneration, report.machines?.length], [4, 1, 3]);
  assert.equal(report.failure, null);
  assert.deepEqual(
    [report.listVersion, report.accounts],
    [14, []],
    'the accounts of that version, and no others',
  );
  assert.deepEqual(report.loginNodes, [
    { name: 'login-1', host: '127.0.0.1', port: 1001, hostKey: 'ssh-ed25519 AAAA', up: true },
  ]);
});

test('its state survives a restart, in a file that others cannot read', async () => {
  using directory = temporaryDirectory();
  const first = await start(directory.path);
  await first.driver.apply(manifest(3, ada, keyless), signal);
  const before = await first.driver.observe(signal);
  await first.driver.close();
  const second = await start(directory.path);
  assert.deepEqual(second.since(), ['start ada']);
  const after = await second.driver.observe(signal);
  assert.deepEqual({ ...after, loginNodes: [] }, { ...before, loginNodes: [] });
  for (const file of ['simulated.json', 'logins.json']) {
    assert.equal(statSync(join(directory.path, file)).mode & 0o777, 0o600);
  }
  await second.driver.close();
  const file = join(directory.path, 'simulated.json');
  writeFileSync(file, '');
  await assert.rejects(start(directory.path), ({ message }: Error) =>
    message.startsWith(`${file} cannot be`),
  );
});

test('being cut off half-way leaves the last state; applying again completes it', async () => {
  using directory = temporaryDirectory();
  const { driver } = await start(directory.path);
  await driver.apply(manifest(1, ada), signal);
  await assert.rejects(driver.apply(manifest(2, ada, bob), AbortSignal.abort()));
  assert.equal((await driver.observe(signal)).manifestGeneration, 1);
  await driver.apply(manifest(2, ada, bob), signal);
  assert.equal((await driver.observe(signal)).manifestGeneration, 2);
});

test('after a restart it knows who could log in, and restarts for no one else', async () => {
  using directory = temporaryDirectory();
  const first = await start(directory.path);
  await first.driver.apply(manifest(1, ada), signal);
  await first.driver.close();
  const second = await start(directory.path);
  await second.driver.apply(manifest(2, { ...ada, keySetGeneration: 2 }), signal);
  assert.deepEqual(second.since(), ['start ada']);
  await second.driver.apply(manifest(3, ada, bob), signal);
  assert.deepEqual(second.since(), ['stop', 'start ada,bob']);
});

test('a login node that could not take the accounts gets them when they are applied again', async () => {
  using directory = temporaryDirectory();
  const { driver, since, nodes } = await start(directory.path);
  await driver.apply(manifest(1, ada), signal);
  const [node] = nodes.slice(-1);
  assert.ok(node);
  const { setAccounts } = node;
  node.setAccounts = () => Promise.reject(new Error('it is busy'));
  const next = manifest(2, { ...ada, shell: '/bin/zsh' });
  await assert.rejects(driver.apply(next, signal), /it is busy/);
  node.setAccounts = setAccounts;
  since();
  await driver.apply(next, signal);
  assert.deepEqual(since(), ['set ada']);
});

test('released, it has no login node and no accounts, and what it was is forgotten; homes stay', async () => {
  using directory = temporaryDirectory();
  const { driver, since } = await start(directory.path);
  await driver.apply(manifest(1, ada), signal);
  writeFileSync(join(directory.path, 'home'), 'hers');
  since();
  for (let i = 0; i < 2; i++) await driver.release(signal);
  assert.deepEqual(since(), ['stop']);
  const report = await driver.observe(signal);
  assert.deepEqual([report.manifestGeneration, report.listVersion, report.loginNodes], [0, 0, []]);
  assert.deepEqual(readdirSync(directory.path), ['home']);
});

test('a login node that died is started again with the accounts it had', async () => {
  using directory = temporaryDirectory();
  const { driver, since, nodes } = await start(directory.path);
  await driver.apply(manifest(1, ada), signal);
  since();
  const node = nodes.at(-1);
  assert.ok(node);
  node.running = false;
  assert.equal((await driver.observe(signal)).loginNodes[0]?.up, true);
  assert.deepEqual(since(), ['start ada']);
});

test('where no login node may be started, no one can log in, nothing is applied, and the reason is said', async () => {
  using directory = temporaryDirectory();
  const loginNodeRefusal = 'There is no login node: a reason.';
  const { driver, since } = await start(directory.path, {}, { loginNodeRefusal });
  const before = await driver.observe(signal);
  await driver.apply(manifest(1, ada), signal);
  const after = await driver.observe(signal);
  for (const { failure, loginNodes, manifestGeneration, scheduler } of [before, after]) {
    assert.deepEqual([failure, loginNodes, manifestGeneration], [loginNodeRefusal, [], 0]);
    const { status, message } = scheduler?.ready ?? {};
    assert.deepEqual([status, message], ['False', loginNodeRefusal]);
  }
  await driver.release(signal);
  await driver.close();
  assert.deepEqual(since(), []);
});

test('no one gets an account with a number or a name that this machine has already, also where they had it; the others do, and it is said', async () => {
  using directory = temporaryDirectory();
  let owners = new Map([[bob.uid, 'the account daemon']]);
  const { driver, since } = await start(directory.path, {}, { findOwners: async () => owners });
  await driver.apply(manifest(1, ada, bob), signal);
  assert.equal(since().at(-1), 'start ada');
  const report = await driver.observe(signal);
  assert.equal(
    report.failure,
    'There is no login for: bob (number 20001), as this machine has the account daemon. Change that there.',
  );
  assert.deepEqual([report.manifestGeneration, report.drifted], [1, undefined]);
  assert.deepEqual(fieldsOf(report.accounts, 'userId', 'loginState', 'keyFingerprints'), [
    [bob.userId, 'waiting_for_key', []],
  ]);
  owners = new Map();
  assert.equal((await driver.observe(signal)).drifted, true);
  await driver.apply(manifest(1, ada, bob), signal);
  assert.equal(since().at(-1), 'start ada,bob');
  const { failure, drifted, accounts } = await driver.observe(signal);
  assert.deepEqual([failure, drifted, accounts], [null, undefined, []]);
  owners = new Map([[bob.uid, 'sudo rules for bob']]);
  await driver.apply(manifest(2, ada, bob), signal);
  assert.equal(since().at(-1), 'start ada');
});

const hostNames = ['/etc/passwd', '/etc/group'].flatMap((file) =>
  readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((line) => line.split(':')[0] ?? []),
);

test('on a service that is root, a member with a name of this machine gets no login, and operators read why', {
  skip: process.getuid?.() === 0 ? false : 'without root, no account has its number',
}, async () => {
  const username = hostNames.find(isUsername);
  assert.ok(username);
  const [organization, ...others] = physics.organizations ?? [];
  const members = (organization?.members ?? []).map((one) =>
    one.username === 'bob' ? { ...one, username } : one,
  );
  const organizations = [{ slug: 'physics', name: 'Physics', members }, ...others];
  await using service = await startTestApp({ lab: { ...physics, organizations } });
  await service.write('/me/ssh-keys', { as: 'bob', body: { public_key: newPublicKey() } });
  const { failure } = await eventually(
    async () => (await service.business('/operator/clusters', { as: 'root' })).body.clusters[0],
    (cluster) => cluster.failure !== null,
  );
  assert.ok(failure.startsWith(`There is no login for: ${username} (number `), failure);
  const { default_org_id: organizationId } = (await service.business('/me', { as: 'bob' })).body;
  const path = `/clusters/${alpha}/ssh-access?organizationId=${organizationId}`;
  const { status, body } = await service.platform(path, { as: 'bob' });
  assert.deepEqual([status, body.ready], [200, false]);
});

const job = { id: '7', user: 'ada', name: 'train', machines: ['alpha-1'] };
const configured = (desiredGeneration: number, slurmConfiguration: SlurmConfiguration = {}) =>
  manifestOf({ desiredGeneration, schedulerGeneration: desiredGeneration, slurmConfiguration });

test('a Slurm configuration restarts the login node when it differs, and not when it is the same', async () => {
  using directory = temporaryDirectory();
  const { driver, nodes } = await start(directory.path, { runningJobs: [job] });
  await driver.apply(configured(1), signal);
  assert.equal(nodes.length, 1);
  await driver.apply(configured(2, { slurmExtraConfig: 'a' }), signal);
  assert.equal(nodes.length, 2);
  await driver.apply(configured(3, { slurmExtraConfig: 'a' }), signal);
  assert.equal(nodes.length, 2);
  const report = await driver.observe(signal);
  assert.equal(report.desiredGeneration, 3);
  assert.deepEqual(
    report.runningJobs?.map(({ id, machines, gpus }) => ({ id, machines, gpus })),
    [{ id: job.id, machines: job.machines, gpus: 8 * job.machines.length }],
    'compute nodes did not restart',
  );

  const again = await start(directory.path, { runningJobs: [job] });
  await again.driver.apply(configured(3, { slurmExtraConfig: 'a' }), signal);
  assert.equal(again.nodes.length, 1, 'what is in force is remembered');
});

test('another computeS6Packages restarts compute nodes and ends the jobs there', async () => {
  using directory = temporaryDirectory();
  const { driver } = await start(directory.path, { runningJobs: [job] });
  await driver.apply(configured(1, { computeS6Packages: 'a' }), signal);
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
  await driver.apply(configured(1), signal);
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
