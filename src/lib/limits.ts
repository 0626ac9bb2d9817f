/**
 * Limits on attempts by key, in bounded memory. A rate is a token bucket: a burst, then one more each interval; a
 * back-off makes each failure in a row double the wait. They count in this process, or several servers count together
 * (`store/servers/limit-counts.ts`). Why no library: docs/decisions/0054.
 */
import { sourceNetwork } from './source-address.ts';

export interface Rate {
  burst: number;
  everyMs: number;
}

export interface BackOff {
  /** Failures without a wait: people mistype. */
  free: number;
  firstMs: number;
  mostMs: number;
  /** A key is forgotten this long after its last failure; longer than the longest wait. */
  forgetMs: number;
}

export type Limit =
  | { name: string; backOff: BackOff; rate?: undefined }
  | { name: string; rate: Rate; backOff?: undefined };

/** The state of a key. `at`: the time of its last failure (back-off), or at which its burst is full again (rate). */
export interface Kept {
  failures: number;
  at: number;
}

export interface Limiter {
  /** Milliseconds until the key may try again; 0 when it may now. */
  waitMs(key: string): number;
  /** Counts a try, or a failure, whether or not it is allowed. */
  use(key: string): void;
  /** Undoes one `use`. */
  undo(key: string): void;
  clear(key: string): void;
}

export interface RateLimiter extends Limiter {
  /** Takes a token that is available now, or in less than `patienceMs`. Returns the wait; where that is longer, no token is taken. */
  take(key: string, patienceMs?: number): number;
}

export interface BackOffLimiter extends Limiter {
  /** The whole wait after the key's last failure, in milliseconds; 0 for none. */
  delayMs(key: string): number;
}

/** Limit on remembered keys: the least recently used one is dropped first. */
const mostKeys = 10_000;

/** State by key, each dropped `lastsMs` after its time. */
function createMemory(lastsMs: number, now: () => number, kept: Map<string, Kept>) {
  const isOver = ({ at }: Kept) => at + lastsMs <= now();
  return {
    find(key: string): Kept | undefined {
      const one = kept.get(key);
      return one && !isOver(one) ? one : undefined;
    },
    set(key: string, one: Kept): void {
      // Deleting first keeps the keys in the order of their last use: the oldest is the first.
      kept.delete(key);
      if (!isOver(one)) kept.set(key, one);
      for (const [oldest, other] of kept) {
        if (kept.size <= mostKeys && !isOver(other)) break;
        kept.delete(oldest);
      }
    },
  };
}

/** `kept`: the state by key, read and updated in place. */
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
    // Limits the debt of a key to one token.
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

/** Limits that protect passwords and codes: counts that belong together change in one step, so that simultaneous tries all count. */
export interface Limits {
  /** Has `decide` read and change these counts, atomically. It may run more than once. */
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
 * Back-off of our own retries: milliseconds until the next attempt after so many failures in a row, doubling up to
 * `longestMs`, with jitter (`random` is 0 to 1) so that many that failed together do not retry together.
 */
export function retryDelay(
  failures: number,
  random: number,
  longestMs: number,
  firstMs: number = firstRetryMs,
): number {
  return Math.round(doubled(firstMs, failures - 1, longestMs) * (0.5 + random / 2));
}

/** The exponent is bounded, since the result would become infinite. */
function doubled(firstMs: number, times: number, mostMs: number): number {
  return Math.min(mostMs, firstMs * 2 ** Math.min(30, times));
}

const intervalMs = 10_000;
/**
 * Limit on kinds (source and reason) counted separately in an interval. Refusals of further sources are summed up by
 * reason, with as many reasons again at most: a reason may quote a path, which clients choose.
 */
const mostKinds = 50;
const further = 'further sources';

export interface RefusalTally {
  count(address: string, reason: string): boolean;
  flush(): void;
}

/**
 * Limits log lines about refusals, which anyone can cause at any rate: the first `each` of a source and reason in an
 * interval are logged one by one, and `sumUp` gets the number of the others at its end. Both are bounded.
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
      // Refusals of further sources get no line of their own.
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
    /** Counts one more, unless there are `most` already; returns a function that takes it back, once. */
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
