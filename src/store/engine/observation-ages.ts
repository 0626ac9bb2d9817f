/**
 * The ages of reports of clusters' sides. The age of a report that this process recorded, or received a message about,
 * is measured by its own monotonic clock, so that setting the time of day forward makes no report old, and setting it
 * back makes none new. For other reports, those from before a restart for example, the time of day counts.
 */
import { allSides, type Side } from '../../domain/clusters/cluster.ts';
import { isUuid } from '../../domain/id.ts';
import type { Clock } from '../../lib/clock.ts';
import { fromTime } from './time.ts';

export interface ObservationAges {
  /** Remembers that an observation, stored with the time `at`, was recorded at this moment. */
  recorded(clusterId: string, side: Side, at: string): void;
  /** Remembers that another server recorded one at about this moment. */
  heard(observation: RecordedObservation): void;
  /** Ms since the observation that is stored with the time `at`; infinite where that time is yet to come. */
  msSince(clusterId: string, side: Side, at: string): number;
  /** Calls `listener` for every report, new or not, just before it is committed; returns how to stop. */
  onRecorded(listener: (clusterId: string) => void): () => void;
}

/** An observation that was recorded, with the time that is stored with it. */
export interface RecordedObservation {
  clusterId: string;
  side: Side;
  at: string;
}

/** Parses the message of another server about an observation. Throws where it is none. */
export function readObservation(received: unknown): RecordedObservation {
  const { clusterId, side, at } = received as Record<keyof RecordedObservation, unknown>;
  const known = allSides.find((one) => one === side);
  if (typeof clusterId !== 'string' || !isUuid(clusterId) || known === undefined || typeof at !== 'string')
    throw new Error('the message is about no observation');
  return { clusterId, side: known, at };
}

/** Clocks of two hosts, or of one before and after a restart, may differ by this much. */
const toleranceMs = 60_000;

/**
 * Keeps one entry for each side of a cluster while the database is open. `announce` sends observations that were
 * recorded here to the other servers.
 */
export function createObservationAges(
  { now, uptime }: Clock,
  announce: (observation: RecordedObservation) => void = () => {},
): ObservationAges {
  const latest = new Map<string, { at: string; uptime: number }>();
  const listeners = new Set<(clusterId: string) => void>();
  function note({ clusterId, side, at }: RecordedObservation): void {
    for (const listener of listeners) listener(clusterId);
    latest.set(`${clusterId}/${side}`, { at, uptime: uptime() });
  }
  return {
    onRecorded(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    recorded(clusterId, side, at) {
      note({ clusterId, side, at });
      announce({ clusterId, side, at });
    },
    heard: note,
    msSince(clusterId, side, at) {
      const own = latest.get(`${clusterId}/${side}`);
      if (own?.at === at) return uptime() - own.uptime;
      const ms = now() - fromTime(at);
      return ms < -toleranceMs ? Number.POSITIVE_INFINITY : ms;
    },
  };
}
