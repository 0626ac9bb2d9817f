/**
 * Limits on tries that several servers count together (`lib/limits.ts`). Of a key only its SHA-256 is stored: it can be an
 * address, or a secret. Times are those of the servers' clocks, which agree within seconds; one that was ahead makes nobody
 * wait for longer than the limit would.
 */
import { createHash } from 'node:crypto';
import { type Counted, countsOf, type Kept, keepNothing, type Limit, type Limits } from '../lib/limits.ts';
import type { Store, Tx } from './index.ts';
import type { LimitCountTable } from './sign-in-tables.ts';

/** Limits in the database. What a power cut takes back of them is worth no wait for the disk. */
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

/** Forgets counts that hold nobody back any more, at most so many; returns how many there were. */
export async function deleteExpiredCounts({ db, now }: Tx, most: number): Promise<number> {
  const rows = await db
    .selectFrom('limit_counts')
    .select(['name', 'key'])
    .where('expires_at', '<=', now)
    .limit(most)
    .execute();
  for (const { name, key } of rows)
    await db.deleteFrom('limit_counts').where('name', '=', name).where('key', '=', key).execute();
  return rows.length;
}

type Row = Pick<LimitCountTable, 'failures' | 'at' | 'expires_at'>;

async function openCount({ db, now }: Tx, { limit, key: given }: Counted) {
  const { name } = limit;
  const key = createHash('sha256').update(given).digest('base64url');
  const row = await db
    .selectFrom('limit_counts')
    .select(['failures', 'at', 'expires_at'])
    .where('name', '=', name)
    .where('key', '=', key)
    .executeTakeFirst();
  const kept = keepNothing();
  if (row) load(limit, kept, row, now);
  return {
    count: countsOf(limit, kept, () => now)(''),
    async save(): Promise<void> {
      const next = rowOf(limit, kept);
      if (next?.failures === row?.failures && next?.at === row?.at) return;
      if (!next) {
        await db.deleteFrom('limit_counts').where('name', '=', name).where('key', '=', key).execute();
        return;
      }
      await db
        .insertInto('limit_counts')
        .values({ name, key, ...next })
        .onConflict((conflict) => conflict.columns(['name', 'key']).doUpdateSet(next))
        .execute();
    },
  };
}

function load(limit: Limit, kept: Kept, { failures, at }: Row, now: number): void {
  if (limit.backOff) kept.failures.set('', { failures, at: Math.min(at, now) });
  // A key is one behind at most.
  else kept.fullAt.set('', Math.min(at, now + (limit.rate.burst + 1) * limit.rate.everyMs));
}

/** Undefined where there is nothing to keep. */
function rowOf({ backOff }: Limit, kept: Kept): Row | undefined {
  if (backOff) {
    const entry = kept.failures.get('');
    return entry && { ...entry, expires_at: entry.at + backOff.forgetMs };
  }
  const fullAt = kept.fullAt.get('');
  const at = fullAt && Math.ceil(fullAt);
  return at === undefined ? undefined : { failures: 0, at, expires_at: at };
}
