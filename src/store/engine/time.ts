/** Times as the tables hold them, and where the limits of access are at this moment. */
import { type AccessPolicy, dayMs } from '../../domain/access/lapse.ts';

/** RFC 3339 in UTC with milliseconds, from milliseconds since 1970. */
export function toTime(now: number): string {
  return new Date(now).toISOString();
}

/** Milliseconds since 1970, from a stored time. */
export function fromTime(time: string): number {
  return Date.parse(time);
}

export interface Lapses {
  readonly policy: AccessPolicy;
  /** The time that counts for them, in ms since 1970: what the clock of the host jumped ahead lately is left out. */
  now(): number;
  /** People who last signed in after this still have access; '' where there is no limit. */
  signedInAfter(): string;
  /** Keys that were registered after this are still accepted; '' where there is no limit. */
  registeredAfter(): string;
  /** The time of day: what ends at a time that was set has ended if that is not after this. */
  endedBy(): string;
}

/** `now` is the clock of `createPatientClock`, `timeOfDay` the host's. */
export function createLapses(policy: AccessPolicy, now: () => number, timeOfDay: () => number): Lapses {
  const limit = (days: number | undefined) => (days === undefined ? '' : toTime(now() - days * dayMs));
  return {
    policy,
    now,
    signedInAfter: () => limit(policy.maxDaysWithoutSignIn),
    registeredAfter: () => limit(policy.keyMaxDays),
    endedBy: () => toTime(timeOfDay()),
  };
}
