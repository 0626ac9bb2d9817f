/** Conversion of stored times, and the present limits of access. */
import { type AccessPolicy, dayMs, type SignInWindow, signInMs } from '../../domain/access/lapse.ts';

/** RFC 3339 in UTC with milliseconds, from milliseconds since 1970. */
export function toTime(now: number): string {
  return new Date(now).toISOString();
}

/** Milliseconds since 1970, from a stored time. */
export function fromTime(time: string): number {
  return Date.parse(time);
}

interface SignInFacts {
  /** The last sign-in, or the creation of the account. */
  signedInAt: string;
  /** Until when access does not lapse without a sign-in. */
  exemptUntil: string | null;
  /** The limit of the organization: the most hours without a sign-in. */
  hours?: number | null;
}

export interface Lapses {
  readonly policy: AccessPolicy;
  /** The time for these limits, in ms since 1970, without recent jumps ahead of the host's clock. */
  now(): number;
  /** How long a person's sign-in counts; undefined where it does not lapse. */
  signInOf(facts: SignInFacts): SignInWindow | undefined;
  /** People of an organization who last signed in after this still have access; '' where there is no limit. */
  signedInAfter(hours: number | null): string;
  /** Keys that were registered after this are still accepted; '' where there is no limit. */
  registeredAfter(): string;
  /** The time of day: a permission whose end is not after this has ended. */
  endedBy(): string;
}

/** `now` is the clock of `createPatientClock`, `timeOfDay` the host's. */
export function createLapses(policy: AccessPolicy, now: () => number, timeOfDay: () => number): Lapses {
  const limit = (ms: number | undefined) => (ms === undefined ? '' : toTime(now() - ms));
  const { keyMaxDays: days } = policy;
  const endedBy = () => toTime(timeOfDay());
  return {
    policy,
    now,
    signInOf({ signedInAt, exemptUntil, hours }) {
      const ms = signInMs(policy, hours);
      if (ms === undefined || (exemptUntil !== null && exemptUntil > endedBy())) return undefined;
      return { ms, leftMs: fromTime(signedInAt) + ms - now() };
    },
    signedInAfter: (hours) => limit(signInMs(policy, hours)),
    registeredAfter: () => limit(days === undefined ? undefined : days * dayMs),
    endedBy,
  };
}
