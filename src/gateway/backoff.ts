/** Who has failed in a row, by source, and how long its next failure takes. Bounded, and forgotten in time. */
import type { GatewayLimits } from './limits.ts';

export interface Backoff {
  /** How long the answer to a failure is kept back; 0: not at all. */
  delayMs(source: string, now: number): number;
  failed(source: string, now: number): void;
}

/** More than this are not remembered: the oldest go first. */
const maxEntries = 10_000;
const forgetMs = 10 * 60_000;
/** Whoever has five keys offers four wrong ones first: with all their failures the right one still comes in time. */
const longestMs = 2_000;

export function createBackoff(
  limits: Pick<GatewayLimits, 'backoffAfter' | 'backoffMs' | 'backoffMaxMs'>,
): Backoff {
  const entries = new Map<string, { failures: number; at: number }>();
  const failuresOf = (source: string, now: number) => {
    const entry = entries.get(source);
    return entry && now - entry.at < forgetMs ? entry.failures : 0;
  };
  return {
    delayMs(source, now) {
      const failures = failuresOf(source, now);
      if (failures < limits.backoffAfter) return 0;
      const doubled = limits.backoffMs * 2 ** Math.min(failures - limits.backoffAfter, 30);
      return Math.min(doubled, limits.backoffMaxMs, longestMs);
    },
    failed(source, now) {
      const failures = failuresOf(source, now) + 1;
      entries.delete(source);
      entries.set(source, { failures, at: now });
      const [oldest] = entries.keys();
      if (entries.size > maxEntries && oldest !== undefined) entries.delete(oldest);
    },
  };
}
