/**
 * How many may come in: bounds on connections that have not logged in, on sessions a source and a person, and a back-off
 * for failures in a row. What persons may do is not decided here.
 */
import { type Backoff, createBackoff } from './backoff.ts';
import type { GatewayLimits } from './limits.ts';

/** Why not: a word for the log, a line for the person. */
export interface Refusal {
  reason: string;
  text: string;
}

export interface Door {
  /** A connection is there. It counts until `leave` or `admit`, unless it is refused. */
  enter(source: string): Refusal | undefined;
  /** Somebody is proven: from now on it counts as a session of theirs until `end`, unless it is refused. */
  admit(source: string, userId: string): Refusal | undefined;
  leave(source: string): void;
  end(source: string, userId: string): void;
  /** Why nobody may try this name from there now. */
  holdBack(source: string, loginName: string): Refusal | undefined;
  readonly backoff: Backoff;
}

/** `random` gives numbers from 0 to 1 (not 1). */
export function createDoor(limits: GatewayLimits, random: () => number = Math.random): Door {
  const strangers = new Map<string, number>();
  const bySource = new Map<string, number>();
  const byUser = new Map<string, number>();
  const backoff = createBackoff(limits);
  let waiting = 0;

  function leave(source: string) {
    waiting -= 1;
    add(strangers, source, -1);
  }

  return {
    backoff,
    enter(source) {
      const same = strangers.get(source) ?? 0;
      if (isRefused(waiting, limits, random) || same >= limits.unauthenticatedPerSource)
        return { reason: 'too_many_logins', text: 'Too many logins at once. Please try again in a minute.' };
      waiting += 1;
      add(strangers, source, 1);
      return undefined;
    },
    admit(source, userId) {
      const { sessionsPerUser, sessionsPerSource } = limits;
      if ((byUser.get(userId) ?? 0) >= sessionsPerUser) {
        const text = `You have ${sessionsPerUser} sessions open, which is the most. Please close some first.`;
        return { reason: 'too_many_sessions', text };
      }
      if ((bySource.get(source) ?? 0) >= sessionsPerSource) {
        const text = `${sessionsPerSource} sessions are open from your address, which is the most. Please close some first.`;
        return { reason: 'too_many_sessions', text };
      }
      leave(source);
      add(byUser, userId, 1);
      add(bySource, source, 1);
      return undefined;
    },
    leave,
    end(source, userId) {
      add(byUser, userId, -1);
      add(bySource, source, -1);
    },
    holdBack(source, loginName) {
      if (bySource.has(source)) return undefined;
      const ms = backoff.waitMs(source, loginName, Date.now());
      if (ms === 0) return undefined;
      const seconds = Math.ceil(ms / 1000);
      const text = `Too many failed logins for this name from your address. Try again in ${seconds} s.`;
      return { reason: 'too_many_failures', text };
    },
  };
}

/** Random early drop, as sshd's MaxStartups: none below `start`, `rate` percent from there, rising to all at `full`. */
export function isRefused(
  waiting: number,
  limits: Pick<GatewayLimits, 'unauthenticatedStart' | 'unauthenticatedRate' | 'unauthenticatedFull'>,
  random: () => number,
): boolean {
  const { unauthenticatedStart: start, unauthenticatedRate: rate, unauthenticatedFull: full } = limits;
  if (waiting >= full) return true;
  if (waiting < start) return false;
  const percent = rate + ((100 - rate) * (waiting - start)) / (full - start);
  return random() * 100 < percent;
}

function add(counts: Map<string, number>, key: string, by: number): void {
  const count = (counts.get(key) ?? 0) + by;
  if (count > 0) counts.set(key, count);
  else counts.delete(key);
}
