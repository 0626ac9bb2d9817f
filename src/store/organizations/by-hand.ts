/**
 * What people change of memberships. Where rules have a part in one, only what was given by hand changes. A form repeats what it
 * read, so that its sets give nothing by hand that rules give already; it is refused where it would take only that. A file (`isFile`)
 * says what is given by hand, whatever rules give.
 */
import { type GrantedPermission, isSameSet, type Role } from '../../domain/access/permission.ts';
import { invalidState } from '../../domain/error.ts';
import { type Held, isLowerRole, reasonOfGroups } from '../../domain/organizations/group-rules.ts';
import type { Reader, Tx } from '../engine/index.ts';
import { findRow, updateRows } from '../engine/rows.ts';
import { toTime } from '../engine/time.ts';
import {
  createMembership,
  type MemberId,
  removeMembership,
  updateMemberPermissions,
  updateMemberRole,
  updateUsername,
} from './membership-changes.ts';
import { listGrantedPermissions } from './memberships.ts';
import { findRuleMembership, type RuleMembership, settleMembership } from './rule-memberships.ts';

interface Source {
  isFile?: boolean;
}

/** As `createMembership`; one whom rules alone made a member is one by hand as well from now on. */
export async function addByHand(tx: Tx, member: Parameters<typeof createMembership>[1]): Promise<void> {
  const known = await findRuleMembership(tx.db, member);
  if (!known || known.byHand) return createMembership(tx, member);
  const { role, permissions = [], username } = member;
  await change(tx, member, known, { role, permissions: role === 'member' ? permissions : [] });
  await restartReview(tx, member, permissions);
  if (username !== undefined) await updateUsername(tx, { ...member, username });
}

/**
 * As `updateMemberPermissions`. Throws `invalid_state` where rules alone give what the set leaves out. Where it leaves nothing with the
 * end that the last review gave, the months to the next one count from now.
 */
export async function permitByHand(
  tx: Tx,
  member: MemberId & { permissions: readonly GrantedPermission[] },
  { isFile = false }: Source = {},
): Promise<boolean> {
  const isChanged = await permit(tx, member, isFile);
  if (isChanged) await restartReview(tx, member, member.permissions);
  return isChanged;
}

async function restartReview(
  { db, now }: Tx,
  { organizationId, userId }: MemberId,
  permissions: readonly GrantedPermission[],
): Promise<void> {
  const who = { org_id: organizationId, user_id: userId };
  const { review_from: from } = (await findRow(db, 'memberships', who)) ?? {};
  if (permissions.some(({ expiresAt }) => expiresAt === from)) return;
  await updateRows(db, 'memberships', who, { review_from: toTime(now) });
}

async function permit(
  tx: Tx,
  member: MemberId & { permissions: readonly GrantedPermission[] },
  isFile: boolean,
): Promise<boolean> {
  const known = await findRuleMembership(tx.db, member);
  if (!known) return updateMemberPermissions(tx, member);
  const before = known.byHand?.permissions ?? [];
  const byHand = new Set(before.map(({ key }) => key));
  const onlyByRules = known.byRules.permissions.filter((key) => !byHand.has(key));
  const named = new Set(member.permissions.map(({ key }) => key));
  const missing = onlyByRules.filter((key) => !named.has(key));
  if (!isFile && missing.length > 0) throw givenByRules(missing.join(', '), known);
  const wanted = member.permissions.filter(({ key }) => isFile || !onlyByRules.includes(key));
  if (isSameSet(before, wanted)) return false;
  await change(tx, member, known, { role: known.byHand?.role ?? 'member', permissions: wanted });
  return true;
}

/** As `updateMemberRole`. Throws `invalid_state` where rules give a higher one. */
export async function changeRoleByHand(
  tx: Tx,
  member: MemberId & { role: Role },
  { isFile = false }: Source = {},
): Promise<boolean> {
  const known = await findRuleMembership(tx.db, member);
  if (!known) return updateMemberRole(tx, member);
  const { role } = member;
  const { byHand, byRules } = known;
  if (!isFile && isLowerRole(role, byRules.role)) throw givenByRules(`the role ${byRules.role}`, known);
  if (role === byHand?.role || (!byHand && role === byRules.role)) return false;
  // As where rules have no part: one who becomes a member again starts with nothing.
  await change(tx, member, known, { role, permissions: [] });
  return true;
}

/** As `removeMembership`; who is a member by rules as well stays one. Throws `invalid_state` where rules alone made them one. */
export async function removeByHand(tx: Tx, member: MemberId): Promise<void> {
  const known = await findRuleMembership(tx.db, member);
  if (!known) return removeMembership(tx, member);
  if (!known.byHand) throw givenByRules('the membership', known);
  await change(tx, member, known, undefined);
}

/** What was granted to a member by hand, with what has no end and what has not ended. */
export async function listGrantedByHand(
  db: Reader,
  member: MemberId,
  now: number,
): Promise<readonly GrantedPermission[]> {
  const known = await findRuleMembership(db, member);
  if (known) return known.byHand?.permissions ?? [];
  return listGrantedPermissions(db, member.organizationId, member.userId, now);
}

async function change(
  tx: Tx,
  member: MemberId,
  known: RuleMembership,
  byHand: Held | undefined,
): Promise<void> {
  // They are a member, so that no address is needed.
  await settleMembership(tx, { ...member, email: '' }, { byHand, byRules: known.byRules }, known);
}

function givenByRules(what: string, { byRules }: RuleMembership) {
  return invalidState(
    `A rule gives ${what}, by ${reasonOfGroups(byRules.groups)}. Take the person out of it there, or have your operator change the rule.`,
  );
}
