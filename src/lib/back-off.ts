/** Back-off: how long something that failed waits before the next attempt. It doubles with every failure in a row. */

const firstRetryMs = 1_000;

/**
 * Milliseconds until the next attempt after so many failures in a row: doubling up to `longestMs`, with jitter (`random`
 * is 0 to 1) so that many that failed together do not come back together.
 */
export function retryDelay(
  failures: number,
  random: number,
  longestMs: number,
  firstMs: number = firstRetryMs,
): number {
  return Math.round(doubled(firstMs, failures - 1, longestMs) * (0.5 + random / 2));
}

export interface BackOffOptions {
  /** Failures that cost nothing: people mistype. */
  free: number;
  /** The first wait, doubled with every further failure. */
  firstMs: number;
  mostMs: number;
  /** How long after its last failure a key is forgotten; longer than the longest wait. */
  forgetMs: number;
}

/** Failures in a row by key, in bounded memory. */
export interface BackOff {
  /** How long the key's last failure makes it wait in all, in milliseconds; 0 when not at all. */
  delayMs(key: string): number;
  /** How much of that is left. */
  waitMs(key: string): number;
  failed(key: string): void;
  /** Takes one failure back, as if it had not been. */
  undo(key: string): void;
  clear(key: string): void;
}

/** More are not remembered: the key whose last failure is the oldest goes first. */
const mostKeys = 10_000;

/** Failures in a row, and when the last one was. */
export interface Failures {
  failures: number;
  at: number;
}

/** `entries`: what is known already; they are kept in it. */
export function createBackOff(
  { free, firstMs, mostMs, forgetMs }: BackOffOptions,
  now: () => number,
  entries: Map<string, Failures> = new Map(),
): BackOff {
  const find = (key: string) => {
    const entry = entries.get(key);
    return entry && now() - entry.at < forgetMs ? entry : undefined;
  };
  const delayMs = (key: string) => {
    const { failures } = find(key) ?? { failures: 0 };
    return failures < Math.max(free, 1) ? 0 : doubled(firstMs, failures - free, mostMs);
  };
  return {
    delayMs,
    waitMs: (key) => Math.max(0, (find(key)?.at ?? -Infinity) + delayMs(key) - now()),
    failed(key) {
      const failures = (find(key)?.failures ?? 0) + 1;
      // Deleted and set again, the keys stay in the order of their last failure: the oldest is the first.
      entries.delete(key);
      entries.set(key, { failures, at: now() });
      for (const [oldest, { at }] of entries) {
        if (entries.size <= mostKeys && now() - at < forgetMs) break;
        entries.delete(oldest);
      }
    },
    undo(key) {
      const entry = find(key);
      if (!entry || entry.failures <= 1) entries.delete(key);
      else entry.failures--;
    },
    clear: (key) => void entries.delete(key),
  };
}

/** The exponent is bounded, since its result would be infinite some day. */
function doubled(firstMs: number, times: number, mostMs: number): number {
  return Math.min(mostMs, firstMs * 2 ** Math.min(30, times));
}
