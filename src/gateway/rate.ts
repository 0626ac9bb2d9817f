/** A rate limit by key (a token bucket): how long each has to wait for the next. Bounded, and forgotten in time. */
export interface Rate {
  /** Takes one for `key`: milliseconds until it may go on. Where that would be `maxWaitMs` or more, it takes none. */
  take(key: string, now: number): number;
}

/** No handshake waits longer. */
export const maxWaitMs = 10_000;

/** More than this are not remembered: the one that took least recently goes first. */
const maxKeys = 10_000;

/** `burst` at once, then `perSecond`. */
export function createRate(perSecond: number, burst: number): Rate {
  const interval = 1000 / perSecond;
  /** When all that was taken is paid off. */
  const paidAt = new Map<string, number>();
  return {
    take(key, now) {
      const at = Math.max(paidAt.get(key) ?? 0, now);
      const wait = Math.max(0, at - (burst - 1) * interval - now);
      if (wait >= maxWaitMs) return maxWaitMs;
      paidAt.delete(key);
      paidAt.set(key, at + interval);
      const [oldest] = paidAt.keys();
      if (paidAt.size > maxKeys && oldest !== undefined) paidAt.delete(oldest);
      return wait;
    },
  };
}
