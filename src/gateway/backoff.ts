/** Who has failed in a row, by source and login name, and how long they wait for it. Bounded, and forgotten in time. */
import type { GatewayLimits } from './limits.ts';

export interface Backoff {
  /** How long this name may not be tried from there; 0: it may. */
  waitMs(source: string, loginName: string, now: number): number;
  failed(source: string, loginName: string, now: number): void;
  succeeded(source: string, loginName: string): void;
}

/** More than this are not remembered: the oldest go first. */
const maxEntries = 10_000;
const forgetMs = 10 * 60_000;

export function createBackoff(
  limits: Pick<GatewayLimits, 'backoffAfter' | 'backoffMs' | 'backoffMaxMs'>,
): Backoff {
  const entries = new Map<string, { failures: number; at: number }>();
  // A name as long as a packet would be a way to fill memory.
  const keyOf = (source: string, loginName: string) => `${source} ${loginName.slice(0, 80)}`;
  const find = (key: string, now: number) => {
    const entry = entries.get(key);
    return entry && now - entry.at < forgetMs ? entry : undefined;
  };
  return {
    waitMs(source, loginName, now) {
      const entry = find(keyOf(source, loginName), now);
      if (!entry || entry.failures < limits.backoffAfter) return 0;
      const doubled = limits.backoffMs * 2 ** Math.min(entry.failures - limits.backoffAfter, 30);
      return Math.max(0, entry.at + Math.min(doubled, limits.backoffMaxMs) - now);
    },
    failed(source, loginName, now) {
      const key = keyOf(source, loginName);
      const failures = (find(key, now)?.failures ?? 0) + 1;
      entries.delete(key);
      entries.set(key, { failures, at: now });
      const [oldest] = entries.keys();
      if (entries.size > maxEntries && oldest !== undefined) entries.delete(oldest);
    },
    succeeded(source, loginName) {
      entries.delete(keyOf(source, loginName));
    },
  };
}
