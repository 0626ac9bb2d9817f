/** When clusters are looked at: at once after a change, and every interval besides. */
import type { Logger } from '../log.ts';
import { type Cluster, listConcernedClusters, listDrivenClusters } from '../store/clusters.ts';
import type { Change, Store } from '../store/index.ts';
import type { Driver } from './driver.ts';
import { reconcile } from './reconcile.ts';

export interface SyncOptions {
  store: Store;
  /** The driver for a cluster, made when the loop first sees it. */
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
  cluster: Cluster;
  driver: Driver | undefined;
  timer: NodeJS.Timeout | undefined;
  running: Promise<void> | undefined;
  /** Something changed since the pass under way began. */
  dirty: boolean;
  failures: number;
}

const firstRetryMs = 1_000;
const longestRetryMs = 60_000;
/** A cluster that neither answers nor fails is given up for this time, and tried again. */
const passLimitMs = 120_000;

export async function startSyncLoop(options: SyncOptions): Promise<SyncLoop> {
  const { store, log } = options;
  const workers = new Map<string, Worker>();
  const stopping = new AbortController();

  async function discover(): Promise<void> {
    for (const cluster of await listDrivenClusters(store.read)) {
      if (workers.has(cluster.id)) continue;
      const worker: Worker = {
        cluster,
        driver: undefined,
        timer: undefined,
        running: undefined,
        dirty: false,
        failures: 0,
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
    worker.running = pass(worker).then((delayMs) => {
      worker.running = undefined;
      schedule(worker, delayMs);
    });
  }

  /** Runs one pass and returns how long to wait before the next. */
  async function pass(worker: Worker): Promise<number> {
    const { cluster } = worker;
    const started = performance.now();
    try {
      const signal = AbortSignal.any([stopping.signal, AbortSignal.timeout(passLimitMs)]);
      const result = await reconcile(options, cluster.id, () => driverOf(worker), signal);
      worker.failures = 0;
      if (result.applied || result.activated) {
        log.info('sync.applied', {
          cluster: cluster.name,
          ...result,
          ms: Math.round(performance.now() - started),
        });
      }
      return worker.dirty ? 0 : options.intervalMs;
    } catch (error) {
      worker.failures += 1;
      const delay = retryDelay(worker.failures, Math.random());
      if (!stopping.signal.aborted) {
        log.warn('sync.failed', { cluster: cluster.name, error, failures: worker.failures, retryMs: delay });
      }
      return delay;
    }
  }

  function rediscover(): void {
    discover().catch((error) => log.error('sync.discover.failed', { error }));
  }

  async function driverOf(worker: Worker): Promise<Driver> {
    worker.driver ??= await options.createDriver(worker.cluster);
    return worker.driver;
  }

  function nudge(clusterId: string): void {
    const worker = workers.get(clusterId);
    if (!worker) {
      rediscover();
      return;
    }
    worker.dirty = true;
    // A cluster that fails keeps its distance: a change must not turn its back-off into a storm.
    if (!worker.running && worker.failures === 0) schedule(worker, 0);
  }

  async function onChanges(changes: readonly Change[]): Promise<void> {
    for (const change of changes) {
      if ('observedClusterId' in change) continue;
      const concerned =
        'clusterId' in change ? [change.clusterId] : await listConcernedClusters(store.read, change);
      for (const clusterId of concerned) nudge(clusterId);
    }
  }

  const stopListening = store.onChange((changes) => {
    onChanges(changes).catch((error) => log.error('sync.notice.failed', { error }));
  });
  await discover();
  const rediscovery = setInterval(rediscover, options.intervalMs);
  return {
    async stop() {
      stopListening();
      clearInterval(rediscovery);
      stopping.abort();
      for (const worker of workers.values()) clearTimeout(worker.timer);
      await Promise.all(
        [...workers.values()].map(async (worker) => {
          await worker.running;
          clearTimeout(worker.timer);
          await worker.driver?.close();
        }),
      );
    },
  };
}

/** Milliseconds until the next attempt: doubling, with jitter so that many clusters do not come back at once. */
export function retryDelay(failures: number, random: number): number {
  const whole = Math.min(longestRetryMs, firstRetryMs * 2 ** (failures - 1));
  return Math.round(whole * (0.5 + random / 2));
}
