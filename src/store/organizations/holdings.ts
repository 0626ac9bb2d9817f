/**
 * The ledger of what members hold: each row is a role, permission, login name or membership with its source, start and
 * end. A member has what people gave by hand and what rules gave, together (`combined`); each side ends only what it
 * gave. Rows that have not ended are the present; a past time has the rows that had begun and not ended then.
 */
import type { GrantedPermission, Role } from '../../domain/access/permission.ts';
import { combined, type Gift, type HeldRole } from '../../domain/organizations/group-rules.ts';
import type { Reader, Tx } from '../engine/index.ts';
import { deleteRows, findRow, insertRow, listRows, updateRows } from '../engine/rows.ts';
import { fromTime, toTime } from '../engine/time.ts';
import type { Schema } from '../generated/schema.ts';

export interface MemberId {
  organizationId: string;
  userId: string;
}

/** The parts of a member's role and permissions, by who gave them: people by hand, and rules. */
export interface Shares {
  /** Undefined: people gave nothing. */
  byHand: HeldRole | undefined;
  /** Undefined: rules gave nothing. */
  byRules: Gift | undefined;
  /** Since when rules keep the last owner, to whom they give that role no longer; RFC 3339. */
  keptSince: string | undefined;
}

type HoldingRow = Schema['holdings'];

function sharesOf(rows: readonly HoldingRow[], at: string): Shares {
  const isLive = ({ expires_at: end }: HoldingRow) => end === null || end > at;
  const [byHand = [], byRules = []] = [true, false].map((isByHand) =>
    rows.filter((row) => (row.source === 'hand') === isByHand && isLive(row)),
  );
  const rule = byRules.find(({ kind }) => kind === 'role');
  const hand = byHand.find(({ kind }) => kind === 'role');
  return {
    byHand: hand && { role: hand.what as Role, permissions: permissionsIn(byHand) },
    byRules: rule && {
      role: rule.what as Role,
      permissions: permissionsIn(byRules).map(({ key }) => key),
      groups: JSON.parse(rule.groups ?? '[]') as string[],
    },
    keptSince: rule?.source === 'kept' ? rule.since : undefined,
  };
}

function permissionsIn(rows: readonly HoldingRow[]): GrantedPermission[] {
  return rows
    .filter(({ kind }) => kind === 'permission')
    .map(({ what: key, expires_at: expiresAt }) => ({ key, expiresAt }))
    .sort((one, other) => (one.key < other.key ? -1 : 1));
}

export async function findShares(
  db: Reader,
  { organizationId, userId }: MemberId,
  now: number,
): Promise<Shares> {
  const open = { org_id: organizationId, user_id: userId, ended_at: null };
  return sharesOf(await listRows(db, 'holdings', open), toTime(now));
}

/** A person's memberships in which rules have a part, by the organization's slug. What rules give has no end. */
export async function listSharesOfRules(
  db: Reader,
  userId: string,
): Promise<(Shares & { organizationId: string; slug: string })[]> {
  const rows = await db
    .selectFrom('holdings as r')
    .innerJoin('organizations as o', 'o.id', 'r.org_id')
    .select(['o.id as organizationId', 'o.slug'])
    .where('r.user_id', '=', userId)
    .where('r.groups', 'is not', null)
    .where('r.ended_at', 'is', null)
    .orderBy('o.slug')
    .execute();
  return Promise.all(rows.map(async (one) => ({ ...one, ...(await findShares(db, { ...one, userId }, 0)) })));
}

/** Last owners whom rules would take away, and cannot: the organization, its owner, and since when. */
export async function listKeptOwners(
  db: Reader,
): Promise<{ slug: string; email: string; groups: string[]; since: string }[]> {
  const rows = await db
    .selectFrom('holdings as r')
    .innerJoin('organizations as o', 'o.id', 'r.org_id')
    .innerJoin('users as u', 'u.id', 'r.user_id')
    .select(['o.slug', 'u.primary_email as email', 'r.groups', 'r.since'])
    .where('r.source', '=', 'kept')
    .where('r.groups', 'is not', null)
    .where('r.ended_at', 'is', null)
    .orderBy('o.slug')
    .execute();
  return rows.map((row) => ({ ...row, groups: JSON.parse(row.groups ?? '[]') as string[] }));
}

/** A member at a point in time. Times in RFC 3339. */
export interface MemberAt extends Shares {
  userId: string;
  /** The present address. */
  email: string;
  role: Role;
  username: string | undefined;
  memberSince: string;
  /** The permissions, without those that had ended. */
  granted: readonly GrantedPermission[];
}

/** The members of an organization at a time (RFC 3339), which is not before the start of the history. */
export async function listMembersAt(db: Reader, organizationId: string, at: string): Promise<MemberAt[]> {
  const rows = await db
    .selectFrom('holdings as h')
    .innerJoin('users as u', 'u.id', 'h.user_id')
    .selectAll('h')
    .select('u.primary_email as email')
    .where('h.org_id', '=', organizationId)
    .where('h.since', '<=', at)
    .where((eb) => eb.or([eb('h.ended_at', 'is', null), eb('h.ended_at', '>', at)]))
    .orderBy('h.user_id')
    .execute();
  return [...Map.groupBy(rows, (row) => row.user_id)].flatMap(([userId, own]) => {
    const shares = sharesOf(own, at);
    const held = combined(shares.byHand, shares.byRules);
    if (!held) return [];
    const find = (kind: HoldingRow['kind']) => own.find((row) => row.kind === kind);
    const { role, permissions: granted } = held;
    const [memberSince = '', username] = [find('member')?.since, find('username')?.what];
    return { ...shares, userId, email: own[0]?.email ?? '', role, username, memberSince, granted };
  });
}

export type Holding = Pick<HoldingRow, 'kind' | 'what' | 'source'> &
  Partial<Pick<HoldingRow, 'groups' | 'expires_at'>>;

/** The rows for what a side gave. */
export function holdingsOf(held: HeldRole | undefined, source: 'hand'): Holding[];
export function holdingsOf(gift: Gift | undefined, source: 'rule' | 'kept'): Holding[];
export function holdingsOf(given: HeldRole | Gift | undefined, source: HoldingRow['source']): Holding[] {
  if (!given) return [];
  const groups = 'groups' in given ? JSON.stringify(given.groups) : null;
  const permissions = given.permissions.map((one): Holding => {
    const { key, expiresAt } = typeof one === 'string' ? { key: one, expiresAt: null } : one;
    return {
      kind: 'permission',
      what: key,
      source: source === 'hand' ? 'hand' : 'rule',
      expires_at: expiresAt,
    };
  });
  return [{ kind: 'role', what: given.role, source, groups }, ...permissions];
}

/**
 * Replaces the open rows of a member that match `isPart` with `wanted`: equal rows stay, with their time; all others
 * end now.
 */
export async function updateHoldings(
  tx: Tx,
  { organizationId, userId }: MemberId,
  isPart: (row: Holding) => boolean,
  wanted: readonly Holding[],
): Promise<void> {
  const who = { org_id: organizationId, user_id: userId };
  const rows = await listRows(tx.db, 'holdings', who);
  const open = rows.filter((row) => row.ended_at === null && isPart(row));
  const gone = open.filter((row) => !wanted.some((one) => isSame(one, row)));
  const added = wanted.filter((one) => !open.some((row) => isSame(one, row)));
  // Now, or the time of the person's last change where the clock was set back.
  const times = [toTime(tx.now), ...rows.flatMap(({ since, ended_at: ended }) => [since, ended ?? ''])];
  const at = times.reduce((one, other) => (one > other ? one : other));
  for (const { kind, what, source, since } of gone) {
    const row = { ...who, kind, what, source, since };
    // Several changes at the same time count as one.
    if (since === at) await deleteRows(tx.db, 'holdings', row);
    else await updateRows(tx.db, 'holdings', row, { ended_at: at });
  }
  for (const one of added)
    await insertRow(tx.db, 'holdings', {
      ...who,
      ...{ groups: null, expires_at: null, ...one },
      ...{ since: at, ended_at: null },
    });
}

function isSame(one: Holding, other: Holding): boolean {
  return (['kind', 'what', 'source', 'groups', 'expires_at'] as const).every(
    (column) => (one[column] ?? null) === (other[column] ?? null),
  );
}

/** The counter with the start of the history, in ms since 1970. */
const start = 'member history since';

/** The start of the history, which is complete since then; RFC 3339. */
export async function findHistoryStart(db: Reader): Promise<string> {
  const row = await findRow(db, 'counters', { name: start });
  return row ? toTime(row.value) : '9999';
}

/** Deletes rows that ended before a time (RFC 3339); the history starts there from now on. */
export async function deleteOldHistory(tx: Tx, before: string): Promise<void> {
  if ((await findHistoryStart(tx.db)) >= before) return;
  await tx.db.deleteFrom('holdings').where('ended_at', '<=', before).execute();
  await updateRows(tx.db, 'counters', { name: start }, { value: fromTime(before) });
}
