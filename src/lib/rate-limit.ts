/** Rate limits by key (token buckets): so many at once, and one more each while. Bounded memory; time is the caller's. */
export interface RateLimit {
  /** How long until the key may again, in milliseconds; 0 when it may now. */
  waitMs(key: string): number;
  /** Uses one up, whether or not there is one: a key is never more than one behind. */
  use(key: string): void;
  /** Gives one back. */
  undo(key: string): void;
  /** Reserves the next one: milliseconds until it may be used. Where that would be `mostMs` or more, `mostMs`, and none is taken. */
  reserve(key: string, mostMs: number): number;
}

/** More are not remembered: the key that was used least recently goes first. */
const mostKeys = 10_000;

/**
 * A limit for each owner, such as a store, by key: whether the key may now, which uses one up. An owner that is gone takes
 * its limit along.
 */
export function createRateLimits(settings: RateLimitOptions): (owner: object, key: string) => boolean {
  const limits = new WeakMap<object, RateLimit>();
  return (owner, key) => {
    const limit = limits.get(owner) ?? createRateLimit(settings, () => performance.now());
    limits.set(owner, limit);
    if (limit.waitMs(key) > 0) return false;
    limit.use(key);
    return true;
  };
}

export interface RateLimitOptions {
  burst: number;
  everyMs: number;
}

/**
 * `burst` at once, then one every `everyMs`. `fullAt`: when each key has its whole burst again, which is kept in it; a key that
 * is not there has it.
 */
export function createRateLimit(
  { burst, everyMs }: RateLimitOptions,
  now: () => number,
  fullAt: Map<string, number> = new Map(),
): RateLimit {
  const find = (key: string) => Math.max(fullAt.get(key) ?? 0, now());
  const set = (key: string, at: number) => {
    // Deleted and set again, the keys stay in the order of their last use: the oldest is the first.
    fullAt.delete(key);
    if (at > now()) fullAt.set(key, at);
    for (const [oldest, full] of fullAt) {
      if (fullAt.size <= mostKeys && full > now()) break;
      fullAt.delete(oldest);
    }
  };
  const waitMs = (key: string) => Math.max(0, find(key) - now() - (burst - 1) * everyMs);
  return {
    waitMs,
    use: (key) => set(key, Math.min(find(key), now() + burst * everyMs) + everyMs),
    undo: (key) => set(key, find(key) - everyMs),
    reserve(key, mostMs) {
      const wait = waitMs(key);
      if (wait >= mostMs) return mostMs;
      set(key, find(key) + everyMs);
      return wait;
    },
  };
}
