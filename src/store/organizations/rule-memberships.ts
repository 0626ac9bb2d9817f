/**
 * What rules give members, and what people gave them by hand. Both are kept here for a membership that rules have a part in;
 * `memberships` and `member_permissions` have what is in force, which all other code reads. A membership without a row here is by
 * hand alone.
 */
import { combined, type Gift, type Held } from '../../domain/organizations/group-rules.ts';
import type { Reader, Tx } from '../engine/index.ts';
import { deleteRows, findRow, saveRow } from '../engine/rows.ts';
import { toTime } from '../engine/time.ts';
import {
  createMembership,
  isLastOwner,
  type MemberId,
  removeMembership,
  updateMemberPermissions,
  updateMemberRole,
} from './membership-changes.ts';
import { findMembership } from './memberships.ts';

export interface RuleMembership {
  byRules: Gift;
  /** Undefined: people gave nothing. */
  byHand: Held | undefined;
  /** Since when rules keep the last owner whom they would take away; RFC 3339. */
  keptSince: string | undefined;
}

export async function findRuleMembership(
  db: Reader,
  { organizationId, userId }: MemberId,
): Promise<RuleMembership | undefined> {
  const row = await findRow(db, 'rule_memberships', { org_id: organizationId, user_id: userId });
  return row && ruleMembershipOf(row);
}

/** Where rules have a part in what a person is: by the slug of the organization. */
export async function listRuleMemberships(
  db: Reader,
  userId: string,
): Promise<(RuleMembership & { organizationId: string; slug: string })[]> {
  const rows = await db
    .selectFrom('rule_memberships as r')
    .innerJoin('organizations as o', 'o.id', 'r.org_id')
    .selectAll('r')
    .select('o.slug')
    .where('r.user_id', '=', userId)
    .orderBy('o.slug')
    .execute();
  return rows.map((row) => ({ ...ruleMembershipOf(row), organizationId: row.org_id, slug: row.slug }));
}

/** Members of an organization that rules have a part in, by their IDs. */
export async function listRuleMembers(
  db: Reader,
  organizationId: string,
): Promise<Map<string, RuleMembership>> {
  const rows = await db
    .selectFrom('rule_memberships')
    .selectAll()
    .where('org_id', '=', organizationId)
    .execute();
  return new Map(rows.map((row) => [row.user_id, ruleMembershipOf(row)]));
}

/** Last owners whom rules would take away, and cannot: whose organization it is, and since when. */
export async function listKeptOwners(
  db: Reader,
): Promise<{ slug: string; email: string; groups: string[]; since: string }[]> {
  const rows = await db
    .selectFrom('rule_memberships as r')
    .innerJoin('organizations as o', 'o.id', 'r.org_id')
    .innerJoin('users as u', 'u.id', 'r.user_id')
    .select(['o.slug', 'u.primary_email as email', 'r.groups', 'r.kept_since'])
    .where('r.kept_since', 'is not', null)
    .orderBy('o.slug')
    .execute();
  return rows.map(({ groups, kept_since: since, ...row }) => ({
    ...row,
    groups: JSON.parse(groups) as string[],
    since: since ?? '',
  }));
}

interface RuleRow {
  role: Gift['role'];
  permissions: string;
  groups: string;
  by_hand: string | null;
  kept_since: string | null;
}

function ruleMembershipOf(row: RuleRow): RuleMembership {
  return {
    byRules: {
      role: row.role,
      permissions: JSON.parse(row.permissions) as string[],
      groups: JSON.parse(row.groups) as string[],
    },
    byHand: row.by_hand === null ? undefined : (JSON.parse(row.by_hand) as Held),
    keptSince: row.kept_since ?? undefined,
  };
}

/** What a member has, both ways together; undefined for one who is none. */
export async function findHeld(tx: Tx, { organizationId, userId }: MemberId): Promise<Held | undefined> {
  const held = await findMembership(tx.db, organizationId, userId, tx.now);
  return held && { role: held.role, permissions: held.role === 'member' ? held.granted : [] };
}

/**
 * Makes a person's membership what is given by hand and by rules, and none where neither is. A last owner whom that would take
 * away stays one, and stays marked as of rules. Throws `invalid_state` where the organization takes no members.
 */
export async function settleMembership(
  tx: Tx,
  member: MemberId & { email: string; username?: string | undefined },
  { byHand: given, byRules: gift }: { byHand: Held | undefined; byRules: Gift | undefined },
  known: RuleMembership | undefined,
): Promise<{ before: Held | undefined; after: Held | undefined; isKept: boolean }> {
  const before = await findHeld(tx, member);
  const byHand = given && withoutEnded(given, tx.now);
  const isKept =
    before?.role === 'owner' &&
    combined(byHand, gift)?.role !== 'owner' &&
    (await isLastOwner(tx.db, member));
  const byRules = isKept ? keptOwner(gift, known) : gift;
  const after = combined(byHand, byRules);
  await makeSo(tx, member, before, after);
  const keptSince = isKept ? (known?.keptSince ?? toTime(tx.now)) : undefined;
  await saveMarks(tx, member, { byRules, byHand, keptSince });
  return { before, after, isKept };
}

function withoutEnded({ role, permissions }: Held, now: number): Held {
  const at = toTime(now);
  return { role, permissions: permissions.filter(({ expiresAt }) => expiresAt === null || expiresAt > at) };
}

/** What rules give an owner who stays because there is no other: what they gave before. */
function keptOwner(gift: Gift | undefined, known: RuleMembership | undefined): Gift {
  const groups = known?.byRules.groups ?? gift?.groups ?? [];
  return { role: 'owner', permissions: gift?.permissions ?? [], groups };
}

async function makeSo(
  tx: Tx,
  member: MemberId & { email: string; username?: string | undefined },
  before: Held | undefined,
  after: Held | undefined,
): Promise<void> {
  if (!after) {
    if (before) await removeMembership(tx, member);
    return;
  }
  if (!before) return createMembership(tx, { ...member, ...after });
  await updateMemberRole(tx, { ...member, role: after.role });
  if (after.role === 'member')
    await updateMemberPermissions(tx, { ...member, permissions: after.permissions });
}

async function saveMarks(
  tx: Tx,
  { organizationId, userId }: MemberId,
  {
    byRules,
    byHand,
    keptSince,
  }: { byRules: Gift | undefined; byHand: Held | undefined; keptSince: string | undefined },
): Promise<void> {
  const key = { org_id: organizationId, user_id: userId };
  if (!byRules) return deleteRows(tx.db, 'rule_memberships', key);
  await saveRow(tx.db, 'rule_memberships', ['org_id', 'user_id'], {
    ...key,
    role: byRules.role,
    permissions: JSON.stringify(byRules.permissions),
    groups: JSON.stringify(byRules.groups),
    by_hand: byHand ? JSON.stringify({ role: byHand.role, permissions: byHand.permissions }) : null,
    kept_since: keptSince ?? null,
  });
}
