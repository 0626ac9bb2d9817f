/** What a pass over one side of a cluster is given, and what it comes to. */
import type { Cluster } from '../domain/cluster.ts';
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
  now(): number;
}

/** One pass: brings a side of a cluster to the present truth. Throws when it cannot be reached or changed. */
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
  /** A message that names what a person must mend there. */
  failure: string | null;
  /** When a grant there ends by itself, in ms since 1970. */
  wakeAt?: number | undefined;
  /** It was observed, and something could not be changed: worth a retry sooner than at the next interval. */
  retry?: boolean;
}

/** A cluster that does not answer within this time counts as unreachable. */
export const observeLimitMs = 60_000;

export function atMost(signal: AbortSignal, ms: number): AbortSignal {
  return AbortSignal.any([signal, AbortSignal.timeout(ms)]);
}

/** Whether something ended because the service does: that is nobody's fault, and nothing to record. */
export function isStopping(signal: AbortSignal): boolean {
  return signal.aborted && (signal.reason as Error).name === 'AbortError';
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
