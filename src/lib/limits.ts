/**
 * Limits on attempts by key, in bounded memory. A rate lets so many through at once, and one more each while (a token bucket);
 * a back-off lets failures in a row cost waits that double. They count in this process, or several servers count together
 * (`store/servers/limit-counts.ts`). Why no library: docs/decisions/0054.
 */
import { sourceNetwork } from './source-address.ts';

export interface Rate {
  burst: number;
  everyMs: number;
}

export interface BackOff {
  /** Failures that cost nothing: people mistype. */
  free: number;
  firstMs: number;
  mostMs: number;
  /** How long after its last failure a key is forgotten; longer than the longest wait. */
  forgetMs: number;
}

export type Limit =
  | { name: string; backOff: BackOff; rate?: undefined }
  | { name: string; rate: Rate; backOff?: undefined };

/** What is kept of a key: when its last failure was, of a back-off; when it has its whole burst again, of a rate. */
export interface Kept {
  failures: number;
  at: number;
}

export interface Limiter {
  /** How long until the key may again, in milliseconds; 0 when it may now. */
  waitMs(key: string): number;
  /** Counts a try, or a failure, whether or not it may be made. */
  use(key: string): void;
  /** Takes one back, as if it had not been. */
  undo(key: string): void;
  clear(key: string): void;
}

export interface RateLimiter extends Limiter {
  /** Uses one up that may be used now, or in less than `patienceMs`. Returns how long until then; where that is longer, none is used. */
  take(key: string, patienceMs?: number): number;
}

export interface BackOffLimiter extends Limiter {
  /** How long the key's last failure makes it wait in all, in milliseconds; 0 when not at all. */
  delayMs(key: string): number;
}

/** More keys are not remembered: the one that was used least recently goes first. */
const mostKeys = 10_000;

/** What is known of keys, each for so long after its time. */
function createMemory(lastsMs: number, now: () => number, kept: Map<string, Kept>) {
  const isOver = ({ at }: Kept) => at + lastsMs <= now();
  return {
    find(key: string): Kept | undefined {
      const one = kept.get(key);
      return one && !isOver(one) ? one : undefined;
    },
    set(key: string, one: Kept): void {
      // Deleted and set again, the keys stay in the order of their last use: the oldest is the first.
      kept.delete(key);
      if (!isOver(one)) kept.set(key, one);
      for (const [oldest, other] of kept) {
        if (kept.size <= mostKeys && !isOver(other)) break;
        kept.delete(oldest);
      }
    },
  };
}

/** `kept`: what is known already, by key; it is kept in there. */
export function createRateLimiter(
  { burst, everyMs }: Rate,
  now: () => number = () => performance.now(),
  kept: Map<string, Kept> = new Map(),
): RateLimiter {
  const memory = createMemory(0, now, kept);
  const fullAt = (key: string) => memory.find(key)?.at ?? now();
  const set = (key: string, at: number) => memory.set(key, { failures: 0, at });
  const waitMs = (key: string) => Math.max(0, fullAt(key) - now() - (burst - 1) * everyMs);
  return {
    waitMs,
    // A key is never more than one behind.
    use: (key) => set(key, Math.min(fullAt(key), now() + burst * everyMs) + everyMs),
    undo: (key) => set(key, fullAt(key) - everyMs),
    clear: (key) => void kept.delete(key),
    take(key, patienceMs = 0) {
      const wait = waitMs(key);
      if (wait === 0 || wait < patienceMs) set(key, fullAt(key) + everyMs);
      return wait;
    },
  };
}

export function createBackOffLimiter(
  { free, firstMs, mostMs, forgetMs }: BackOff,
  now: () => number = () => performance.now(),
  kept: Map<string, Kept> = new Map(),
): BackOffLimiter {
  const memory = createMemory(forgetMs, now, kept);
  const failuresOf = (key: string) => memory.find(key)?.failures ?? 0;
  const delayMs = (key: string) => {
    const failures = failuresOf(key);
    return failures < Math.max(free, 1) ? 0 : doubled(firstMs, failures - free, mostMs);
  };
  return {
    delayMs,
    waitMs: (key) => Math.max(0, (memory.find(key)?.at ?? -Infinity) + delayMs(key) - now()),
    use: (key) => memory.set(key, { failures: failuresOf(key) + 1, at: now() }),
    undo(key) {
      const { failures, at } = memory.find(key) ?? { failures: 0, at: 0 };
      if (failures > 1) kept.set(key, { failures: failures - 1, at });
      else kept.delete(key);
    },
    clear: (key) => void kept.delete(key),
  };
}

export function createLimiter(limit: Limit, now: () => number, kept: Map<string, Kept>): Limiter {
  return limit.backOff
    ? createBackOffLimiter(limit.backOff, now, kept)
    : createRateLimiter(limit.rate, now, kept);
}

export interface Counted {
  limit: Limit;
  key: string;
}

export type Count = { [Act in keyof Limiter]: () => ReturnType<Limiter[Act]> };

/** Limits that protect passwords and codes: what counts together is read and counted in one step, so that tries at the same instant count. */
export interface Limits {
  /** Has `decide` read these counts and change them, atomically. It may be run again. */
  change<Name extends string, T>(
    counted: Record<Name, Counted>,
    decide: (counts: Record<Name, Count>) => T,
  ): Promise<T>;
}

export function countOf(limiter: Limiter, key: string): Count {
  return {
    waitMs: () => limiter.waitMs(key),
    use: () => limiter.use(key),
    undo: () => limiter.undo(key),
    clear: () => limiter.clear(key),
  };
}

export function createLimits(uptime: () => number): Limits {
  const limiters = new Map<string, Limiter>();
  return {
    // Atomic, as it awaits nothing.
    async change(counted, decide) {
      const counts = Object.entries<Counted>(counted).map(([name, { limit, key }]) => {
        const limiter = limiters.get(limit.name) ?? createLimiter(limit, uptime, new Map());
        limiters.set(limit.name, limiter);
        return [name, countOf(limiter, key)];
      });
      return decide(Object.fromEntries(counts));
    },
  };
}

const firstRetryMs = 1_000;

/**
 * Milliseconds until the next attempt at something of our own after so many failures in a row: doubling up to `longestMs`, with
 * jitter (`random` is 0 to 1) so that many that failed together do not come back together.
 */
export function retryDelay(
  failures: number,
  random: number,
  longestMs: number,
  firstMs: number = firstRetryMs,
): number {
  return Math.round(doubled(firstMs, failures - 1, longestMs) * (0.5 + random / 2));
}

/** The exponent is bounded, since its result would be infinite some day. */
function doubled(firstMs: number, times: number, mostMs: number): number {
  return Math.min(mostMs, firstMs * 2 ** Math.min(30, times));
}

const intervalMs = 10_000;
/**
 * Sources and reasons that are counted separately in an interval. The refusals of further ones are one sum for each reason, of at
 * most as many reasons again: a reason may quote a path, which strangers choose.
 */
const mostKinds = 50;
const further = 'further sources';

export interface RefusalTally {
  count(address: string, reason: string): boolean;
  flush(): void;
}

/**
 * Refusals that strangers can cause at any rate, for a log that they must not fill: the first `each` of a source and reason in an
 * interval are logged one by one, and `sumUp` gets the number of the others at its end. Bounded in both.
 */
export function createRefusalTally(
  each: number,
  sumUp: (source: string, reason: string, refusals: number) => void,
): RefusalTally {
  const kinds = new Map<string, { source: string; reason: string; refusals: number }>();
  let timer: NodeJS.Timeout | undefined;

  function flush() {
    clearTimeout(timer);
    timer = undefined;
    const counted = [...kinds.values()];
    kinds.clear();
    for (const { source, reason, refusals } of counted)
      if (refusals > each) sumUp(source, reason, refusals - each);
  }

  return {
    count(address, reason) {
      const source = sourceNetwork(address);
      timer ??= setTimeout(flush, intervalMs).unref();
      const isFurther = kinds.size >= mostKinds && !kinds.has(`${source} ${reason}`);
      const shown = isFurther && kinds.size >= 2 * mostKinds - 1 ? 'further reasons' : reason;
      const key = `${isFurther ? further : source} ${shown}`;
      // None of the further ones has a line of its own.
      const kind =
        kinds.get(key) ??
        (isFurther ? { source: further, reason: shown, refusals: each } : { source, reason, refusals: 0 });
      kinds.set(key, kind);
      kind.refusals += 1;
      return kind.refusals <= each;
    },
    flush,
  };
}

export function createCounter() {
  const counts = new Map<string, number>();
  return {
    /** One more, unless there are `most` already; returns how to take it back, once. */
    enter(key: string, most: number): (() => void) | undefined {
      const count = counts.get(key) ?? 0;
      if (count >= most) return undefined;
      counts.set(key, count + 1);
      return () => {
        const left = (counts.get(key) ?? 1) - 1;
        if (left > 0) counts.set(key, left);
        else counts.delete(key);
      };
    },
  };
}
