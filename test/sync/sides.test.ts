/** A cluster with `slurm` and `kubernetes` sections has a worker for each side, and neither waits for the other. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clusterOptions, optionFacts } from '../../src/api/platform/options.ts';
import type { KubernetesSideReport } from '../../src/domain/access/manifest.ts';
import type { Lab } from '../../src/domain/clusters/lab.ts';
import {
  type KubernetesAccess,
  kubernetesAccessState,
  permissionIds,
} from '../../src/domain/kubernetes/bindings.ts';
import { createLogger, type Logger } from '../../src/lib/log.ts';
import { findKubernetesAccessOf } from '../../src/store/access/kubernetes-access.ts';
import { abandonRelease } from '../../src/store/clusters/cluster-sides.ts';
import { findCluster, startRelease } from '../../src/store/clusters/clusters.ts';
import { listMachines } from '../../src/store/clusters/machines.ts';
import { findClusterReport, findObservation } from '../../src/store/clusters/observations.ts';
import { createGrant } from '../../src/store/organizations/grants.ts';
import { type KubernetesDriver, startSyncLoop } from '../../src/sync/index.ts';
import { becomes, eventually } from '../support/app.ts';
import { openTestStore, userId } from '../support/store.ts';
import { HandMade } from './hand-made.ts';

const id = '9d6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50';
const hostKey = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ7JY0kB1n6sQXv0f5V5S7hCkXH0mM0Yf0Hc1b2JwXyZ';
const lab: Lab = {
  organizations: [
    { slug: 'x', name: 'X', members: [{ email: 'ada@x.example', role: 'owner', username: 'ada' }] },
  ],
  clusters: [
    {
      name: 'gamma',
      id,
      organization: 'x',
      slurm: {
        login: [{ name: 'login1', host: '10.0.0.5', hostKey }],
        controller: { host: '10.0.0.5', hostKey },
      },
      kubernetes: { server: 'https://10.0.0.5:6443', tokenFile: '/nowhere/token' },
    },
  ],
};
const loginNode = { name: 'login1', host: '10.0.0.5', port: 22, hostKey, up: true };

function slurmSide(): HandMade {
  const side = new HandMade();
  Object.assign(side.report, {
    scheduler: { configured: 'sunk', ready: { status: 'True', reason: 'Ready' } },
    storage: { ceph: false, weka: false, nfs: true },
    machines: ['gpu-1', 'cpu-1'].map((name) => ({ name, ready: true, phase: 'idle', ibSpeed: '400 Gb/sec' })),
    loginNodes: [loginNode],
  });
  return side;
}

/** A Kubernetes side in memory that does as it is told. */
function kubernetesSide() {
  const state = {
    applied: [] as { at: number; access: KubernetesAccess }[],
    observeFault: '',
    observing: Promise.resolve(),
    /** What an `apply` waits for, which a change then overtakes. */
    applying: undefined as Promise<void> | undefined,
    failure: null as string | null,
    applyFault: '',
    retry: false,
    /** It binds no grant. */
    refuses: false,
    releaseFault: '',
    released: 0,
    machines: ['gpu-1', 'node-2'],
    wake: () => {},
  };
  const driver: KubernetesDriver = {
    followsSettings: false,
    gatherMs: 0,
    async observe(): Promise<KubernetesSideReport> {
      await state.observing;
      if (state.observeFault) throw new Error(state.observeFault);
      return {
        controlPlaneReady: true,
        scheduler: { configured: 'kubernetes', ready: { status: 'True', reason: 'Ready' } },
        storage: { ceph: false, weka: true, nfs: false },
        kubernetes: { server: 'https://10.0.0.5:6443', ready: true, version: 'v1.34.9' },
        machines: state.machines.map((name) => ({ name, ready: true, phase: 'Ready', gpuCount: 8 })),
        failure: null,
      };
    },
    async apply(access, _signal, superseded) {
      state.applied.push({ at: Date.now(), access });
      await state.applying;
      if (state.applying && superseded?.aborted) return undefined;
      if (state.applyFault) throw new Error(state.applyFault);
      const ids = permissionIds(access).filter((one) => !state.refuses || !one.startsWith('grant_'));
      return { failure: state.failure, retry: state.retry, bound: ids };
    },
    async release() {
      if (state.releaseFault) throw new Error(state.releaseFault);
      state.released += 1;
    },
    async close() {},
  };
  return { state, driver };
}

type Sides = {
  slurm: HandMade;
  kubernetes: ReturnType<typeof kubernetesSide>['state'];
};

async function start({
  intervalMs = 600_000,
  log = createLogger('silent'),
  ...told
}: {
  intervalMs?: number;
  log?: Logger;
  slurm?: Partial<HandMade>;
  kubernetes?: Partial<Sides['kubernetes']>;
} = {}) {
  const house = await openTestStore(lab);
  const { store } = house;
  const [slurm, kubernetes] = [slurmSide(), kubernetesSide()];
  const sides = { slurm, kubernetes: kubernetes.state };
  Object.assign(slurm, told.slurm);
  Object.assign(kubernetes.state, told.kubernetes);
  const loop = startSyncLoop({
    store,
    drivers: {
      slurm: async () => slurm,
      async kubernetes(_cluster, wake) {
        kubernetes.state.wake = wake;
        return kubernetes.driver;
      },
    },
    subjectIssuer: undefined,
    intervalMs,
    log,
    now: Date.now,
  });
  const user_id = await userId(store, 'ada@x.example');
  const cluster = async () => {
    const row = await findCluster(store.read, id);
    assert.ok(row);
    return row;
  };
  const report = async () => findClusterReport(store.read, await cluster(), Date.now());
  return {
    ...sides,
    store,
    passes: () => loop.passesOf(id, 'kubernetes'),
    cluster,
    report,
    reported: (wanted: (one: Awaited<ReturnType<typeof report>>) => boolean) => eventually(report, wanted),
    options: async () => clusterOptions(await optionFacts(store.read, await cluster(), Date.now())),
    observation: (side: 'slurm' | 'kubernetes') => findObservation(store.read, id, side),
    grant: (expiresAt: number | null = null) =>
      store.write((tx) =>
        createGrant(tx, {
          clusterId: id,
          userId: user_id,
          relation: 'kubernetes.viewer',
          scope: null,
          roleId: null,
          expiresAt: expiresAt === null ? null : new Date(expiresAt).toISOString(),
          grantedBy: user_id,
        }),
      ),
    async [Symbol.asyncDispose]() {
      await loop.stop();
      await house[Symbol.asyncDispose]();
    },
  };
}

type House = Awaited<ReturnType<typeof start>>;

/** Until both sides are on record. */
const settled = ({ observation }: House) =>
  eventually(
    async () => (await observation('slurm'))?.manifestGeneration === 1 && (await observation('kubernetes')),
    Boolean,
  );

test("one report: Slurm's scheduler, Kubernetes' API, and the machines and storage of both", async () => {
  await using house = await start();
  await settled(house);
  const { scheduler, storage, kubernetes, failure } = await house.report();
  assert.deepEqual([scheduler?.configured, kubernetes?.version, failure], ['sunk', 'v1.34.9', null]);
  assert.deepEqual(storage, { ceph: false, weka: true, nfs: false });
  const machines = await eventually(
    () => listMachines(house.store.read, id),
    ({ length }) => length === 3,
  );
  const shared = machines.find(({ name }) => name === 'gpu-1')?.report;
  assert.deepEqual([shared?.phase, shared?.gpuCount, shared?.ibSpeed], ['idle', 8, '400 Gb/sec']);
  assert.equal((await house.cluster()).assignedNodeCount, 3);
});

test('a machine that neither side reports any more is retired, and one that only the other has is not', async () => {
  await using house = await start({ intervalMs: 50 });
  await settled(house);
  Object.assign(house.slurm.report, { machines: house.slurm.report.machines?.slice(0, 1) });
  await eventually(
    async () => (await listMachines(house.store.read, id)).map(({ name }) => name).sort(),
    (names) => names.join() === 'gpu-1,node-2',
  );
});

test('a permission does not wait for a Slurm list that takes long to apply', async () => {
  const over = Promise.withResolvers<void>();
  await using house = await start({ slurm: { slow: over.promise } });
  try {
    await becomes(() => house.slurm.applied.length, 1);
    await house.grant();
    await becomes(() => house.kubernetes.applied.at(-1)?.access.grants.length, 1);
    assert.equal((await house.observation('slurm'))?.manifestGeneration, 0, 'the list is still on its way');
  } finally {
    over.resolve();
  }
});

test('a grant that ends by itself is taken away then, and is never read as live after that', async () => {
  await using house = await start();
  await settled(house);
  const expiresAt = Date.now() + 1500;
  await house.grant(expiresAt);
  const { applied } = house.kubernetes;
  const isOver = ({ at, access }: (typeof applied)[0]) => at >= expiresAt && access.grants.length === 0;
  await becomes(() => applied.some(isOver), true);
  house.kubernetes.wake();
  const count = applied.length;
  await becomes(() => applied.length > count, true);
  assert.ok(applied.slice(applied.findIndex(isOver)).every(isOver));
});

test('a Slurm side that is away: permissions are kept, Kubernetes is reported, and no one is confirmed', async () => {
  await using house = await start({ slurm: { observeFault: 'ssh: no route to host' } });
  await house.grant();
  await becomes(() => house.kubernetes.applied.at(-1)?.access.grants.length, 1);
  const { failure, kubernetes } = await house.reported(
    (report) => report.kubernetes !== undefined && report.failure !== null,
  );
  assert.deepEqual([kubernetes?.ready, failure], [true, 'ssh: no route to host']);
  assert.equal(await house.observation('slurm'), undefined);
});

test('an API server that goes away is not ready from the first failed look on, and Slurm stays as it was', async () => {
  await using house = await start({ intervalMs: 50 });
  await settled(house);
  assert.equal((await house.report()).kubernetes?.ready, true);
  house.kubernetes.observeFault = 'The API server of gamma cannot be reached: ECONNREFUSED';
  const { kubernetes, scheduler, failure } = await house.reported(
    (report) => report.kubernetes?.ready === false,
  );
  assert.equal(kubernetes?.ready, false);
  assert.deepEqual([scheduler?.configured, scheduler?.ready?.status], ['sunk', 'True']);
  assert.match(failure ?? '', /API server of gamma cannot be reached/);
  assert.equal((await house.observation('slurm'))?.failure, null);
  house.kubernetes.observeFault = '';
  await house.reported((report) => report.kubernetes?.ready === true && report.failure === null);
});

test('applying that fails on Slurm is said, and holds up no permission', async () => {
  await using house = await start({ slurm: { applyFault: 'the disk is full' } });
  const { failure } = await house.reported((report) => report.failure !== null);
  assert.equal(failure, 'the disk is full');
  await house.grant();
  await becomes(() => house.kubernetes.applied.at(-1)?.access.grants.length, 1);
  house.slurm.applyFault = '';
  await becomes(async () => (await house.report()).failure, null);
});

test('a permission that could not be changed for the moment is tried again soon, also with a long interval', async () => {
  await using house = await start({
    kubernetes: { failure: 'The API server is in trouble (500): webhook.', retry: true },
  });
  await becomes(() => house.kubernetes.applied.length >= 3, true);
  const { failure, kubernetes } = await house.reported(
    (report) => report.failure !== null && report.kubernetes !== undefined,
  );
  assert.deepEqual([kubernetes?.ready, failure], [true, 'The API server is in trouble (500): webhook.']);
  house.kubernetes.failure = null;
  house.kubernetes.retry = false;
  await becomes(async () => (await house.report()).failure, null);
});

test('that a cluster became active is logged also where a change overtook the pass that observed it', async () => {
  const { promise: applying, resolve } = Promise.withResolvers<void>();
  const events: string[] = [];
  const log = createLogger('debug', (line) => {
    const { event, side } = JSON.parse(line);
    if (side === 'kubernetes') events.push(event);
  });
  await using house = await start({
    log,
    kubernetes: { applying },
  });
  await becomes(() => events.includes('sync.observed'), true);
  await becomes(async () => (await house.cluster()).state, 'active');
  await becomes(() => events.includes('sync.changed'), true);
  resolve();
  await becomes(() => events.includes('sync.converged'), true);
});

test('a change waits for no observation that takes long', async () => {
  await using house = await start();
  await settled(house);
  const { promise: observing, resolve } = Promise.withResolvers<void>();
  house.kubernetes.observing = observing;
  house.kubernetes.wake();
  const before = house.kubernetes.applied.length;
  await becomes(() => house.kubernetes.applied.length, before + 1);
  for (const count of [1, 2]) {
    await house.grant();
    await becomes(() => house.kubernetes.applied.at(-1)?.access.grants.length, count);
  }
  resolve();
});

test('a change waits for no back-off of what could not be changed for the moment', async () => {
  await using house = await start({
    kubernetes: { failure: 'The API server is in trouble (500): webhook.', retry: true },
  });
  const { nextAt = 0 } = await eventually(
    async () => ({ ...house.passes() }),
    ({ failures = 0, nextAt }) => failures >= 4 && nextAt !== undefined,
  );
  await house.grant();
  await becomes(() => house.kubernetes.applied.at(-1)?.access.grants.length, 1);
  assert.ok((house.kubernetes.applied.at(-1)?.at ?? nextAt) < nextAt);
});

test('permissions are changed on an API server that cannot be observed, and each fault is named', async () => {
  await using house = await start({
    kubernetes: {
      observeFault: 'The API server of gamma cannot be reached: it does not answer in time',
      failure: 'The cluster refuses RoleBinding x: policy.',
    },
  });
  await house.grant();
  await becomes(() => house.kubernetes.applied.at(-1)?.access.grants.length, 1);
  const both = `${house.kubernetes.observeFault} ${house.kubernetes.failure}`;
  await becomes(async () => (await house.report()).failure, both);
  await becomes(async () => (await house.observation('slurm'))?.manifestGeneration, 1);
  house.kubernetes.applyFault = house.kubernetes.observeFault;
  house.kubernetes.wake();
  // What both say is said once.
  await becomes(async () => (await house.report()).failure, house.kubernetes.observeFault);
});

test('a side that fails is passed at once when the cluster itself shows signs of life', async () => {
  await using house = await start();
  await settled(house);
  house.kubernetes.observeFault = 'away';
  house.kubernetes.wake();
  await becomes(async () => (await house.report()).failure, 'away');
  const before = house.kubernetes.applied.length;
  house.kubernetes.observeFault = '';
  house.kubernetes.wake();
  await becomes(() => house.kubernetes.applied.length > before, true);
});

test('released, each side is released whether or not the other is, and what is left is said of both', async () => {
  await using house = await start();
  await settled(house);
  house.slurm.releaseFault = 'login1: no route to host';
  await house.store.write((tx) => startRelease(tx, { clusterId: id, commandId: null }));
  await becomes(() => house.kubernetes.released, 1);
  const row = await eventually(
    () => house.cluster(),
    ({ cleanupState }) => cleanupState !== 'pending',
  );
  assert.deepEqual([row.state, row.cleanupState], ['releasing', 'login1: no route to host']);
  house.slurm.releaseFault = '';
  await becomes(async () => (await house.cluster()).state, 'released');
  assert.equal(house.kubernetes.released, 1, 'what is released is not released again');
});

test('whether permissions are in force is observed: applied, failed with the reason, and pending until they are gone', async () => {
  await using house = await start();
  await settled(house);
  const state = async (now = Date.now()) => {
    const ada = await userId(house.store, 'ada@x.example');
    const facts = await findKubernetesAccessOf(house.store, await house.cluster(), ada, now);
    return kubernetesAccessState(facts).state;
  };
  await eventually(state, (one) => one === 'applied');
  house.kubernetes.refuses = true;
  house.kubernetes.failure = 'The namespace team-a does not exist.';
  await house.grant(Date.now() + 600_000);
  await eventually(state, (one) => one === 'failed');
  house.kubernetes.refuses = false;
  house.kubernetes.failure = null;
  house.kubernetes.wake();
  await eventually(state, (one) => one === 'applied');
  assert.equal(
    await state(Date.now() + 700_000),
    'pending',
    'a grant that has lapsed is not in force, and still there',
  );
});

test('a cluster that cannot be reached any more is given up, and what is left on it is named', async () => {
  await using house = await start();
  await settled(house);
  house.slurm.releaseFault = 'login1: no route to host';
  await house.store.write((tx) => startRelease(tx, { clusterId: id, commandId: null }));
  await becomes(async () => (await house.cluster()).cleanupState, 'login1: no route to host');
  const cluster = await house.cluster();
  await house.store.write((tx) => abandonRelease(tx, cluster));
  const { state, cleanupState } = await house.cluster();
  assert.equal(state, 'released');
  assert.equal(
    cleanupState,
    'abandoned; left behind: the accounts ada, their Slurm associations and our part of the Slurm configuration on 10.0.0.5 and the compute nodes',
  );
});

test('the options of both follow from the latest look at each side', async () => {
  await using house = await start();
  await settled(house);
  const { state, scheduler, storage } = await house.options();
  assert.deepEqual(
    [state, scheduler.configured.value, scheduler.ready?.type, storage.configured],
    ['available', 'sunk', 'SUNKReady', { ceph: 'not_configured', weka: 'configured', nfs: 'not_configured' }],
  );
});
