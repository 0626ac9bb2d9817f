/** Machines of clusters, and how far the last report of one can be relied on (contract, "Machine"). */
import { isRecent } from '../access/list.ts';
import type { MachineReport } from '../access/manifest.ts';

/** A machine that its cluster reported. Times in RFC 3339. */
export interface Machine {
  id: string;
  clusterId: string;
  name: string;
  lifecycleState: 'registered' | 'admitted' | 'quarantined';
  /** The latest report of it. */
  report: MachineReport | undefined;
  /** How often it was reported. */
  reportGeneration: number;
  observedAt: string | null;
  createdAt: string;
  updatedAt: string;
}

export type Freshness = 'fresh' | 'stale' | 'unknown';

/**
 * A machine's heartbeat is its cluster's report of it: `stale` when one was due and did not come, `unknown` when none
 * is due any more. Times in ms since 1970.
 */
export function freshness(facts: { observedAt: number; isHeartbeatDue: boolean; now: number }): Freshness {
  if (isRecent(facts.observedAt, facts.now)) return 'fresh';
  return facts.isHeartbeatDue ? 'stale' : 'unknown';
}
