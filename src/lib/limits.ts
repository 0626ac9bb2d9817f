/**
 * Limits on tries, by key, as they protect passwords and codes: those of this process, or those that several servers count
 * together (`store/limit-counts.ts`). What counts together is looked at and counted in one step, so that tries at the same
 * instant count as well.
 */
import { type BackOffOptions, createBackOff, type Failures } from './back-off.ts';
import { createRateLimit, type RateLimitOptions } from './rate-limit.ts';

/** A limit and its name, which is its own. */
export type Limit =
  | { name: string; backOff: BackOffOptions; rate?: undefined }
  | { name: string; rate: RateLimitOptions; backOff?: undefined };

/** Whose count of which limit. */
export interface Counted {
  limit: Limit;
  key: string;
}

/** The count of a key. */
export interface Count {
  /** How long until the key may again, in milliseconds; 0 when it may now. */
  waitMs(): number;
  /** Counts a try, or a failure. */
  use(): void;
  /** Takes one back. */
  undo(): void;
  clear(): void;
}

export type Counts<Name extends string> = Record<Name, Count>;

export interface Limits {
  /** Has `decide` look at these counts and change them, with nobody between. It may be run again. */
  change<Name extends string, T>(
    counted: Record<Name, Counted>,
    decide: (counts: Counts<Name>) => T,
  ): Promise<T>;
}

/** What a limit keeps, by key: of a back-off failures, of a rate the time at which it is whole again. */
export interface Kept {
  failures: Map<string, Failures>;
  fullAt: Map<string, number>;
}

export function keepNothing(): Kept {
  return { failures: new Map(), fullAt: new Map() };
}

/** The counts of a limit by key, on what is kept of it. */
export function countsOf(limit: Limit, kept: Kept, now: () => number): (key: string) => Count {
  if (limit.backOff) {
    const backOff = createBackOff(limit.backOff, now, kept.failures);
    return (key) => ({
      waitMs: () => backOff.waitMs(key),
      use: () => backOff.failed(key),
      undo: () => backOff.undo(key),
      clear: () => backOff.clear(key),
    });
  }
  const rate = createRateLimit(limit.rate, now, kept.fullAt);
  return (key) => ({
    waitMs: () => rate.waitMs(key),
    use: () => rate.use(key),
    undo: () => rate.undo(key),
    clear: () => void kept.fullAt.delete(key),
  });
}

/** Limits that this process counts for itself, in bounded memory. */
export function createLimits(uptime: () => number): Limits {
  const byName = new Map<string, (key: string) => Count>();
  const countOf = ({ limit, key }: Counted) => {
    const counts = byName.get(limit.name) ?? countsOf(limit, keepNothing(), uptime);
    byName.set(limit.name, counts);
    return counts(key);
  };
  return {
    // What is not awaited nobody comes between.
    async change(counted, decide) {
      const counts = Object.entries<Counted>(counted).map(([name, one]) => [name, countOf(one)]);
      return decide(Object.fromEntries(counts));
    },
  };
}
