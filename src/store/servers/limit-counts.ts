/**
 * Limits on attempts that several servers count together (`lib/limits.ts`). Of a key only its SHA-256 is stored: it can be an
 * address, or a secret. Times are those of the servers' clocks, which agree within seconds; a clock that was ahead makes no
 * client wait for longer than the limit would.
 */
import { createHash } from 'node:crypto';
import { type Counted, countOf, createLimiter, type Kept, type Limits } from '../../lib/limits.ts';
import type { Store, Tx } from '../engine/index.ts';
import { deleteRows, deleteUpTo, findRow, saveRow } from '../engine/rows.ts';

/** Limits in the database. A power cut may take back the last counts, so no write waits for the disk. */
export function createSharedLimits(store: Pick<Store, 'write'>): Limits {
  return {
    change(counted, decide) {
      return store.write(
        async (tx) => {
          const all = Object.entries<Counted>(counted);
          const opened: [string, Awaited<ReturnType<typeof openCount>>][] = [];
          for (const [name, one] of all) opened.push([name, await openCount(tx, one)]);
          const counts = opened.map(([name, { count }]) => [name, count]);
          const result = decide(Object.fromEntries(counts));
          for (const [, { save }] of opened) await save();
          return result;
        },
        { flush: false },
      );
    },
  };
}

/** Deletes expired counts, at most so many; returns how many. */
export function deleteExpiredCounts({ db, now }: Tx, most: number): Promise<number> {
  return deleteUpTo(db, 'limit_counts', ['name', 'key'], { column: 'expires_at', end: now, most });
}

async function openCount({ db, now }: Tx, { limit, key: given }: Counted) {
  const { name, rate, backOff } = limit;
  const key = createHash('sha256').update(given).digest('base64url');
  const row = await findRow(db, 'limit_counts', { name, key });
  // A key of a rate is one behind at most.
  const latest = now + (rate ? (rate.burst + 1) * rate.everyMs : 0);
  const kept = new Map<string, Kept>(row ? [['', { ...row, at: Math.min(row.at, latest) }]] : []);
  return {
    count: countOf(
      createLimiter(limit, () => now, kept),
      '',
    ),
    async save(): Promise<void> {
      const { failures, at: exactly } = kept.get('') ?? {};
      const at = exactly && Math.ceil(exactly);
      if (failures === row?.failures && at === row?.at) return;
      if (failures === undefined || at === undefined) {
        await deleteRows(db, 'limit_counts', { name, key });
        return;
      }
      const next = { name, key, failures, at, expires_at: at + (backOff?.forgetMs ?? 0) };
      await saveRow(db, 'limit_counts', ['name', 'key'], next);
    },
  };
}
