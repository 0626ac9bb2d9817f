/** The groups of people as the issuer sent them, and the clients whose tokens have them. */
import type { GroupClaim } from '../../domain/organizations/group-rules.ts';
import type { Reader, Tx } from '../engine/index.ts';
import { findRow, insertRow, saveRow, updateRows } from '../engine/rows.ts';
import { fromTime, toTime } from '../engine/time.ts';

/** The known groups of a person. Times in RFC 3339. */
export interface KnownGroups {
  /** Undefined: none were ever accepted. */
  groups: readonly string[] | undefined;
  /** The time of issue of the newest token that changed something here, in ms since 1970. */
  tokenAt: number;
  /** Why the groups in a later token were not accepted. */
  fault: string | undefined;
}

/** The groups that this claim of this issuer had last for a person. */
export async function findGroups(
  db: Reader,
  userId: string,
  { issuer, claim }: GroupClaim,
): Promise<KnownGroups | undefined> {
  const row = await findRow(db, 'person_groups', { user_id: userId, issuer, claim });
  return (
    row && {
      groups: row.groups === null ? undefined : (JSON.parse(row.groups) as string[]),
      tokenAt: fromTime(row.token_at),
      fault: row.fault ?? undefined,
    }
  );
}

/** Stores the groups in a token; `tokenAt`, in ms since 1970, is when it was issued. */
export async function saveGroups(
  tx: Tx,
  userId: string,
  claim: GroupClaim,
  { groups, tokenAt }: { groups: readonly string[]; tokenAt: number },
): Promise<void> {
  await saveRow(tx.db, 'person_groups', ['user_id'], {
    user_id: userId,
    ...claim,
    groups: JSON.stringify(groups),
    token_at: toTime(tokenAt),
    fault: null,
    fault_at: null,
  });
}

/** Stores why the groups in a token were not accepted; the groups of before stay. */
export async function saveGroupFault(
  tx: Tx,
  userId: string,
  claim: GroupClaim,
  { fault, tokenAt }: { fault: string; tokenAt: number },
): Promise<void> {
  const change = { token_at: toTime(tokenAt), fault, fault_at: toTime(tx.now) };
  if (await findGroups(tx.db, userId, claim)) {
    await updateRows(tx.db, 'person_groups', { user_id: userId }, change);
    return;
  }
  const row = { user_id: userId, ...claim, groups: null, ...change };
  await saveRow(tx.db, 'person_groups', ['user_id'], row);
}

/** Whether tokens of a client, or userinfo for them, ever had the claim. */
export async function hasSentGroups(
  db: Reader,
  { issuer, claim }: GroupClaim,
  client: string,
): Promise<boolean> {
  return (await findRow(db, 'group_clients', { issuer, claim, client })) !== undefined;
}

/** Whether people have signed in at the issuer, and no token had the claim. */
export async function isGroupClaimUnseen(db: Reader, { issuer, claim }: GroupClaim): Promise<boolean> {
  const identities = db.selectFrom('identities').select('user_id').where('issuer', '=', issuer).limit(1);
  const known = await identities.executeTakeFirst();
  return known !== undefined && !(await findRow(db, 'group_clients', { issuer, claim }));
}

/** Notes that tokens of a client, or userinfo for them, had the claim. */
export async function noteGroupClient(tx: Tx, claim: GroupClaim, client: string): Promise<void> {
  await insertRow(tx.db, 'group_clients', { ...claim, client });
}

/** Active people of whom groups are known, or to whom rules give something: a page by ID, beginning behind `after`. */
export async function listPeopleOfGroups(
  db: Reader,
  { after, limit }: { after: string; limit: number },
): Promise<{ userId: string; email: string }[]> {
  const rulesGiveSomething = db
    .selectFrom('holdings')
    .select('user_id')
    .where('groups', 'is not', null)
    .where('ended_at', 'is', null);
  return db
    .selectFrom('users as u')
    .select(['u.id as userId', 'u.primary_email as email'])
    .where('u.lifecycle_state', '=', 'active')
    .where('u.id', '>', after)
    .where((eb) =>
      eb.or([
        eb('u.id', 'in', eb.selectFrom('person_groups').select('user_id')),
        eb('u.id', 'in', rulesGiveSomething),
      ]),
    )
    .orderBy('u.id')
    .limit(limit)
    .execute();
}

/** The number of active people in each group. */
export async function countByGroup(db: Reader, { issuer, claim }: GroupClaim): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (let after = ''; ; ) {
    const page = await db
      .selectFrom('person_groups as g')
      .innerJoin('users as u', 'u.id', 'g.user_id')
      .select(['g.user_id', 'g.groups'])
      .where('g.issuer', '=', issuer)
      .where('g.claim', '=', claim)
      .where('g.groups', 'is not', null)
      .where('g.user_id', '>', after)
      .where('u.lifecycle_state', '=', 'active')
      .orderBy('g.user_id')
      .limit(pageSize)
      .execute();
    for (const { groups } of page)
      for (const group of JSON.parse(groups ?? '[]') as string[])
        counts.set(group, (counts.get(group) ?? 0) + 1);
    after = page.at(-1)?.user_id ?? '';
    if (page.length < pageSize) return counts;
  }
}

const pageSize = 100;

/** The numbers of active people whose groups are known, and are not. */
export async function countKnownGroups(
  db: Reader,
  { issuer, claim }: GroupClaim,
): Promise<{ known: number; unknown: number }> {
  const row = await db
    .selectFrom('users as u')
    .leftJoin('person_groups as g', (join) =>
      join.onRef('g.user_id', '=', 'u.id').on('g.issuer', '=', issuer).on('g.claim', '=', claim),
    )
    .select((eb) => [eb.fn.countAll<number>().as('people'), eb.fn.count<number>('g.groups').as('known')])
    .where('u.kind', '=', 'person')
    .where('u.lifecycle_state', '=', 'active')
    .executeTakeFirstOrThrow();
  const known = Number(row.known);
  return { known, unknown: Number(row.people) - known };
}

/** The number of people whose groups were not accepted lately, since when, and the newest case's reason. */
export async function findGroupFaults(
  db: Reader,
  { issuer, claim }: GroupClaim,
): Promise<{ people: number; since: string; fault: string; email: string } | undefined> {
  const rows = await db
    .selectFrom('person_groups as g')
    .innerJoin('users as u', 'u.id', 'g.user_id')
    .select(['g.fault', 'g.fault_at', 'u.primary_email as email'])
    .where('g.issuer', '=', issuer)
    .where('g.claim', '=', claim)
    .where('g.fault', 'is not', null)
    .where('u.lifecycle_state', '=', 'active')
    .orderBy('g.fault_at')
    .execute();
  const [first, last] = [rows[0], rows.at(-1)];
  if (!first || !last) return undefined;
  return { people: rows.length, since: first.fault_at ?? '', fault: last.fault ?? '', email: last.email };
}
