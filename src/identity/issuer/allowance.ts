/** A rate by key: so many at once, and one more each while. Bounded memory; time is the caller's. */
export interface Allowance {
  /** How long until the key may again, in milliseconds; 0 when it may now. */
  waitMs(key: string): number;
  /** Uses one up, which there may not be: a key is never more than one behind. */
  use(key: string): void;
  /** Gives one back. */
  undo(key: string): void;
}

const mostKeys = 10_000;

/** `burst` at once, then one every `everyMs`. */
export function createAllowance(
  { burst, everyMs }: { burst: number; everyMs: number },
  now: () => number,
): Allowance {
  /** When each key has its whole burst again; a key that is not there has it. */
  const fullAt = new Map<string, number>();
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
  return {
    waitMs: (key) => Math.max(0, find(key) - now() - (burst - 1) * everyMs),
    use: (key) => set(key, Math.min(find(key), now() + burst * everyMs) + everyMs),
    undo: (key) => set(key, find(key) - everyMs),
  };
}
