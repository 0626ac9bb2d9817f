/**
 * The clocks of a process. The host's time of day, which can be set forward and back, is for timestamps that are
 * stored or sent; durations are measured by a monotonic clock.
 */
import type { Logger } from './log.ts';

/** Clocks of two machines may differ by this much. */
export const clockToleranceMs = 60_000;

export interface Clock {
  now(): number;
  /** Ms since an arbitrary moment; monotonic, it cannot be set. */
  uptime(): number;
}

/** The host's clocks. A test that passes only `now` gets it as `uptime` as well. */
export function createClock(given: {
  now?: (() => number) | undefined;
  uptime?: (() => number) | undefined;
}): Clock {
  const { now = Date.now, uptime = given.now ?? (() => performance.now()) } = given;
  return { now, uptime };
}

/** A forward jump of the clock is ignored for this long by expiries in days. */
const patienceMs = 86_400_000;

/**
 * A clock for expiries in days, which ignores forward jumps of the last day: a wrongly set clock ends nothing at
 * once, and the operator has a day to correct it. Jumps before the start of the process are not known.
 */
export function createPatientClock({ now, uptime }: Clock): () => number {
  let offset = now() - uptime();
  let ahead = 0;
  let jumpedAt = uptime();
  return () => {
    const present = now() - uptime();
    const step = present - offset;
    offset = present;
    if (uptime() - jumpedAt >= patienceMs) ahead = 0;
    if (Math.abs(step) > jumpMs) {
      ahead = Math.max(0, ahead + step);
      if (step > 0) jumpedAt = uptime();
    }
    return now() - ahead;
  };
}

const everyMs = 1_000;
/** Smaller steps are corrections of time synchronization. */
const jumpMs = 5_000;

export function logClockJumps({ now, uptime }: Clock, log: Logger): () => void {
  let behind = now() - uptime();
  const timer = setInterval(() => {
    const present = now() - uptime();
    const ms = Math.round(present - behind);
    behind = present;
    if (Math.abs(ms) <= jumpMs) return;
    const message = `The clock of this host jumped ${ms > 0 ? 'forward' : 'back'} by ${Math.round(Math.abs(ms) / 1000)} seconds, or the host slept. Check its time synchronization (timedatectl): sign-ins need clocks that agree within a minute.`;
    log.warn('clock.jumped', { ms, message });
  }, everyMs).unref();
  return () => clearInterval(timer);
}
