/** When clusters are looked at: at once after a change, and every interval besides. */
import type { Logger } from '../log.ts';
import { listListedOrganizations } from '../store/access-list-users.ts';
import { type Cluster, listConcernedClusters, listDrivenClusters } from '../store/clusters.ts';
import type { Change, Store } from '../store/index.ts';
import type { Driver } from './driver.ts';
import { createListKeeper } from './lists.ts';
import { createQueue } from './queue.ts';
import { reconcile } from './reconcile.ts';

export interface SyncOptions {
  store: Store;
  /** The driver for a cluster, made when it is first needed, and anew when its settings have changed. */
  createDriver(cluster: Cluster): Promise<Driver>;
  intervalMs: number;
  log: Logger;
  now(): number;
}

export interface SyncLoop {
  /** Stops looking, waits for passes under way, and lets go of the clusters. */
  stop(): Promise<void>;
}

/** One cluster's place in the loop. Clusters never wait for each other. */
interface Worker {
  /** As it was when the driver was made. */
  cluster: Cluster;
  driver: Driver | undefined;
  timer: NodeJS.Timeout | undefined;
  running: Promise<void> | undefined;
  /** Something changed since the pass under way began. */
  dirty: boolean;
  /** A pass is due soon, for what changed; what changes until then is a part of it. */
  isGathering: boolean;
  /** Has the pass under way look at once, where it waits for work on the cluster to end. */
  wake?: (() => void) | undefined;
  /** When the first change came that no pass has carried to the cluster yet. */
  changedAt: number | undefined;
  failures: number;
  /** What the cluster last said a person must mend. */
  failure: string | null;
}

const firstRetryMs = 1_000;
const longestRetryMs = 60_000;
/** How many passes work with the database at the same time; any number waits for clusters. */
const passesAtOnce = 4;

export async function startSyncLoop(options: SyncOptions): Promise<SyncLoop> {
  const { store, log } = options;
  const workers = new Map<string, Worker>();
  const lists = createListKeeper(options);
  const inTurn = createQueue(passesAtOnce);
  const stopping = new AbortController();
  const errands = new Set<Promise<void>>();
  let sweeping = false;

  async function discover(): Promise<void> {
    for (const cluster of await listDrivenClusters(store.read)) {
      if (workers.has(cluster.id)) continue;
      const worker: Worker = {
        cluster,
        driver: undefined,
        timer: undefined,
        running: undefined,
        dirty: false,
        isGathering: false,
        changedAt: performance.now(),
        failures: 0,
        failure: null,
      };
      workers.set(cluster.id, worker);
      schedule(worker, 0);
    }
  }

  function schedule(worker: Worker, delayMs: number): void {
    clearTimeout(worker.timer);
    if (!stopping.signal.aborted) worker.timer = setTimeout(() => run(worker), delayMs);
  }

  function run(worker: Worker): void {
    if (worker.running) return;
    worker.dirty = false;
    worker.isGathering = false;
    worker.running = pass(worker).then((delayMs) => {
      worker.running = undefined;
      if (delayMs === undefined) return;
      // Asked only now: what changes between the end of the pass and here would wait for an interval.
      const isDue = worker.dirty && worker.failures === 0;
      schedule(worker, isDue ? (worker.driver?.gatherMs ?? 0) : delayMs);
    });
  }

  /** Runs one pass and returns how long to wait before the next; undefined when there is none. */
  async function pass(worker: Worker): Promise<number | undefined> {
    const { cluster } = worker;
    const started = performance.now();
    const { changedAt } = worker;
    worker.changedAt = undefined;
    const since = (then: number) => Math.round(performance.now() - then);
    try {
      const untilNextLook = (wakeAt: number | undefined) =>
        new Promise<void>((resolve) => {
          worker.wake = resolve;
          setTimeout(resolve, untilWake(wakeAt)).unref();
        });
      const deps = { store, lists, inTurn, untilNextLook, now: options.now };
      const { released, failure, wakeAt, ...result } = await reconcile(
        deps,
        cluster.id,
        (now) => driverOf(worker, now),
        stopping.signal,
      );
      worker.failures = 0;
      log.debug('sync.passed', { cluster: cluster.name, ms: since(started) });
      if (released) {
        await closeDriver(worker);
        workers.delete(cluster.id);
        log.info('sync.released', { cluster: cluster.name });
        return undefined;
      }
      if (failure !== worker.failure) {
        if (failure !== null) log.warn('sync.refused', { cluster: cluster.name, failure });
        worker.failure = failure;
      }
      if (result.applied || result.activated) {
        log.info('sync.applied', {
          cluster: cluster.name,
          ...result,
          ms: since(started),
        });
        if (changedAt !== undefined)
          log.debug('sync.converged', { cluster: cluster.name, ms: since(changedAt) });
      }
      return untilWake(wakeAt);
    } catch (error) {
      worker.failures += 1;
      worker.changedAt = changedAt ?? worker.changedAt;
      const delay = retryDelay(worker.failures, Math.random());
      if (!stopping.signal.aborted) {
        log.warn('sync.failed', {
          cluster: cluster.name,
          error,
          failures: worker.failures,
          retryMs: delay,
          ms: since(started),
        });
      }
      return delay;
    }
  }

  /** Does something besides the passes; the end waits for it. */
  function errand(name: 'discover' | 'notice' | 'sweep', body: () => Promise<void>): void {
    if (stopping.signal.aborted) return;
    const done = body()
      .catch((error) => log.error(`sync.${name}.failed`, { error }))
      .finally(() => errands.delete(done));
    errands.add(done);
  }

  /** What a lost notice did not tell: new clusters, and people whose entry is not what it should be. */
  async function sweep(): Promise<void> {
    if (sweeping) return;
    sweeping = true;
    try {
      await discover();
      for (const organizationId of await listListedOrganizations(store.read)) {
        if (stopping.signal.aborted) return;
        if (await lists.updateOrganization(organizationId)) await nudgeConcerned({ organizationId });
      }
    } finally {
      sweeping = false;
    }
  }

  async function driverOf(worker: Worker, cluster: Cluster): Promise<Driver> {
    if (worker.driver && needsOther(worker.driver, worker.cluster, cluster)) await closeDriver(worker);
    if (!worker.driver) {
      worker.cluster = cluster;
      worker.driver = await options.createDriver(cluster);
    }
    return worker.driver;
  }

  async function closeDriver(worker: Worker): Promise<void> {
    const { driver } = worker;
    worker.driver = undefined;
    await driver?.close();
  }

  function nudge(clusterId: string): void {
    const worker = workers.get(clusterId);
    if (!worker) {
      errand('discover', discover);
      return;
    }
    worker.dirty = true;
    worker.changedAt ??= performance.now();
    // A cluster that fails keeps its distance: a change must not turn its back-off into a storm.
    if (!worker.running && worker.failures === 0 && !worker.isGathering) {
      worker.isGathering = true;
      schedule(worker, worker.driver?.gatherMs ?? 0);
    }
    if (worker.driver?.permit) worker.wake?.();
  }

  /** An interval, or less where something ends by itself before that. */
  function untilWake(wakeAt: number | undefined): number {
    if (wakeAt === undefined) return options.intervalMs;
    return Math.max(0, Math.min(options.intervalMs, wakeAt - options.now()));
  }

  async function nudgeConcerned(who: { userId: string } | { organizationId: string }): Promise<void> {
    for (const clusterId of await listConcernedClusters(store.read, who)) nudge(clusterId);
  }

  async function onChange(change: Change): Promise<void> {
    if ('observedClusterId' in change) return;
    if ('clusterId' in change) return nudge(change.clusterId);
    if ('userId' in change) await lists.updateUser(change.userId);
    else await lists.updateOrganization(change.organizationId);
    await nudgeConcerned(change);
  }

  const stopListening = store.onChange((changes) => {
    for (const change of changes) errand('notice', () => onChange(change));
  });
  await discover();
  errand('sweep', sweep);
  const sweeps = setInterval(() => errand('sweep', sweep), options.intervalMs);
  return {
    async stop() {
      stopListening();
      clearInterval(sweeps);
      stopping.abort();
      for (const worker of workers.values()) clearTimeout(worker.timer);
      await Promise.all(errands);
      await Promise.all(
        [...workers.values()].map(async (worker) => {
          await worker.running;
          clearTimeout(worker.timer);
          await closeDriver(worker);
        }),
      );
    },
  };
}

/** Whether a driver is no longer the one for its cluster. */
function needsOther(driver: Driver, before: Cluster, after: Cluster): boolean {
  const kinds = (cluster: Cluster) => Object.keys(JSON.parse(cluster.driver) as object).join();
  if (before.name !== after.name || before.scheduler !== after.scheduler) return true;
  return driver.followsSettings ? kinds(before) !== kinds(after) : before.driver !== after.driver;
}

/** Milliseconds until the next attempt: doubling, with jitter so that many clusters do not come back at once. */
export function retryDelay(failures: number, random: number): number {
  const whole = Math.min(longestRetryMs, firstRetryMs * 2 ** (failures - 1));
  return Math.round(whole * (0.5 + random / 2));
}
