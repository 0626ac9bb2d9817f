/** Several servers have the same clusters: the leader syncs them, and another when that one is gone. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Manifest, SlurmReport } from '../../src/domain/access/manifest.ts';
import { parseSshPublicKey } from '../../src/domain/access/ssh-key.ts';
import type { Lab } from '../../src/domain/clusters/lab.ts';
import { serverLifeMs } from '../../src/domain/server.ts';
import { createLogger } from '../../src/lib/log.ts';
import { joinPeers } from '../../src/service/compose/peers/index.ts';
import { listManagedHosts } from '../../src/store/clusters/cluster-sides.ts';
import { findObservation } from '../../src/store/clusters/observations.ts';
import type { Store } from '../../src/store/engine/index.ts';
import { revokeGrant } from '../../src/store/organizations/grants.ts';
import { createSshKey } from '../../src/store/people/ssh-keys.ts';
import { type Lead, NotLeaderError } from '../../src/store/servers/leader.ts';
import { listServers } from '../../src/store/servers/servers.ts';
import {
  hearPasses,
  type KubernetesDriver,
  type SlurmDriver,
  type SyncLoop,
  startSyncLoop,
} from '../../src/sync/index.ts';
import { openHostRecord } from '../../src/sync/slurm/host-record.ts';
import { becomes, eventually } from '../support/app.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { asServer, letPass, newWire } from '../support/servers.ts';
import { newPublicKey } from '../support/ssh-keys.ts';
import { openTestStore, slurmReport, userId } from '../support/store.ts';

const hostKey = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ7JY0kB1n6sQXv0f5V5S7hCkXH0mM0Yf0Hc1b2JwXyZ';
const site = {
  login: [{ name: 'login1', host: '10.0.0.5', hostKey }],
  controller: { host: '10.0.0.5', hostKey },
};
const clusterId = '7b6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50';
const lab: Lab = {
  organizations: [
    { slug: 'x', name: 'X', members: [{ email: 'ada@x.example', role: 'owner', username: 'ada' }] },
  ],
  clusters: [{ name: 'alpha', id: clusterId, organization: 'x', scheduler: 'sunk', slurm: site }],
};
const times = { heartbeatMs: 100, giveUpMs: 60_000, pollMs: 50, lifeMs: 15_000 };
/** Of a server that is halted, so to speak: it says only once that it is there, and does not notice. */
const never = { heartbeatMs: 3_600_000, giveUpMs: 3_600_000, pollMs: 50, lifeMs: 15_000 };

/** What is on the cluster: the servers reach the same one. */
class OneCluster {
  applied: { by: string; manifest: Manifest }[] = [];
  observedBy: string[] = [];
  readonly applying = new Set<string>();
  /** What applying waits for, by server. */
  readonly slow = new Map<string, Promise<void>>();

  driver(name: string): SlurmDriver {
    return {
      gatherMs: 0,
      followsSettings: false,
      observe: async (): Promise<SlurmReport> => {
        this.observedBy.push(name);
        const last = this.applied.at(-1)?.manifest;
        const { generation = 0, desiredGeneration = 0, listVersion = 0 } = last ?? {};
        return slurmReport({ manifestGeneration: generation, desiredGeneration, listVersion });
      },
      apply: async (manifest) => {
        this.applying.add(name);
        await this.slow.get(name);
        this.applied.push({ by: name, manifest });
      },
      async release() {},
      async close() {},
    };
  }
}

type Shared = Awaited<ReturnType<typeof share>>;

async function share(filled: Lab = lab, kubernetes?: (name: string, lead: Lead) => KubernetesDriver) {
  const stack = new AsyncDisposableStack();
  const { store } = stack.use(await openTestStore(filled));
  const cluster = new OneCluster();
  const wire = newWire();
  const writers: string[] = [];
  return {
    store,
    cluster,
    /** Whose writes were committed. */
    writers,
    /** Starts a server with a sync loop; it is stopped at the end of the test at the latest. */
    async start(name: string, { log = createLogger('silent'), renews = true } = {}) {
      const base = asServer(store, wire);
      const own: Store = {
        ...base,
        async write(body, options) {
          const result = await base.write(body, options);
          writers.push(name);
          return result;
        },
      };
      const directory = stack.use(temporaryDirectory());
      const config = { dataDir: directory.path, server: { name } };
      const servers = await joinPeers(config, own, log, renews ? times : never);
      const announced = hearPasses(own);
      let loop: SyncLoop | undefined;
      const stopLeading = servers.whileLeading((lead) => {
        const led = startSyncLoop({
          store: lead.store,
          drivers: {
            slurm: async () => cluster.driver(name),
            async kubernetes() {
              if (!kubernetes) throw new Error('no cluster here has a Kubernetes side');
              return kubernetes(name, lead);
            },
          },
          againMs: 200,
          subjectIssuer: undefined,
          // What comes by itself at the interval is nothing that a test waits for.
          intervalMs: 3_600_000,
          log,
          now: Date.now,
        });
        loop = led;
        return () => led.stop();
      });
      let stopped: Promise<void> | undefined;
      const stop = () => {
        stopped ??= stopLeading().then(() => servers.stop());
        return stopped;
      };
      stack.defer(stop);
      const passesOf: SyncLoop['passesOf'] = (...of) => (loop ?? announced).passesOf(...of);
      return { store: own, passesOf, stop };
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

async function addKey(store: Store): Promise<void> {
  const user = await userId(store, 'ada@x.example');
  const key = parseSshPublicKey(newPublicKey());
  await store.write((tx) => createSshKey(tx, { userId: user, key, commandId: 'c' }));
}

const keysAt = ({ cluster }: Shared) => cluster.applied.at(-1)?.manifest.accounts[0]?.keySetGeneration ?? 0;
const untilKeys = (all: Shared, generation: number) => becomes(() => keysAt(all), generation);
const leadersOf = async ({ store }: Shared) => {
  const servers = await listServers(asServer(store));
  return servers.flatMap(({ name, leads }) => (leads ? [name] : []));
};

test('of three servers one syncs a cluster, and a change on any of them is applied once', async () => {
  await using all = await share();
  const one = await all.start('one');
  await becomes(() => all.cluster.applied.length, 1);
  const two = await all.start('two');
  await all.start('three');
  for (const [index, { store }] of [two, one, two].entries()) {
    await addKey(store);
    await untilKeys(all, index + 1);
  }
  assert.deepEqual(new Set(all.cluster.applied.map(({ by }) => by)), new Set(['one']));
  const generations = all.cluster.applied.map(({ manifest }) => manifest.generation);
  assert.deepEqual(generations, [1, 2, 3, 4]);
  assert.deepEqual(await leadersOf(all), ['one']);
});

test('a leader that stops leaves its clusters to another at once, which takes up what was missed', async () => {
  await using all = await share();
  const one = await all.start('one');
  await becomes(() => all.cluster.applied.length, 1);
  await one.stop();
  // Nobody is there who hears of it.
  await addKey(all.store);
  await all.start('two');
  await untilKeys(all, 1);
  await becomes(
    async () => (await findObservation(all.store.read, clusterId, 'slurm'))?.manifestGeneration,
    2,
  );
  assert.deepEqual(await leadersOf(all), ['two']);
});

test('what a server does late that another has taken over from is not written, and its worker ends', async () => {
  await using all = await share();
  const events: string[] = [];
  const log = createLogger('debug', (line) => void events.push(JSON.parse(line).event));
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  all.cluster.slow.set('one', released);
  const one = await all.start('one', { log, renews: false });
  await becomes(() => all.cluster.applying.has('one'), true);
  // Its time is up for the others.
  await letPass(all.store, one.store.server.id, serverLifeMs);
  const two = await all.start('two');
  const ofTwo = () => all.cluster.observedBy.filter((by) => by === 'two').length;
  const observation = () => findObservation(all.store.read, clusterId, 'slurm');
  await eventually(
    observation,
    (seen) => seen?.manifestGeneration === 1 && two.passesOf(clusterId, 'slurm')?.nextAt !== undefined,
  );
  assert.equal(all.cluster.applied.map(({ by }) => by).join(), 'two');
  const passes = ofTwo();
  const before = await observation();
  release();
  await eventually(
    async () => events,
    (seen) => seen.includes('leader.lost') && seen.includes('sync.left'),
  );
  const after = await observation();
  assert.equal(after?.manifestGeneration, 1);
  // Unless there was a reason for a pass of `two`.
  if (ofTwo() === passes) assert.equal(after.observedAt, before?.observedAt);
  assert.ok(!events.includes('sync.applied'), 'nothing is said to be done that is not written');
  assert.deepEqual(await leadersOf(all), ['two']);
});

test('a halted leader that hears of a change writes nothing of it, also no access list', async () => {
  await using all = await share();
  const events: string[] = [];
  const log = createLogger('info', (line) => void events.push(JSON.parse(line).event));
  const one = await all.start('one', { log, renews: false });
  await becomes(() => one.passesOf(clusterId, 'slurm')?.nextAt !== undefined, true);
  await letPass(all.store, one.store.server.id, serverLifeMs);
  await all.start('two');
  await becomes(async () => (await leadersOf(all)).join(), 'two');
  const written = () => all.writers.filter((by) => by === 'one').length;
  const before = written();
  await addKey(all.store);
  await untilKeys(all, 1);
  await becomes(() => events.includes('leader.lost'), true);
  assert.equal(written(), before);
  assert.ok(!events.includes('sync.notice.failed'), 'which is no fault');
  assert.equal(all.cluster.applied.at(-1)?.by, 'two');
});

test('operators see the same of passes and of fresh reports at every server', async () => {
  await using all = await share();
  const one = await all.start('one');
  const two = await all.start('two');
  await addKey(one.store);
  await untilKeys(all, 1);
  const passes = () => [one, two].map(({ passesOf }) => passesOf(clusterId, 'slurm'));
  await eventually(
    async () => passes(),
    ([here, there]) => here?.nextAt !== undefined && JSON.stringify(here) === JSON.stringify(there),
  );
  assert.equal(two.passesOf(clusterId, 'kubernetes'), undefined);
});

test('what a server that stood still would bind late is not bound, and what was on its way is taken back soon', async () => {
  const cluster = {
    bound: [] as string[],
    applied: [] as string[],
    refused: [] as unknown[],
    /** What `one` wanted before it stood still. */
    wanted: [] as string[],
  };
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const ready = { status: 'True' as const, reason: 'Ready' };
  const driver = (name: string, lead: Lead): KubernetesDriver => ({
    gatherMs: 0,
    followsSettings: false,
    observe: async () => ({
      controlPlaneReady: true,
      scheduler: { configured: 'kubernetes', ready },
      storage: { ceph: false, weka: false, nfs: false },
      kubernetes: { server: 'https://10.0.0.5:6443', ready: true },
      failure: null,
    }),
    async apply({ grants }) {
      const ids = grants.map(({ grantId }) => grantId);
      if (name === 'one') {
        cluster.wanted = ids;
        await released;
      }
      await lead.confirm().catch((error: unknown) => {
        cluster.refused.push(error);
        throw error;
      });
      cluster.applied.push(name);
      // Behind the first change of the other server comes what had left this one before.
      cluster.bound = cluster.applied.length === 1 ? cluster.wanted : ids;
      return { failure: null, retry: false, bound: ids };
    },
    async release() {},
    async close() {},
  });
  const kubernetes = { server: 'https://10.0.0.5:6443', tokenFile: '/nowhere/token' };
  const beta = { name: 'beta', organization: 'x', scheduler: 'kubernetes' as const, kubernetes };
  const grants = [{ user: 'ada@x.example', cluster: 'beta', relation: 'kubernetes.viewer' as const }];
  await using all = await share({ ...lab, clusters: [beta], grants }, driver);
  using parts = new DisposableStack();
  // Its loop waits for that when it is stopped.
  parts.defer(release);
  const one = await all.start('one', { renews: false });
  const [granted = ''] = await eventually(
    async () => cluster.wanted,
    ({ length }) => length === 1,
  );
  await one.store.write((tx) => revokeGrant(tx, granted));
  await letPass(all.store, one.store.server.id, serverLifeMs);
  await all.start('two');
  await eventually(
    async () => ({ ...cluster }),
    ({ applied, bound }) => applied.length > 1 && bound.length === 0,
  );
  release();
  await eventually(
    async () => cluster.refused,
    ([error]) => error instanceof NotLeaderError,
  );
  assert.deepEqual([cluster.bound, new Set(cluster.applied)], [[], new Set(['two'])]);
});

test('which hosts have something of ours is written as what must not be lost, many at once', async () => {
  await using store = await openTestStore(lab);
  const cluster = await store.read.selectFrom('clusters').select('id').executeTakeFirstOrThrow();
  const flushes: boolean[] = [];
  const noting: Store = {
    ...store,
    write(body, options = { flush: true }) {
      flushes.push(options.flush);
      return store.write(body, options);
    },
  };
  const record = await openHostRecord(noting, cluster.id);
  for (let i = 0; i < 150; i++) record.add({ address: `node-${i}`, roles: new Set(), nodes: [] });
  record.remove('node-7');
  await becomes(async () => (await listManagedHosts(store.read, cluster.id)).length, 149);
  assert.ok(flushes.length < 10 && flushes.every((flush) => flush));
  const again = await openHostRecord(store, cluster.id);
  assert.equal(again.left([]).length, 149);
});
