/** Which workers there are, one for each side of each cluster, and which of them a change concerns. */
import type { Cluster } from '../domain/cluster.ts';
import { allSides, type Side, sidesOf } from '../domain/side.ts';
import type { Logger } from '../lib/log.ts';
import { listListedOrganizations } from '../store/access-list-users.ts';
import { findCluster, listConcernedClusters, listDrivenClusters } from '../store/clusters.ts';
import type { Change, Store } from '../store/index.ts';
import type { KubernetesDriver, SlurmDriver } from './driver.ts';
import { passKubernetes } from './kubernetes-pass.ts';
import { createListKeeper, type ListKeeper } from './lists.ts';
import type { PassDeps } from './pass.ts';
import { createQueue } from './queue.ts';
import { passSlurm } from './slurm-pass.ts';
import { type PassState, startWorker, type Worker } from './worker.ts';

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
  /** Awaited before anything is applied to the Slurm side of a cluster; bounded by whoever gives it. */
  recheckSessions?: PassDeps['recheckSessions'];
  log: Logger;
  now(): number;
}

export interface SyncLoop {
  /** How the passes of a side go; undefined where it has none, as after its release. */
  passesOf(clusterId: string, side: Side): PassState | undefined;
  /** Starts no more passes, waits for those under way, and closes the drivers. */
  stop(): Promise<void>;
}

/** How many passes work with the database at the same time; any number waits for clusters. */
const passesAtOnce = 4;

export async function startSyncLoop(options: SyncOptions): Promise<SyncLoop> {
  const loop = new Loop(options);
  await loop.start();
  return loop;
}

/** More than these at once, by a lab file for example, are brought up to date by organization. */
const mostPeople = 50;

class Loop implements SyncLoop {
  readonly #options: SyncOptions;
  readonly #lists: ListKeeper;
  readonly #deps: PassDeps;
  readonly #workers = new Map<string, Worker>();
  readonly #tasks = new Set<Promise<void>>();
  #isStopping = false;
  #isSweeping = false;
  #stopListening = () => {};
  #sweeps: NodeJS.Timeout | undefined;

  constructor(options: SyncOptions) {
    this.#options = options;
    this.#lists = createListKeeper(options);
    this.#deps = { ...options, lists: this.#lists, admission: createQueue(passesAtOnce) };
  }

  async start(): Promise<void> {
    const { store, intervalMs } = this.#options;
    const sweep = () => this.#inBackground('sweep', () => this.#sweep());
    this.#stopListening = store.onChange((changes) => this.#onChanges(changes));
    await this.#discover();
    sweep();
    this.#sweeps = setInterval(sweep, intervalMs);
  }

  passesOf(clusterId: string, side: Side): PassState | undefined {
    return this.#workers.get(keyOf(clusterId, side))?.state;
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#stopListening();
    clearInterval(this.#sweeps);
    const stopped = [...this.#workers.values()].map((worker) => worker.stop());
    await Promise.all([...this.#tasks, ...stopped]);
  }

  async #discover(): Promise<void> {
    for (const cluster of await listDrivenClusters(this.#options.store.read)) this.#startWorkers(cluster);
  }

  #startWorkers(cluster: Cluster): void {
    for (const side of sidesOf(cluster)) {
      const key = keyOf(cluster.id, side);
      if (this.#isStopping || this.#workers.has(key)) continue;
      this.#workers.set(key, this.#startSide(cluster.id, side, key));
    }
  }

  #startSide(clusterId: string, side: Side, key: string): Worker {
    const { drivers, log } = this.#options;
    const onEnd = () => void this.#workers.delete(key);
    const about = { clusterId, side, deps: this.#deps, log, onEnd };
    if (side === 'slurm') return startWorker({ ...about, pass: passSlurm, createDriver: drivers.slurm });
    const wake = () => this.#workers.get(key)?.wake();
    const createDriver = (cluster: Cluster) => drivers.kubernetes(cluster, wake);
    return startWorker({ ...about, pass: passKubernetes, createDriver });
  }

  /** Runs a task beside the passes; `stop` waits for it. */
  #inBackground(name: 'notice' | 'sweep', task: () => Promise<void>): void {
    if (this.#isStopping) return;
    const done = task()
      .catch((error) => this.#options.log.error(`sync.${name}.failed`, { error }))
      .finally(() => this.#tasks.delete(done));
    this.#tasks.add(done);
  }

  /** The resync, in case a change notice was lost: finds new clusters, and people whose entry is out of date. */
  async #sweep(): Promise<void> {
    if (this.#isSweeping) return;
    this.#isSweeping = true;
    try {
      await this.#discover();
      for (const organizationId of await listListedOrganizations(this.#options.store.read)) {
        if (this.#isStopping) return;
        if (await this.#lists.updateOrganization(organizationId))
          await this.#nudgeConcerned({ organizationId });
      }
    } finally {
      this.#isSweeping = false;
    }
  }

  #onChanges(changes: readonly Change[]): void {
    if (changes.some((change) => 'everything' in change)) {
      this.#inBackground('notice', () => this.#updateEverything());
      return;
    }
    const people = new Set(changes.flatMap((change) => ('userId' in change ? change.userId : [])));
    const areMany = people.size > mostPeople;
    if (areMany) this.#inBackground('notice', () => this.#updateEveryone());
    for (const change of changes) {
      if (areMany && 'userId' in change) continue;
      this.#inBackground('notice', () => this.#onChange(change));
    }
  }

  /** A write for each of thousands of people would keep everybody else's writes waiting. */
  async #updateEveryone(): Promise<void> {
    for (const organizationId of await listListedOrganizations(this.#options.store.read)) {
      if (this.#isStopping) return;
      await this.#lists.updateOrganization(organizationId);
    }
    for (const worker of this.#workers.values()) worker.nudge();
  }

  async #updateEverything(): Promise<void> {
    await this.#discover();
    await this.#updateEveryone();
  }

  async #onChange(change: Change): Promise<void> {
    if ('observedClusterId' in change || 'browsersOfUserId' in change) return;
    if ('sessionsOfUserId' in change || 'requestsOfUserId' in change || 'everything' in change) return;
    if ('clusterId' in change) {
      this.#nudge(change.clusterId);
      // It may be new, or have got another side.
      const cluster = await findCluster(this.#options.store.read, change.clusterId);
      if (cluster && cluster.state !== 'released') this.#startWorkers(cluster);
      return;
    }
    if ('userId' in change) await this.#lists.updateUser(change.userId);
    else await this.#lists.updateOrganization(change.organizationId);
    await this.#nudgeConcerned(change);
  }

  async #nudgeConcerned(who: { userId: string } | { organizationId: string }): Promise<void> {
    for (const id of await listConcernedClusters(this.#options.store.read, who)) this.#nudge(id);
  }

  #nudge(clusterId: string): void {
    for (const side of allSides) this.#workers.get(keyOf(clusterId, side))?.nudge();
  }
}

function keyOf(clusterId: string, side: Side): string {
  return `${clusterId}/${side}`;
}
