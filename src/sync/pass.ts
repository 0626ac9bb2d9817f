/** What a pass over one side of a cluster is given, and its result. */
import type { Cluster } from '../domain/cluster.ts';
import type { Side } from '../domain/side.ts';
import { messageOf } from '../lib/error-message.ts';
import type { Logger } from '../lib/log.ts';
import { inSpan } from '../lib/trace.ts';
import { recordObserveFailure } from '../store/cluster-sides.ts';
import { activateCluster } from '../store/clusters.ts';
import type { Store } from '../store/index.ts';
import type { ListKeeper } from './lists.ts';
import type { Queue } from './queue.ts';

export interface PassDeps {
  store: Store;
  lists: ListKeeper;
  /** Bounds how many passes work with the database at the same time. */
  admission: Queue;
  /** The issuer by whose subjects API servers know people; undefined where it is by something else. */
  subjectIssuer: string | undefined;
  intervalMs: number;
  log: Logger;
  now(): number;
  /** Ends the sessions on a cluster that are not allowed any more: people read why, before their account goes. */
  recheckSessions?: ((clusterId: string) => Promise<void>) | undefined;
}

/** One pass: observes a side of a cluster and applies the wanted state. Throws when it cannot be reached or changed. */
export type Pass<D> = (
  deps: PassDeps,
  cluster: Cluster,
  openDriver: (cluster: Cluster) => Promise<D>,
  signal: AbortSignal,
) => Promise<PassResult>;

export interface PassResult {
  /** The manifest in force at the end, 0 where there is none. */
  generation: number;
  applied: boolean;
  activated: boolean;
  /** Whether what the database wanted when the pass began is in force there. */
  inForce: boolean;
  /** A message that names what a person must mend there. */
  failure: string | null;
  /** When a grant there ends by itself, in ms since 1970. */
  wakeAt?: number | undefined;
  /** It was observed, and something could not be changed: worth a retry sooner than at the next interval. */
  retry?: boolean;
}

/** A cluster that does not answer within this time counts as unreachable. */
const observeLimitMs = 60_000;

export function atMost(signal: AbortSignal, ms: number): AbortSignal {
  return AbortSignal.any([signal, AbortSignal.timeout(ms)]);
}

/** Whether something was aborted because the service stops: that is no failure to record. */
export function isStopping(signal: AbortSignal): boolean {
  return signal.aborted && (signal.reason as Error).name === 'AbortError';
}

interface Observation<R> {
  side: Side;
  driver: { observe(signal: AbortSignal): Promise<R> };
  record(report: R): Promise<void>;
}

/**
 * Observes a side and records its report, or at once that it could not be observed; returns the report, and whether it
 * made the cluster active.
 */
export async function observeSide<R extends { controlPlaneReady: boolean }>(
  { store, admission, log }: PassDeps,
  cluster: Cluster,
  { side, driver, record }: Observation<R>,
  signal: AbortSignal,
): Promise<{ report: R; activated: boolean }> {
  const observing = inSpan('observe', {}, () => driver.observe(atMost(signal, observeLimitMs)));
  const report = await observing.catch(async (error) => {
    if (!isStopping(signal)) await recordObserveFailure(store, cluster.id, side, messageOf(error));
    throw error;
  });
  const activated = await admission(async () => {
    await inSpan('record', {}, () => record(report));
    log.debug('sync.observed', { cluster: cluster.name, side });
    if (cluster.state !== 'provisioning' || !report.controlPlaneReady) return false;
    return store.write((tx) => activateCluster(tx, cluster.id));
  });
  return { report, activated };
}
