/**
 * How much goes on, added up in intervals: of five minutes for three days, of an hour for four hundred. That is at most
 * some ten thousand rows, however busy the installation is.
 */
import type { Reader, Store } from './index.ts';
import type { ActivityTable } from './session-tables.ts';
import { fromTime, toTime } from './time.ts';

/** What happened within an interval; seconds are those of all sides of clusters together. */
export type Activity = Omit<ActivityTable, 'step' | 'at'>;

/** Seconds of an interval, and days for which it is kept. */
const steps = [
  { step: 300, days: 3 },
  { step: 3_600, days: 400 },
] as const;
export type ActivityStep = (typeof steps)[number]['step'];

const dayMs = 86_400_000;

/** Adds to the intervals of the present. It does not wait for the disk. */
export async function addActivity(store: Store, more: Activity): Promise<void> {
  await store.write(
    async ({ db, now }) => {
      for (const { step, days } of steps) {
        const at = beginOf(now, step);
        await db
          .insertInto('activity')
          .values({ step, at, ...more })
          .onConflict((conflict) =>
            conflict.columns(['step', 'at']).doUpdateSet((eb) => ({
              logins: eb('activity.logins', '+', more.logins),
              refused: eb('activity.refused', '+', more.refused),
              watched: eb('activity.watched', '+', more.watched),
              behind: eb('activity.behind', '+', more.behind),
              failing: eb('activity.failing', '+', more.failing),
            })),
          )
          .execute();
        const oldest = toTime(now - days * dayMs);
        await db.deleteFrom('activity').where('step', '=', step).where('at', '<', oldest).execute();
      }
    },
    { flush: false },
  );
}

function beginOf(now: number, step: number): string {
  return toTime(Math.floor(now / 1_000 / step) * step * 1_000);
}

/** The intervals that begin between two times (RFC 3339), oldest first. One in which nobody served is left out. */
export async function listActivity(
  db: Reader,
  { step, from, to }: { step: ActivityStep; from: string; to: string },
): Promise<(Activity & { at: string })[]> {
  return db
    .selectFrom('activity')
    .select(['at', 'logins', 'refused', 'watched', 'behind', 'failing'])
    .where('step', '=', step)
    .where('at', '>=', beginOf(fromTime(from), step))
    .where('at', '<', to)
    .orderBy('at')
    .execute();
}
