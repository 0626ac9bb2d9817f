/** The groups that an identity provider pushed over SCIM, by person, and for whom rules are still to be applied. */
import type { Reader, Tx } from '../engine/index.ts';

/** The names of a person's groups; undefined for one whom the identity provider did not push. */
export async function findPushedGroups(db: Reader, userId: string): Promise<string[] | undefined> {
  const rows = await db
    .selectFrom('scim_users as s')
    .leftJoin('scim_group_members as m', 'm.user_id', 's.user_id')
    .leftJoin('scim_groups as g', 'g.id', 'm.group_id')
    .select('g.display_name as name')
    .where('s.user_id', '=', userId)
    .execute();
  if (rows.length === 0) return undefined;
  return [...new Set(rows.flatMap(({ name }) => name ?? []))].sort();
}

const active = (db: Reader) =>
  db
    .selectFrom('scim_users as s')
    .innerJoin('users as u', 'u.id', 's.user_id')
    .where('u.lifecycle_state', '=', 'active');

/** How many people who may sign in were pushed. */
export async function countPushedPeople(db: Reader): Promise<number> {
  const row = await active(db)
    .select((eb) => eb.fn.countAll<number>().as('n'))
    .executeTakeFirst();
  return Number(row?.n ?? 0);
}

/** How many of those who may sign in are in each group, by its name. */
export async function countByPushedGroup(db: Reader): Promise<Map<string, number>> {
  const rows = await active(db)
    .innerJoin('scim_group_members as m', 'm.user_id', 's.user_id')
    .innerJoin('scim_groups as g', 'g.id', 'm.group_id')
    .select((eb) => ['g.display_name as name', eb.fn.count<number>('s.user_id').distinct().as('n')])
    .groupBy('g.display_name')
    .execute();
  return new Map(rows.map(({ name, n }) => [name, Number(n)]));
}

const pageSize = 100;

/** People to whom rules have not been applied since they or their groups changed. */
export async function* listBehindPeople(db: Reader): AsyncGenerator<{ userId: string }> {
  for (let after = ''; ; ) {
    const page = await db
      .selectFrom('scim_users')
      .select('user_id as userId')
      .where('is_behind', '=', 1)
      .where('user_id', '>', after)
      .orderBy('user_id')
      .limit(pageSize)
      .execute();
    yield* page;
    after = page.at(-1)?.userId ?? '';
    if (page.length < pageSize) return;
  }
}

const atOnce = 400;

/** Whether rules are still to be applied to these people. */
export async function markBehind(tx: Tx, userIds: readonly string[], isBehind: boolean): Promise<void> {
  for (let from = 0; from < userIds.length; from += atOnce)
    await tx.db
      .updateTable('scim_users')
      .set({ is_behind: isBehind ? 1 : 0 })
      .where('user_id', 'in', userIds.slice(from, from + atOnce))
      .execute();
}
