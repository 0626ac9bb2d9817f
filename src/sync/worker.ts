/** The worker of one side of one cluster: when it runs, how long it backs off, and the driver that it holds. */

import { isDeepStrictEqual } from 'node:util';
import type { Cluster } from '../domain/cluster.ts';
import type { Side } from '../domain/side.ts';
import { sidesOf } from '../domain/side.ts';
import { retryDelay } from '../lib/back-off.ts';
import type { Logger } from '../lib/log.ts';
import { findCluster } from '../store/clusters.ts';
import type { KubernetesDriver, SlurmDriver } from './driver.ts';
import type { Pass, PassDeps, PassResult } from './pass.ts';
import { releaseSide } from './release.ts';

export interface WorkerOptions<D extends SlurmDriver | KubernetesDriver> {
  clusterId: string;
  side: Side;
  deps: PassDeps;
  pass: Pass<D>;
  /** Made when it is first needed, and anew when its settings have changed. */
  createDriver(cluster: Cluster): Promise<D>;
  log: Logger;
  /** Nothing is left to be done for this side, ever. */
  onEnd(): void;
}

export interface Worker {
  /** Something changed. A side that fails keeps its distance: a change must not turn its back-off into a storm. */
  nudge(): void;
  /** The cluster itself showed signs of life or of change: worth a pass at once, also of one that fails. */
  wake(): void;
  /** Waits for a pass under way, and lets go of the cluster. */
  stop(): Promise<void>;
}

export function startWorker<D extends SlurmDriver | KubernetesDriver>(options: WorkerOptions<D>): Worker {
  const { clusterId, side, deps, log } = options;
  const stopping = new AbortController();
  const held = holdDriver(options.createDriver);
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  /** Something changed since the pass under way began; `urgent`: the cluster said so itself. */
  let dirty: false | 'changed' | 'urgent' = false;
  /** A pass is due soon, for what changed; what changes until then is a part of it. */
  let isGathering = false;
  /** When the first change came that no pass has carried to the cluster yet. */
  let changedAt: number | undefined = performance.now();
  let failures = 0;
  let lastFailure: string | null = null;
  let name = clusterId;

  function schedule(delayMs: number): void {
    clearTimeout(timer);
    if (!stopping.signal.aborted) timer = setTimeout(run, delayMs);
  }

  function run(): void {
    if (running) return;
    dirty = false;
    isGathering = false;
    running = pass().then((delayMs) => {
      running = undefined;
      if (delayMs === undefined) return;
      // Asked only now: what changes between the end of the pass and here would wait for an interval.
      const isDue = dirty === 'urgent' || (dirty === 'changed' && failures === 0);
      schedule(isDue ? (held.driver?.gatherMs ?? 0) : delayMs);
    });
  }

  /** Runs one pass and returns how long to wait before the next; undefined when there is none. */
  async function pass(): Promise<number | undefined> {
    const started = performance.now();
    const since = (then: number) => Math.round(performance.now() - then);
    const changed = changedAt;
    changedAt = undefined;
    try {
      const result = await passOrRelease();
      if (!result) {
        await held.close();
        options.onEnd();
        return undefined;
      }
      log.debug('sync.passed', { cluster: name, side, ms: since(started) });
      if (result.failure !== lastFailure) {
        if (result.failure !== null)
          log.warn('sync.refused', { cluster: name, side, failure: result.failure });
        lastFailure = result.failure;
      }
      const { applied, activated, generation } = result;
      if (applied || activated) {
        log.info('sync.applied', { cluster: name, side, generation, applied, activated, ms: since(started) });
        if (changed !== undefined) log.debug('sync.converged', { cluster: name, side, ms: since(changed) });
      }
      failures = result.retry ? failures + 1 : 0;
      const nextMs = untilWake(result.wakeAt);
      return result.retry ? Math.min(nextMs, retryMs()) : nextMs;
    } catch (error) {
      failures += 1;
      changedAt = changed ?? changedAt;
      const delay = retryMs();
      if (!stopping.signal.aborted) {
        const ms = since(started);
        log.warn('sync.failed', { cluster: name, side, error, failures, retryMs: delay, ms });
      }
      return delay;
    }
  }

  /** Undefined when the side is released, or is no side of the cluster any more. */
  async function passOrRelease(): Promise<PassResult | undefined> {
    const cluster = await findCluster(deps.store.read, clusterId);
    if (!cluster) throw new Error(`cluster ${clusterId} is gone from the database`);
    name = cluster.name;
    if (cluster.state === 'released' || !sidesOf(cluster).includes(side)) return undefined;
    if (cluster.state !== 'releasing') return options.pass(deps, cluster, held.open, stopping.signal);
    const isNews = await releaseSide(deps, cluster, side, held.open, stopping.signal);
    if (isNews) log.info('sync.released', { cluster: name, side });
    return undefined;
  }

  const retryMs = () => retryDelay(failures, Math.random(), deps.intervalMs);

  /** An interval, or less where something ends by itself before that. */
  function untilWake(wakeAt: number | undefined): number {
    if (wakeAt === undefined) return deps.intervalMs;
    return Math.max(0, Math.min(deps.intervalMs, wakeAt - deps.now()));
  }

  schedule(0);
  return {
    nudge() {
      dirty ||= 'changed';
      changedAt ??= performance.now();
      if (!running && failures === 0 && !isGathering) {
        isGathering = true;
        schedule(held.driver?.gatherMs ?? 0);
      }
    },
    wake() {
      dirty = 'urgent';
      if (!running && !isGathering) {
        isGathering = true;
        schedule(held.driver?.gatherMs ?? 0);
      }
    },
    async stop() {
      stopping.abort();
      clearTimeout(timer);
      await running;
      await held.close();
    },
  };
}

interface HeldDriver<D> {
  readonly driver: D | undefined;
  open(this: void, cluster: Cluster): Promise<D>;
  close(): Promise<void>;
}

/** Holds the driver of a side for as long as it is the one for its cluster. */
function holdDriver<D extends SlurmDriver | KubernetesDriver>(
  createDriver: (cluster: Cluster) => Promise<D>,
): HeldDriver<D> {
  let held: { driver: D; cluster: Cluster } | undefined;
  async function close(): Promise<void> {
    const before = held;
    held = undefined;
    await before?.driver.close();
  }
  return {
    get driver() {
      return held?.driver;
    },
    async open(cluster) {
      if (held && needsOther(held.driver, held.cluster, cluster)) await close();
      held ??= { cluster, driver: await createDriver(cluster) };
      return held.driver;
    },
    close,
  };
}

/** Whether a driver is no longer the one for its cluster. */
function needsOther(driver: SlurmDriver | KubernetesDriver, before: Cluster, after: Cluster): boolean {
  const kinds = (cluster: Cluster) => Object.keys(cluster.driver).join();
  if (before.name !== after.name || before.scheduler !== after.scheduler) return true;
  return driver.followsSettings
    ? kinds(before) !== kinds(after)
    : !isDeepStrictEqual(before.driver, after.driver);
}
