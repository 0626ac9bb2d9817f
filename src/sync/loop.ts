/** Which workers there are, and what they are told: one for each side of each cluster. */

import type { Cluster } from '../domain/cluster.ts';
import { allSides, type Side, sidesOf } from '../domain/side.ts';
import type { Logger } from '../lib/log.ts';
import { listListedOrganizations } from '../store/access-list-users.ts';
import { findCluster, listConcernedClusters, listDrivenClusters } from '../store/clusters.ts';
import type { Change, Store } from '../store/index.ts';
import type { KubernetesDriver, SlurmDriver } from './driver.ts';
import { passKubernetes } from './kubernetes-pass.ts';
import { createListKeeper } from './lists.ts';
import type { PassDeps } from './pass.ts';
import { createQueue } from './queue.ts';
import { passSlurm } from './slurm-pass.ts';
import { startWorker, type Worker } from './worker.ts';

export interface SyncOptions {
  store: Store;
  drivers: {
    slurm(cluster: Cluster): Promise<SlurmDriver>;
    /** `wake` is for the driver to call when something there changed by itself, or it answers again. */
    kubernetes(cluster: Cluster, wake: () => void): Promise<KubernetesDriver>;
  };
  /** The issuer by whose subjects API servers know people; undefined where it is by something else. */
  subjectIssuer: string | undefined;
  intervalMs: number;
  log: Logger;
  now(): number;
}

export interface SyncLoop {
  /** Stops looking, waits for passes under way, and lets go of the clusters. */
  stop(): Promise<void>;
}

/** How many passes work with the database at the same time; any number waits for clusters. */
const passesAtOnce = 4;

export async function startSyncLoop(options: SyncOptions): Promise<SyncLoop> {
  const { store, log } = options;
  const workers = new Map<string, Worker>();
  const lists = createListKeeper(options);
  const deps: PassDeps = { ...options, lists, admission: createQueue(passesAtOnce) };
  const tasks = new Set<Promise<void>>();
  let isStopping = false;
  let sweeping = false;

  const keyOf = (clusterId: string, side: Side) => `${clusterId}/${side}`;

  async function discover(): Promise<void> {
    for (const cluster of await listDrivenClusters(store.read)) startWorkers(cluster);
  }

  function startWorkers(cluster: Cluster): void {
    for (const side of sidesOf(cluster)) {
      const key = keyOf(cluster.id, side);
      if (!isStopping && !workers.has(key)) workers.set(key, startSide(cluster.id, side, key));
    }
  }

  function startSide(clusterId: string, side: Side, key: string): Worker {
    const { drivers } = options;
    const about = { clusterId, side, deps, log, onEnd: () => void workers.delete(key) };
    if (side === 'slurm') return startWorker({ ...about, pass: passSlurm, createDriver: drivers.slurm });
    const wake = () => workers.get(key)?.wake();
    const createDriver = (cluster: Cluster) => drivers.kubernetes(cluster, wake);
    return startWorker({ ...about, pass: passKubernetes, createDriver });
  }

  /** Does something besides the passes; the end waits for it. */
  function inBackground(name: 'notice' | 'sweep', body: () => Promise<void>): void {
    if (isStopping) return;
    const done = body()
      .catch((error) => log.error(`sync.${name}.failed`, { error }))
      .finally(() => tasks.delete(done));
    tasks.add(done);
  }

  /** What a lost notice did not tell: new clusters, and people whose entry is not what it should be. */
  async function sweep(): Promise<void> {
    if (sweeping) return;
    sweeping = true;
    try {
      await discover();
      for (const organizationId of await listListedOrganizations(store.read)) {
        if (isStopping) return;
        if (await lists.updateOrganization(organizationId)) await nudgeConcerned({ organizationId });
      }
    } finally {
      sweeping = false;
    }
  }

  function nudge(clusterId: string): void {
    for (const side of allSides) workers.get(keyOf(clusterId, side))?.nudge();
  }

  async function nudgeConcerned(who: { userId: string } | { organizationId: string }): Promise<void> {
    for (const clusterId of await listConcernedClusters(store.read, who)) nudge(clusterId);
  }

  async function onChange(change: Change): Promise<void> {
    if ('observedClusterId' in change) return;
    if ('clusterId' in change) {
      nudge(change.clusterId);
      // It may be new, or have got another side.
      const cluster = await findCluster(store.read, change.clusterId);
      if (cluster && cluster.state !== 'released') startWorkers(cluster);
      return;
    }
    if ('userId' in change) await lists.updateUser(change.userId);
    else await lists.updateOrganization(change.organizationId);
    await nudgeConcerned(change);
  }

  const stopListening = store.onChange((changes) => {
    for (const change of changes) inBackground('notice', () => onChange(change));
  });
  await discover();
  inBackground('sweep', sweep);
  const sweeps = setInterval(() => inBackground('sweep', sweep), options.intervalMs);
  return {
    async stop() {
      isStopping = true;
      stopListening();
      clearInterval(sweeps);
      const stopped = [...workers.values()].map((worker) => worker.stop());
      await Promise.all([...tasks, ...stopped]);
    },
  };
}
