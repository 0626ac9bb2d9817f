/** Exponential back-off by key, in bounded memory. Time is the caller's. */
export interface BackoffOptions {
  /** Failures that cost nothing: people mistype. */
  free: number;
  /** The first wait, doubled with every further failure. */
  firstMs: number;
  mostMs: number;
  /** How long after its last failure a key is forgotten; longer than the longest wait. */
  forgetMs: number;
}

export interface Backoff {
  /** How long the key has to wait, in milliseconds; 0 when it need not. */
  waitMs(key: string): number;
  failed(key: string): void;
  /** Takes one failure back, as if it had not been. */
  undo(key: string): void;
  clear(key: string): void;
}

const mostKeys = 10_000;

export function createBackoff(options: BackoffOptions, now: () => number): Backoff {
  const { free, firstMs, mostMs, forgetMs } = options;
  const entries = new Map<string, { failures: number; at: number }>();
  const find = (key: string) => {
    const entry = entries.get(key);
    return entry && now() - entry.at < forgetMs ? entry : undefined;
  };
  return {
    waitMs(key) {
      const entry = find(key);
      if (!entry || entry.failures < free) return 0;
      const wait = Math.min(mostMs, firstMs * 2 ** Math.min(30, entry.failures - free));
      return Math.max(0, entry.at + wait - now());
    },
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
