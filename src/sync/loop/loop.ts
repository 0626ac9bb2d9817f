/** Starts one worker for each side of each cluster, and nudges the workers that a change concerns. */
import { allSides, type Cluster, type Side, sidesOf } from '../../domain/clusters/cluster.ts';
import type { SidePasses } from '../../domain/installation-state.ts';
import { listListedOrganizations } from '../../store/access/access-list-users.ts';
import { findCluster, listConcernedClusters, listDrivenClusters } from '../../store/clusters/clusters.ts';
import { type Heard, hears, type Store } from '../../store/engine/index.ts';
import type { KubernetesDriver, SlurmDriver } from '../driver.ts';
import { kubernetesPasses } from './kubernetes-pass.ts';
import { createListKeeper, type ListKeeper, type PassDeps } from './pass.ts';
import { createQueue } from './queue.ts';
import { passSlurm } from './slurm-pass.ts';
import { startWorker, type Worker } from './worker.ts';

/** The states of sides' passes, as the leader announces them to the servers that do not lead. */
export interface AnnouncedPasses extends Pick<SyncLoop, 'passesOf'> {
  stop(): void;
}

const topic = 'sync.passed';
/** Limit of stored states, far above the number of sides. Beyond it, the state announced longest ago is dropped. */
const most = 10_000;
const longestKey = 100;
/** The largest time value of a Date (ECMA-262, 21.4.1.1). */
const latestTime = 8.64e15;
const noPasses: SidePasses = { nextAt: undefined, failures: 0, failingSince: undefined };

export function hearPasses({ messages }: Pick<Store, 'messages'>): AnnouncedPasses {
  const states = new Map<string, SidePasses>();
  const stop = messages.on(topic, (body) => {
    const { key, state } = readState(body);
    states.delete(key);
    states.set(key, state);
    for (const oldest of states.keys()) if (states.size > most) states.delete(oldest);
  });
  return { passesOf: (clusterId, side) => states.get(keyOf(clusterId, side)), stop };
}

function readState(received: unknown): { key: string; state: SidePasses } {
  const { key, nextAt, failures, failingSince } = received as Record<keyof SidePasses | 'key', unknown>;
  if (typeof key !== 'string' || key.length > longestKey)
    throw new Error('the message names no side of a cluster');
  const count = Number.isSafeInteger(failures) ? Number(failures) : 0;
  return { key, state: { nextAt: timeOf(nextAt), failures: count, failingSince: timeOf(failingSince) } };
}

function timeOf(received: unknown): number | undefined {
  return typeof received === 'number' && Math.abs(received) < latestTime ? received : undefined;
}

export interface SyncOptions extends Omit<PassDeps, 'lists' | 'admission'> {
  drivers: {
    slurm(cluster: Cluster): Promise<SlurmDriver>;
    /** `wake`: called by the driver when the cluster changed by itself, or answers again. */
    kubernetes(cluster: Cluster, wake: () => void): Promise<KubernetesDriver>;
  };
  /**
   * After another server led: delay after the start to one extra Kubernetes pass. The former leader may have been suspended
   * and write late, which API servers cannot refuse. Slurm hosts refuse it by the fencing token.
   */
  againMs?: number | undefined;
}

export interface SyncLoop {
  /** The state of a side's passes; undefined where the side has no worker, for example after its release. */
  passesOf(clusterId: string, side: Side): SidePasses | undefined;
  /** Starts no more passes, waits for those under way, and closes the drivers. */
  stop(): Promise<void>;
}

/** Limit of passes that use the database at the same time; any number may wait for clusters. */
const passesAtOnce = 4;

export function startSyncLoop(options: SyncOptions): SyncLoop {
  const loop = new Loop(options);
  loop.start();
  return loop;
}

/** If more people change at once, for example by a lab file, their organizations are updated as a whole. */
const mostPeople = 50;

type PersonOrOrganization = { userId: string } | { organizationId: string };

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

  start(): void {
    const { store, intervalMs } = this.#options;
    const sweep = () => this.#inBackground('sweep', () => this.#sweep());
    this.#stopListening = store.onChange(hears.syncLoop, (changes) => this.#onChanges(changes));
    sweep();
    this.#sweeps = setInterval(sweep, intervalMs);
  }

  passesOf(clusterId: string, side: Side): SidePasses | undefined {
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
    for (const cluster of await listDrivenClusters(this.#options.store.read)) this.#startSides(cluster);
  }

  #startSides(cluster: Cluster): void {
    for (const side of sidesOf(cluster)) {
      const key = keyOf(cluster.id, side);
      if (this.#isStopping || this.#workers.has(key)) continue;
      this.#workers.set(key, this.#startSide(cluster.id, side, key));
    }
  }

  #startSide(clusterId: string, side: Side, key: string): Worker {
    const { drivers, log, againMs, store } = this.#options;
    // If this message is lost, the next pass announces the state again.
    const onPassed = (state: SidePasses) =>
      void store.messages.send(topic, { key, ...state }).catch(() => {});
    const onEnd = () => {
      this.#workers.delete(key);
      onPassed(noPasses);
    };
    const about = { clusterId, side, deps: this.#deps, log, onEnd, onPassed };
    if (side === 'slurm') return startWorker({ ...about, pass: passSlurm, createDriver: drivers.slurm });
    const wake = () => this.#workers.get(key)?.wake();
    const createDriver = (cluster: Cluster) => drivers.kubernetes(cluster, wake);
    return startWorker({ ...about, pass: kubernetesPasses(), createDriver, againMs });
  }

  /** Runs a task in parallel with the passes; `stop` waits for it. */
  #inBackground(name: 'notice' | 'sweep', task: () => Promise<void>): void {
    if (this.#isStopping) return;
    const done = task()
      .catch((error) => {
        // Errors after `stop` are not logged: another server may lead by now.
        if (!this.#isStopping) this.#options.log.error(`sync.${name}.failed`, { error });
      })
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

  #onChanges(changes: readonly Heard<'syncLoop'>[]): void {
    const everything = changes.find(({ kind }) => kind === 'everything');
    if (everything) {
      this.#inBackground('notice', () => this.#onChange(everything));
      return;
    }
    const people = new Set(changes.flatMap((change) => (change.kind === 'person' ? change.userId : [])));
    const areMany = people.size > mostPeople;
    if (areMany) this.#inBackground('notice', () => this.#updateEveryone());
    for (const change of changes) {
      if (areMany && change.kind === 'person') continue;
      this.#inBackground('notice', () => this.#onChange(change));
    }
  }

  /** By organization, because one write for each of thousands of people would delay all other writes. */
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

  async #onChange(change: Heard<'syncLoop'>): Promise<void> {
    if (change.kind === 'everything') return this.#updateEverything();
    if (change.kind === 'cluster') {
      this.#nudge(change.clusterId, change.commandId);
      // The cluster may be new, or have a new side.
      const cluster = await findCluster(this.#options.store.read, change.clusterId);
      if (cluster && cluster.state !== 'released') this.#startSides(cluster);
      return;
    }
    if (change.kind === 'person') await this.#lists.updateUser(change.userId);
    else await this.#lists.updateOrganization(change.organizationId);
    await this.#nudgeConcerned(change);
  }

  async #nudgeConcerned(who: PersonOrOrganization & { commandId?: string }): Promise<void> {
    for (const id of await listConcernedClusters(this.#options.store.read, who))
      this.#nudge(id, who.commandId);
  }

  #nudge(clusterId: string, commandId?: string): void {
    for (const side of allSides) this.#workers.get(keyOf(clusterId, side))?.nudge(commandId);
  }
}

function keyOf(clusterId: string, side: Side): string {
  return `${clusterId}/${side}`;
}
