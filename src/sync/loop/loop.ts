/** Which workers there are, one for each side of each cluster, and which of them a change concerns. */
import { allSides, type Cluster, type Side, sidesOf } from '../../domain/clusters/cluster.ts';
import type { Logger } from '../../lib/log.ts';
import { listListedOrganizations } from '../../store/access/access-list-users.ts';
import { findCluster, listConcernedClusters, listDrivenClusters } from '../../store/clusters/clusters.ts';
import { type Heard, hears, type Store } from '../../store/engine/index.ts';
import { allLeases, type Duty, type Lease, type Leases } from '../../store/servers/leases.ts';
import type { KubernetesDriver, SlurmDriver } from '../driver.ts';
import { kubernetesPasses } from './kubernetes-pass.ts';
import { createListKeeper, type ListKeeper, type PassDeps } from './pass.ts';
import { createQueue } from './queue.ts';
import { passSlurm } from './slurm-pass.ts';
import { type PassState, startWorker, type Worker } from './worker.ts';

interface PassesOfOthers {
  /** Announces to the other servers, if there are any, how the passes of a side go. */
  announce(key: string, state: PassState): void;
  of(key: string): PassState | undefined;
  stop(): void;
}

const topic = 'sync.passed';
/** Far more sides than there will be. Beyond it, the one announced longest ago is dropped. */
const most = 10_000;
const longestKey = 100;
/** What a date can be made of (ECMA-262, 21.4.1.1). */
const latestTime = 8.64e15;

export function createPassesOfOthers({ messages }: Pick<Store, 'messages'>): PassesOfOthers {
  const states = new Map<string, PassState>();
  const stop = messages.on(topic, (body) => {
    const { key, state } = readState(body);
    states.delete(key);
    states.set(key, state);
    for (const oldest of states.keys()) if (states.size > most) states.delete(oldest);
  });
  return {
    announce(key, { nextAt, failures, failingSince }) {
      // If it is lost, the next pass announces its state again.
      messages.send(topic, { key, nextAt, failures, failingSince }).catch(() => {});
    },
    of: (key) => states.get(key),
    stop,
  };
}

function readState(received: unknown): { key: string; state: PassState } {
  const { key, nextAt, failures, failingSince } = received as Record<keyof PassState | 'key', unknown>;
  if (typeof key !== 'string' || key.length > longestKey)
    throw new Error('the message names no side of a cluster');
  const count = Number.isSafeInteger(failures) ? Number(failures) : 0;
  return { key, state: { nextAt: timeOf(nextAt), failures: count, failingSince: timeOf(failingSince) } };
}

function timeOf(received: unknown): number | undefined {
  return typeof received === 'number' && Math.abs(received) < latestTime ? received : undefined;
}

export interface SyncOptions {
  store: Store;
  /** Which sides this server looks after; all of them when left out. */
  leases?: Leases | undefined;
  drivers: {
    slurm(cluster: Cluster, lease: Lease): Promise<SlurmDriver>;
    /** `wake` is for the driver to call when something there changed by itself, or it answers again. */
    kubernetes(cluster: Cluster, wake: () => void, lease: Lease): Promise<KubernetesDriver>;
  };
  /** The issuer by whose subjects API servers know people; undefined where it is by something else. */
  subjectIssuer: string | undefined;
  intervalMs: number;
  /** How long after a take-over a side is passed over once more, for what came late. */
  lateWritesMs?: number | undefined;
  /** Awaited before anything is applied to the Slurm side of a cluster. The implementation limits how long it takes. */
  recheckSessions?: PassDeps['recheckSessions'];
  log: Logger;
  now(): number;
}

export interface SyncLoop {
  /** How the passes of a side go, on this server or on another; undefined where it has none, as after its release. */
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

/**
 * After a take-over, requests of the server before may still come to a cluster: until it gave up, the client and the API server
 * have had their time for one (`sync/kubernetes/client.ts`).
 */
const lateWritesMs = 20_000;
/** More than these at once, by a lab file for example, are brought up to date by organization. */
const mostPeople = 50;

type Concerned = { userId: string } | { organizationId: string };

class Loop implements SyncLoop {
  readonly #options: SyncOptions;
  readonly #lists: ListKeeper;
  readonly #deps: PassDeps;
  readonly #leases: Leases;
  readonly #workers = new Map<string, Worker>();
  /** How to leave a side to others, for each that this server would look after. */
  readonly #wanted = new Map<string, () => Promise<void>>();
  readonly #others: PassesOfOthers;
  readonly #tasks = new Set<Promise<void>>();
  #isStopping = false;
  #isSweeping = false;
  /** A side was taken over since the sweep under way began. */
  #isSweepDue = false;
  #stopListening = () => {};
  #sweeps: NodeJS.Timeout | undefined;

  constructor(options: SyncOptions) {
    this.#options = options;
    this.#leases = options.leases ?? allLeases(options.store);
    this.#lists = createListKeeper(options);
    this.#deps = { ...options, lists: this.#lists, admission: createQueue(passesAtOnce) };
    this.#others = createPassesOfOthers(options.store);
  }

  async start(): Promise<void> {
    const { store, intervalMs } = this.#options;
    const sweep = () => this.#inBackground('sweep', () => this.#sweep());
    this.#stopListening = store.onChange(hears.syncLoop, (changes) => this.#onChanges(changes));
    await this.#discover();
    sweep();
    this.#sweeps = setInterval(sweep, intervalMs);
  }

  passesOf(clusterId: string, side: Side): PassState | undefined {
    const key = keyOf(clusterId, side);
    return this.#workers.get(key)?.state ?? (this.#wanted.has(key) ? this.#others.of(key) : undefined);
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#stopListening();
    clearInterval(this.#sweeps);
    this.#others.stop();
    const stopped = [...this.#wanted.keys()].map((key) => this.#leave(key));
    await Promise.all([...this.#tasks, ...stopped]);
  }

  async #discover(): Promise<void> {
    const clusters = await listDrivenClusters(this.#options.store.read);
    for (const cluster of clusters) this.#wantSides(cluster);
    // What another server released.
    const known = new Set(clusters.flatMap(({ id }) => allSides.map((side) => keyOf(id, side))));
    for (const key of this.#wanted.keys())
      if (!known.has(key) && !this.#workers.has(key)) void this.#leave(key);
  }

  /** Looks after the sides of a cluster from now on, whenever no other server does. */
  #wantSides(cluster: Cluster): void {
    for (const side of sidesOf(cluster)) {
      const key = keyOf(cluster.id, side);
      if (this.#isStopping || this.#wanted.has(key)) continue;
      const about = { cluster: cluster.name, side };
      const duty: Duty = {
        begin: (lease) => {
          this.#workers.set(key, this.#startSide(cluster.id, side, { key, lease }));
          if (!this.#leases.areAllHeld) this.#sweepSoon();
        },
        end: async () => {
          const worker = this.#workers.get(key);
          this.#workers.delete(key);
          await worker?.stop();
          if (worker && !this.#isStopping) this.#options.log.debug('sync.left', about);
        },
      };
      this.#wanted.set(key, async () => {});
      this.#wanted.set(key, this.#leases.want(`sync/${key}`, duty));
    }
  }

  async #leave(key: string): Promise<void> {
    const leave = this.#wanted.get(key);
    this.#wanted.delete(key);
    await leave?.();
  }

  #startSide(clusterId: string, side: Side, { key, lease }: { key: string; lease: Lease }): Worker {
    const { drivers, log } = this.#options;
    const onEnd = () => {
      this.#workers.delete(key);
      void this.#leave(key);
    };
    const onPassed = (state: PassState) => this.#others.announce(key, state);
    const deps = { ...this.#deps, store: lease.store };
    const about = { clusterId, side, deps, log, onEnd, onPassed };
    if (side === 'slurm') {
      const createDriver = (cluster: Cluster) => drivers.slurm(cluster, lease);
      return startWorker({ ...about, pass: passSlurm, createDriver });
    }
    const wake = () => this.#workers.get(key)?.wake();
    const createDriver = (cluster: Cluster) => drivers.kubernetes(cluster, wake, lease);
    // API servers cannot tell what a server that stood still wrote late; hosts of Slurm can.
    const againMs = lease.token === undefined ? undefined : (this.#options.lateWritesMs ?? lateWritesMs);
    return startWorker({ ...about, pass: kubernetesPasses(), createDriver, againMs });
  }

  /** Runs a task in parallel with the passes; `stop` waits for it. */
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
      do {
        this.#isSweepDue = false;
        await this.#discover();
        for (const organizationId of await this.#listOrganizations()) {
          if (this.#isStopping) return;
          if (await this.#lists.updateOrganization(organizationId))
            await this.#nudgeConcerned({ organizationId });
        }
      } while (this.#isSweepDue);
    } finally {
      this.#isSweeping = false;
    }
  }

  /** To be called when a side is taken over: finds the changes that were announced while no server looked after it. */
  #sweepSoon(): void {
    this.#isSweepDue = true;
    if (!this.#isSweeping) this.#inBackground('sweep', () => this.#sweep());
  }

  /** Those whose lists this server keeps: it looks after a side of one of their clusters. */
  async #listOrganizations(): Promise<string[]> {
    const { read } = this.#options.store;
    const organizations = await listListedOrganizations(read);
    if (this.#leases.areAllHeld) return organizations;
    const clusters = await listDrivenClusters(read);
    const own = new Set(clusters.filter(({ id }) => this.#isOwn(id)).map((one) => one.organizationId));
    return organizations.filter((id) => own.has(id));
  }

  #isOwn(clusterId: string): boolean {
    return allSides.some((side) => this.#workers.has(keyOf(clusterId, side)));
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

  /** By organization: one write for each of thousands of people would delay all other writes. */
  async #updateEveryone(): Promise<void> {
    for (const organizationId of await this.#listOrganizations()) {
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
      // It may be new, or have got another side.
      const cluster = await findCluster(this.#options.store.read, change.clusterId);
      if (cluster && cluster.state !== 'released') this.#wantSides(cluster);
      return;
    }
    // The servers that look after the clusters concerned keep their lists.
    if (!this.#leases.areAllHeld && !(await this.#listConcerned(change)).some((id) => this.#isOwn(id)))
      return;
    if (change.kind === 'person') await this.#lists.updateUser(change.userId);
    else await this.#lists.updateOrganization(change.organizationId);
    await this.#nudgeConcerned(change);
  }

  async #nudgeConcerned(who: Concerned & { commandId?: string }): Promise<void> {
    for (const id of await this.#listConcerned(who)) this.#nudge(id, who.commandId);
  }

  #listConcerned(who: Concerned): Promise<string[]> {
    return listConcernedClusters(this.#options.store.read, who);
  }

  #nudge(clusterId: string, commandId?: string): void {
    for (const side of allSides) this.#workers.get(keyOf(clusterId, side))?.nudge(commandId);
  }
}

function keyOf(clusterId: string, side: Side): string {
  return `${clusterId}/${side}`;
}
