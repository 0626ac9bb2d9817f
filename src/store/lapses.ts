/** Where the limits of access are at this moment, as the tables hold times. */
import { type AccessPolicy, dayMs } from '../domain/access-lapse.ts';
import { toTime } from './time.ts';

export interface Lapses {
  readonly policy: AccessPolicy;
  /** The time that counts for them, in ms since 1970: what the clock of the host jumped ahead lately is left out. */
  now(): number;
  /** Whoever last signed in after this still has access; '' where there is no limit. */
  signedInAfter(): string;
  /** Keys that were registered after this still let in; '' where there is no limit. */
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
