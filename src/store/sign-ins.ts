/** When people last signed in, and whose access and keys are of which age. */
import { lapseOf } from '../domain/access-lapse.ts';
import type { Reader, Store } from './index.ts';
import { fromTime, toTime } from './time.ts';

/** A sign-in is noted at most this often: its minute is of no interest where limits are in days. */
const noteEveryMs = 3_600_000;

/**
 * Notes that a person signed in at this moment; what had lapsed comes back. An account that nobody has used counts from when it was
 * made, and its first sign-in is noted whenever it is.
 */
export async function recordSignIn(store: Store, userId: string, at: number): Promise<void> {
  const row = await store.read
    .selectFrom('users')
    .select(['last_sign_in_at', 'created_at'])
    .where('id', '=', userId)
    .executeTakeFirst();
  if (row === undefined) return;
  const isFirst = row.last_sign_in_at === null;
  const before = fromTime(row.last_sign_in_at ?? row.created_at);
  const { lapses } = store;
  const days = lapses.policy.maxDaysWithoutSignIn;
  const hasLapsed = lapseOf(before, days, lapses.now())?.state === 'lapsed';
  if (!isFirst && (at <= before || (at - before < noteEveryMs && !hasLapsed))) return;
  await store.write(
    async (tx) => {
      await tx.db
        .updateTable('users')
        // Who signed in elsewhere before their account was made has used it from then on.
        .set({ last_sign_in_at: toTime(Math.max(at, before)) })
        .where('id', '=', userId)
        .execute();
      if (hasLapsed) tx.changed({ userId });
    },
    { flush: false },
  );
}

/** Those whose access, or whose keys, began after one time and not after another; in order, some of them, and how many. */
export interface Concerned {
  people: number;
  /** The first of them. */
  userIds: string[];
}

const mostNamed = 20;

/** Active people who last signed in then. */
export async function findSignedInBetween(db: Reader, after: string, until: string): Promise<Concerned> {
  const rows = await db
    .selectFrom('users')
    .select('id')
    .where('kind', '=', 'person')
    .where('lifecycle_state', '=', 'active')
    .where((eb) => eb.fn.coalesce('last_sign_in_at', 'created_at'), '>', after)
    .where((eb) => eb.fn.coalesce('last_sign_in_at', 'created_at'), '<=', until)
    .orderBy('id')
    .execute();
  return concerned(rows.map(({ id }) => id));
}

/** Active people with an active key that was registered then. */
export async function findRegisteredBetween(db: Reader, after: string, until: string): Promise<Concerned> {
  const rows = await db
    .selectFrom('ssh_keys as k')
    .innerJoin('users as u', 'u.id', 'k.user_id')
    .select('u.id')
    .distinct()
    .where('u.lifecycle_state', '=', 'active')
    .where('k.lifecycle_state', '=', 'active')
    .where('k.created_at', '>', after)
    .where('k.created_at', '<=', until)
    .orderBy('u.id')
    .execute();
  return concerned(rows.map(({ id }) => id));
}

function concerned(ids: readonly string[]): Concerned {
  return { people: ids.length, userIds: ids.slice(0, mostNamed) };
}
