/**
 * Changes of memberships: people by hand and rules change what they gave, and the membership follows. An organization
 * always keeps an owner, and a frozen login name its person. A form repeats what it read, so its sets give nothing by
 * hand that rules give already; one that would take only that is refused. A file (`isFile`) says what is given by
 * hand, whatever rules give.
 */
import { type GrantedPermission, isSameSet, type Role } from '../../domain/access/permission.ts';
import { DomainError, invalidState } from '../../domain/error.ts';
import { newId } from '../../domain/id.ts';
import {
  combined,
  type Gift,
  type HeldRole,
  isLowerRole,
  reasonOfGroups,
} from '../../domain/organizations/group-rules.ts';
import { checkUsername, type HeldUsername } from '../../domain/organizations/membership.ts';
import { usernamesFromEmail } from '../../domain/people/person.ts';
import type { Reader, Tx } from '../engine/index.ts';
import { deleteRows, findRow, insertRow, listRows, saveRow, updateRows } from '../engine/rows.ts';
import { toTime } from '../engine/time.ts';
import { deleteAccessRequests } from './access-requests.ts';
import {
  findShares,
  type Holding,
  holdingsOf,
  type MemberId,
  type Shares,
  updateHoldings,
} from './holdings.ts';
import { findOrganization, requireActiveOrganization } from './organizations.ts';

/** A member, with what a new one needs: an address to make a login name from, or that name. */
type NewMember = MemberId & { email?: string; username?: string | undefined };

interface ChangeOptions {
  isFile?: boolean;
}

/**
 * Makes a person a member by hand, also one whom rules alone made a member. Their login name is the one they had here, the one given,
 * or one made from their email. Throws `invalid_state` when they are a member by hand already or the name is another person's,
 * `invalid_request` when it cannot be a login name.
 */
export async function createMembership(
  tx: Tx,
  member: MemberId & {
    email: string;
    role: Role;
    username?: string | undefined;
    permissions?: readonly GrantedPermission[] | undefined;
  },
): Promise<void> {
  const { organizationId, role, permissions = [], username } = member;
  await requireActiveOrganization(tx.db, organizationId);
  const known = await findShares(tx.db, member, tx.now);
  if (known.byHand) throw invalidState(`${member.email} is a member already.`);
  await settleMembership(tx, member, known, { byHand: { role, permissions } });
  if (!known.byRules) return;
  await restartReview(tx, member, permissions);
  if (username !== undefined) await updateUsername(tx, { ...member, username });
}

/**
 * Replaces the permissions that a member has by hand, a key once; returns whether that changed anything. Throws
 * `invalid_state` where the set leaves out one that rules alone give. Where none is left with the end that the last
 * review gave, the months to the next review count from now.
 */
export async function updateMemberPermissions(
  tx: Tx,
  member: MemberId & { permissions: readonly GrantedPermission[] },
  { isFile = false }: ChangeOptions = {},
): Promise<boolean> {
  const known = await requireShares(tx, member);
  const before = known.byHand?.permissions ?? [];
  const onlyByRules = (known.byRules?.permissions ?? []).filter(
    (key) => !before.some((one) => one.key === key),
  );
  const missing = onlyByRules.filter((key) => !member.permissions.some((one) => one.key === key));
  if (!isFile && missing.length > 0) throw givenByRules(missing.join(', '), known);
  const permissions = member.permissions.filter(({ key }) => isFile || !onlyByRules.includes(key));
  if (isSameSet(before, permissions)) return false;
  await settleMembership(tx, member, known, {
    byHand: { role: known.byHand?.role ?? 'member', permissions },
  });
  await restartReview(tx, member, member.permissions);
  return true;
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

/**
 * Sets the role that a member has by hand; returns whether that changed anything. Permissions by hand are deleted, so
 * that an admin who becomes a member again starts with none. Throws `invalid_state` when no owner would be left, and
 * where rules give a higher role.
 */
export async function updateMemberRole(
  tx: Tx,
  member: MemberId & { role: Role },
  { isFile = false }: ChangeOptions = {},
): Promise<boolean> {
  const known = await requireShares(tx, member);
  const { role } = member;
  const { byHand, byRules } = known;
  if (!isFile && byRules && isLowerRole(role, byRules.role))
    throw givenByRules(`the role ${byRules.role}`, known);
  if (role === (byHand ?? byRules)?.role) return false;
  await settleMembership(tx, member, known, { byHand: { role, permissions: [] } });
  return true;
}

/**
 * Ends what was given by hand; a person who is a member by rules as well stays one. Throws `invalid_state` for a
 * member by rules alone, and when no owner would be left.
 */
export async function removeByHand(tx: Tx, member: MemberId): Promise<void> {
  const known = await requireShares(tx, member);
  if (!known.byHand) throw givenByRules('the membership', known);
  await settleMembership(tx, member, known, { byHand: undefined });
}

function givenByRules(what: string, { byRules }: Shares) {
  return invalidState(
    `A rule gives ${what}, by ${reasonOfGroups(byRules?.groups ?? [])}. Take the person out of it there, or have your operator change the rule.`,
  );
}

/** The shares of a member. Throws `not_found` when there is none. */
async function requireShares(tx: Tx, member: MemberId): Promise<Shares> {
  const known = await findShares(tx.db, member, tx.now);
  if (!known.byHand && !known.byRules) throw noMember();
  return known;
}

function noMember() {
  return new DomainError('not_found', 'The organization has no such member.');
}

/**
 * Changes what one side gave a person, and makes their membership what both give: none where neither does. Whom rules no
 * longer make the last owner keeps that role, marked as of rules; a change by hand throws `invalid_state` there.
 */
export async function settleMembership(
  tx: Tx,
  member: NewMember,
  known: Shares,
  change: { byHand: HeldRole | undefined } | { byRules: Gift | undefined },
): Promise<{ before: HeldRole | undefined; after: HeldRole | undefined; isKept: boolean }> {
  const before = combined(known.byHand, known.byRules);
  const { byHand, byRules: gift } = { ...known, ...change };
  const isByHand = 'byHand' in change;
  const isKept =
    !isByHand &&
    before?.role === 'owner' &&
    combined(byHand, gift)?.role !== 'owner' &&
    (await isLastOwner(tx.db, member));
  const byRules = isKept ? keptOwner(gift, known) : gift;
  const after = combined(byHand, byRules);
  const joined = await makeSo(tx, member, before, after);
  if (after) {
    // Permissions that ended by themselves stay in the ledger until their side changes.
    await updateHoldings(
      tx,
      member,
      ({ kind, source }) => (kind === 'role' || kind === 'permission') && (isByHand || source !== 'hand'),
      [
        ...joined,
        ...holdingsOf(byRules, isKept ? 'kept' : 'rule'),
        ...(isByHand ? holdingsOf(byHand, 'hand') : []),
      ],
    );
  }
  return { before, after, isKept };
}

/** The gift of rules to an owner who stays because there is no other; its groups are those of before. */
function keptOwner(gift: Gift | undefined, { byRules }: Shares): Gift {
  return {
    role: 'owner',
    permissions: gift?.permissions ?? [],
    groups: byRules?.groups ?? gift?.groups ?? [],
  };
}

/** Changes the membership from `before` to `after`; returns the further rows of a person who becomes a member. */
async function makeSo(
  tx: Tx,
  member: NewMember,
  before: HeldRole | undefined,
  after: HeldRole | undefined,
): Promise<Holding[]> {
  if (!after) {
    if (before) await removeMembership(tx, member);
    return [];
  }
  const { role, permissions } = after;
  if (before?.role === role && isSameSet(before.permissions, permissions)) return [];
  if (before) await touch(tx, member, { role });
  const joined = before ? [] : await insertMembership(tx, member, role);
  if (role !== 'member') await deleteAccessRequests(tx, member);
  const [permissionEnd] = permissions.flatMap(({ expiresAt }) => expiresAt ?? []).sort();
  if (permissionEnd !== undefined) tx.changed({ kind: 'person', userId: member.userId, permissionEnd });
  return joined;
}

async function insertMembership(tx: Tx, member: NewMember, role: Role): Promise<Holding[]> {
  const { organizationId, userId } = member;
  const at = toTime(tx.now);
  await saveRow(tx.db, 'memberships', ['org_id', 'user_id'], {
    org_id: organizationId,
    user_id: userId,
    role,
    lifecycle_state: 'active',
    created_at: at,
    updated_at: at,
    review_from: at,
  });
  tx.changed({ kind: 'person', userId });
  return [
    { kind: 'member', what: '', source: 'hand' },
    { kind: 'username', what: await reserveUsername(tx, member), source: 'hand' },
  ];
}

/**
 * Ends a membership, by hand and by rules, with all that the person held, and deletes a login name that was never
 * used; a frozen name stays theirs. Throws `invalid_state` when no owner would be left.
 */
export async function removeMembership(tx: Tx, member: MemberId): Promise<void> {
  await deleteAccessRequests(tx, member);
  await touch(tx, member, { lifecycle_state: 'removed' });
  await updateHoldings(tx, member, () => true, []);
  await deleteRows(tx.db, 'team_members', { org_id: member.organizationId, user_id: member.userId });
  await deleteRows(tx.db, 'organization_usernames', {
    org_id: member.organizationId,
    user_id: member.userId,
    lifecycle_state: 'reserved',
  });
}

/**
 * Sets a member's login name while it is only reserved; returns whether that changed anything. Throws `invalid_state`
 * when it is frozen or the name is another person's, `invalid_request` when it cannot be a login name.
 */
export async function updateUsername(tx: Tx, member: MemberId & { username: string }): Promise<boolean> {
  const { organizationId, userId, username } = member;
  const own = await findName(tx, member);
  checkUsername(username, { own, isTaken: await isTaken(tx, organizationId, username) });
  if (own?.username === username) return false;
  await updateRows(
    tx.db,
    'organization_usernames',
    { org_id: organizationId, user_id: userId },
    { username, source: 'operator' },
  );
  await touch(tx, member, {});
  await updateHoldings(tx, member, ({ kind }) => kind === 'username', [
    { kind: 'username', what: username, source: 'hand' },
  ]);
  return true;
}

/** Finds or reserves the login name of a new member. */
async function reserveUsername(tx: Tx, member: NewMember): Promise<string> {
  const { organizationId, userId, username } = member;
  const own = await findName(tx, member);
  if (username !== undefined)
    checkUsername(username, { own, isTaken: await isTaken(tx, organizationId, username) });
  if (own) return own.username;
  const name = username ?? (await freeUsername(tx, organizationId, member.email ?? ''));
  await insertRow(tx.db, 'organization_usernames', {
    id: newId('org_username', tx.now),
    org_id: organizationId,
    user_id: userId,
    username: name,
    source: username === undefined ? 'email' : 'operator',
    lifecycle_state: 'reserved',
    uid: null,
    gid: null,
    given: 0,
    created_at: toTime(tx.now),
    frozen_at: null,
  });
  return name;
}

async function freeUsername(tx: Tx, organizationId: string, email: string): Promise<string> {
  for (const name of usernamesFromEmail(email)) if (!(await isTaken(tx, organizationId, name))) return name;
  throw new Error('unreachable: names do not run out');
}

async function isTaken(tx: Tx, organizationId: string, username: string): Promise<boolean> {
  const holder = await findRow(tx.db, 'organization_usernames', { org_id: organizationId, username });
  // A person's own group has their name.
  return (
    (holder ?? (await findRow(tx.db, 'teams', { org_id: organizationId, name: username }))) !== undefined
  );
}

/** The login name that a person has, or had, in an organization. */
async function findName(tx: Tx, { organizationId, userId }: MemberId): Promise<HeldUsername | undefined> {
  const row = await findRow(tx.db, 'organization_usernames', { org_id: organizationId, user_id: userId });
  return row && { username: row.username, isFrozen: row.lifecycle_state === 'frozen' };
}

/** The role of an active member. Throws `not_found` when there is none. */
async function roleOf(tx: Tx, { organizationId, userId }: MemberId): Promise<Role> {
  const row = await findRow(tx.db, 'memberships', {
    org_id: organizationId,
    user_id: userId,
    lifecycle_state: 'active',
  });
  if (!row) throw noMember();
  return row.role;
}

/**
 * Updates and announces the row of an active membership; nothing else changes such a row. Throws `not_found` when
 * there is none, and `invalid_state` when no owner would be left.
 */
async function touch(
  tx: Tx,
  member: MemberId,
  values: { role?: Role; lifecycle_state?: 'removed' },
): Promise<void> {
  const { organizationId, userId } = member;
  const { role = 'owner', lifecycle_state: state = 'active' } = values;
  const isLeft = (await roleOf(tx, member)) === 'owner' && (role !== 'owner' || state !== 'active');
  if (isLeft && (await isLastOwner(tx.db, member)))
    throw invalidState('This is the last owner. Make someone else an owner first.');
  await updateRows(
    tx.db,
    'memberships',
    { org_id: organizationId, user_id: userId },
    { ...values, updated_at: toTime(tx.now) },
  );
  tx.changed({ kind: 'person', userId });
}

/** Whether a person is the only owner of an organization that has to have one. */
async function isLastOwner(db: Reader, { organizationId, userId }: MemberId): Promise<boolean> {
  const active = { org_id: organizationId, role: 'owner', lifecycle_state: 'active' } as const;
  const owners = await listRows(db, 'memberships', active);
  const organization = await findOrganization(db, organizationId);
  const isRetired = organization?.lifecycleState === 'retired';
  return !isRetired && owners.length === 1 && owners[0]?.user_id === userId;
}
