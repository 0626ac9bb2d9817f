/**
 * The uid and gid of people: allocated by the installation, or given by an operator for accounts that hosts have already.
 * A number that was on a cluster's list stays its person's for good.
 */
import { isInService } from '../../domain/clusters/cluster.ts';
import { invalidState } from '../../domain/error.ts';
import { usesDirectory } from '../../domain/slurm/settings.ts';
import { listOrganizationClusters } from '../clusters/clusters.ts';
import type { Reader, Store, Tx } from '../engine/index.ts';
import { findRow, listRows, updateRows } from '../engine/rows.ts';
import { toTime } from '../engine/time.ts';

/** How far ahead of the counter taken numbers are skipped: enough for all who come before the next start. */
const uidsAhead = 1000;

/** Moves the uid counter up to `base`, and past the `taken` numbers that people would soon get. Never back. */
export async function raiseNextUid(store: Store, base: number, taken: readonly number[]): Promise<void> {
  await store.write(async (tx) => {
    const value = await nextUid(tx);
    let next = Math.max(value, base);
    for (const id of taken.toSorted((a, b) => a - b)) if (id >= next && id < next + uidsAhead) next = id + 1;
    if (next === value) return;
    await updateRows(tx.db, 'counters', { name: 'uid' }, { value: next });
  });
}

async function nextUid({ db }: Tx): Promise<number> {
  const counter = db.selectFrom('counters').select('value').where('name', '=', 'uid');
  return (await counter.executeTakeFirstOrThrow()).value;
}

/**
 * Freezes the names on an organization's list, and gives each one without a number (uid and gid alike) the next of a counter that never
 * goes back; none where a directory gives them (`keepNumbers`).
 */
export async function allocateNumbers(tx: Tx, organizationId: string): Promise<void> {
  if (await hasDirectory(tx.db, organizationId)) return freezeNames(tx, organizationId);
  const { all, without } = await reservedOnList(tx.db, organizationId)
    .select((eb) => [
      eb.fn.countAll<number>().as('all'),
      eb.fn.countAll<number>().filterWhere('n.given', '=', 0).as('without'),
    ])
    .executeTakeFirstOrThrow();
  if (Number(all) === 0) return;
  const value = await nextUid(tx);
  const first = await firstFree(tx.db, value, Number(without));
  await tx.db
    .updateTable('organization_usernames')
    .from(
      reservedOnList(tx.db, organizationId)
        .select((eb) => [
          'n.id as name_id',
          eb.fn
            .agg<number>('row_number')
            .over((over) => over.partitionBy('n.given').orderBy('n.id'))
            .as('place'),
        ])
        .as('next'),
    )
    .whereRef('organization_usernames.id', '=', 'next.name_id')
    .set((eb) => ({
      uid: eb.fn.coalesce('organization_usernames.uid', eb('next.place', '+', first - 1)),
      lifecycle_state: 'frozen' as const,
      frozen_at: toTime(tx.now),
    }))
    .execute();
  if (Number(without) === 0) return;
  await updateRows(tx.db, 'counters', { name: 'uid' }, { value: first + Number(without) });
}

async function hasDirectory(db: Reader, organizationId: string): Promise<boolean> {
  const clusters = await listOrganizationClusters(db, organizationId);
  return clusters.some((cluster) => isInService(cluster) && usesDirectory(cluster.driver.slurm));
}

async function freezeNames({ db, now }: Tx, organizationId: string): Promise<void> {
  await db
    .updateTable('organization_usernames')
    .set({ lifecycle_state: 'frozen', frozen_at: toTime(now) })
    .where('lifecycle_state', '=', 'reserved')
    .where('id', 'in', () => reservedOnList(db, organizationId).select('n.id'))
    .execute();
}

function reservedOnList(db: Reader, organizationId: string) {
  return db
    .selectFrom('organization_usernames as n')
    .innerJoin('access_list_users as u', (join) =>
      join.onRef('u.org_id', '=', 'n.org_id').onRef('u.user_id', '=', 'n.user_id'),
    )
    .where('n.org_id', '=', organizationId)
    .where((are) => are.or([are('n.lifecycle_state', '=', 'reserved'), are('n.uid', 'is', null)]))
    .where('u.until_version', 'is', null);
}

/** The next number of the counter, for a group. */
export async function allocateGid(tx: Tx): Promise<number> {
  const gid = await firstFree(tx.db, await nextUid(tx), 1);
  await updateRows(tx.db, 'counters', { name: 'uid' }, { value: gid + 1 });
  return gid;
}

/** The first of `count` numbers in a row, from `from` on, that no person or team of any organization has as uid or gid. */
async function firstFree(db: Reader, from: number, count: number): Promise<number> {
  const taken = db
    .selectFrom('organization_usernames')
    .select('uid as number')
    .unionAll(db.selectFrom('organization_usernames').select('gid as number'))
    .unionAll(db.selectFrom('teams').select('gid as number'));
  const { last } = await db
    .selectFrom(taken.as('taken'))
    .select((eb) => eb.fn.max('number').as('last'))
    .where('number', '>=', from)
    .where('number', '<', from + count)
    .executeTakeFirstOrThrow();
  return last === null ? from : firstFree(db, last + 1, count);
}

/** The numbers that an operator gave members of an organization, by user ID. */
export async function listGivenNumbers(
  db: Reader,
  organizationId: string,
): Promise<Map<string, { uid: number; gid: number }>> {
  const rows = await listRows(db, 'organization_usernames', { org_id: organizationId, given: 1 });
  return new Map(
    rows.flatMap(({ user_id, uid, gid }) => (uid === null ? [] : [[user_id, { uid, gid: gid ?? uid }]])),
  );
}

/**
 * Sets the numbers of a member, as an operator gives them. Throws `invalid_state` where the person had others on a cluster, and where a
 * number is another person's or a team's: who leaves a team must not have its group as their own.
 */
export async function giveNumbers(
  { db }: Tx,
  member: { organizationId: string; userId: string; uid: number; gid?: number | undefined },
): Promise<void> {
  const { organizationId, userId, uid } = member;
  const gid = member.gid === uid ? null : (member.gid ?? null);
  const of = { org_id: organizationId, user_id: userId };
  const own = await findRow(db, 'organization_usernames', of);
  if (!own) throw new Error('a member has a username');
  const { username } = own;
  if (own.lifecycle_state === 'frozen' && (own.uid !== uid || own.gid !== gid))
    throw invalidState(
      own.uid === null
        ? `${username} has the numbers of the directory of a cluster, which has yet to say them.`
        : `${username} has been on a cluster with the uid ${own.uid} and the gid ${own.gid ?? own.uid}, which cannot be changed any more.`,
    );
  const holders = await listRows(db, 'organization_usernames', { uid });
  const holder = holders.find(
    (one) => one.id !== own.id && (one.org_id === organizationId || one.given === 0),
  );
  if (holder) throw invalidState(`The uid ${uid} of ${username} is, or was, that of ${holder.username}.`);
  const team = await findRow(db, 'teams', { org_id: organizationId, gid: gid ?? uid });
  if (team)
    throw invalidState(`The gid ${gid ?? uid} of ${username} is, or was, that of the team ${team.name}.`);
  await updateRows(db, 'organization_usernames', of, { uid, gid, given: 1 });
}
