/** Changes of memberships. An organization always keeps an owner, and a frozen login name its person. */
import { type GrantedPermission, isSameSet, type Role } from '../../domain/access/permission.ts';
import { DomainError } from '../../domain/error.ts';
import { newId } from '../../domain/id.ts';
import { checkOwners, checkUsername, type HeldUsername } from '../../domain/organizations/membership.ts';
import { usernamesFromEmail } from '../../domain/people/person.ts';
import type { Reader, Tx } from '../engine/index.ts';
import { deleteRows, findRow, insertRow, listRows, saveRow, updateRows } from '../engine/rows.ts';
import { toTime } from '../engine/time.ts';
import { deleteAccessRequests } from './access-requests.ts';
import { recordMember } from './member-history.ts';
import { listGrantedPermissions } from './memberships.ts';
import { findOrganization, requireActiveOrganization } from './organizations.ts';

export interface MemberId {
  organizationId: string;
  userId: string;
}

/**
 * Makes a person a member. Their login name is the one they had here, the one given, or one made from their email.
 * Throws `invalid_state` when they are a member already or the name is another person's, `invalid_request` when it
 * cannot be a login name.
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
  const { organizationId, userId, role } = member;
  const at = toTime(tx.now);
  await requireActiveOrganization(tx.db, organizationId);
  const earlier = await findRow(tx.db, 'memberships', { org_id: organizationId, user_id: userId });
  if (earlier?.lifecycle_state === 'active') {
    throw new DomainError('invalid_state', `${member.email} is a member already.`);
  }
  await saveRow(tx.db, 'memberships', ['org_id', 'user_id'], {
    org_id: organizationId,
    user_id: userId,
    role,
    lifecycle_state: 'active',
    created_at: at,
    updated_at: at,
    review_from: at,
  });
  await insertPermissions(tx, member, member.permissions ?? []);
  await reserveUsername(tx, member);
  await recordMember(tx, member);
  tx.changed({ kind: 'person', userId });
}

/** Makes what is granted to a member exactly this, a key once; whether that changed anything. */
export async function updateMemberPermissions(
  tx: Tx,
  member: MemberId & { permissions: readonly GrantedPermission[] },
): Promise<boolean> {
  const { organizationId, userId, permissions } = member;
  const granted = await listGrantedPermissions(tx.db, organizationId, userId, tx.now);
  if (isSameSet(granted, permissions)) return false;
  await deletePermissions(tx, member);
  await insertPermissions(tx, member, permissions);
  await touch(tx, member, {});
  return true;
}

async function insertPermissions(
  tx: Tx,
  { organizationId, userId }: MemberId,
  permissions: readonly GrantedPermission[],
): Promise<void> {
  for (const { key, expiresAt } of permissions) {
    const row = { org_id: organizationId, user_id: userId, permission: key, expires_at: expiresAt };
    await insertRow(tx.db, 'member_permissions', row);
  }
  const [permissionEnd] = permissions.flatMap(({ expiresAt }) => expiresAt ?? []).sort();
  if (permissionEnd !== undefined) tx.changed({ kind: 'person', userId, permissionEnd });
}

/**
 * Sets a member's role; whether that changed anything. What an owner or admin was granted before is gone, so that one
 * who becomes a member again starts with nothing. Throws `invalid_state` when no owner would be left.
 */
export async function updateMemberRole(tx: Tx, member: MemberId & { role: Role }): Promise<boolean> {
  const { role } = member;
  const before = await roleOf(tx, member);
  if (before === role) return false;
  if (role !== 'member') {
    await deletePermissions(tx, member);
    await deleteAccessRequests(tx, member);
  }
  await touch(tx, member, { role });
  return true;
}

/**
 * Ends a membership. The person's grants of permissions end with it, and so do a login name that was never used and what
 * rules gave; a frozen name stays theirs. Throws `invalid_state` when no owner would be left.
 */
export async function removeMembership(tx: Tx, member: MemberId): Promise<void> {
  await deletePermissions(tx, member);
  await deleteAccessRequests(tx, member);
  await touch(tx, member, { lifecycle_state: 'removed' });
  await deleteRows(tx.db, 'rule_memberships', { org_id: member.organizationId, user_id: member.userId });
  await deleteRows(tx.db, 'organization_usernames', {
    org_id: member.organizationId,
    user_id: member.userId,
    lifecycle_state: 'reserved',
  });
}

/**
 * Sets a member's login name while it is only reserved; whether that changed anything. Throws `invalid_state` when it
 * is frozen or the name is another person's, `invalid_request` when it cannot be a login name.
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
  return true;
}

async function reserveUsername(
  tx: Tx,
  member: MemberId & { email: string; username?: string | undefined },
): Promise<void> {
  const { organizationId, userId, username } = member;
  const own = await findName(tx, member);
  if (username !== undefined)
    checkUsername(username, { own, isTaken: await isTaken(tx, organizationId, username) });
  if (own) return;
  await insertRow(tx.db, 'organization_usernames', {
    id: newId('org_username', tx.now),
    org_id: organizationId,
    user_id: userId,
    username: username ?? (await freeUsername(tx, organizationId, member.email)),
    source: username === undefined ? 'email' : 'operator',
    lifecycle_state: 'reserved',
    uid: null,
    created_at: toTime(tx.now),
    frozen_at: null,
  });
}

async function freeUsername(tx: Tx, organizationId: string, email: string): Promise<string> {
  for (const name of usernamesFromEmail(email)) if (!(await isTaken(tx, organizationId, name))) return name;
  throw new Error('unreachable: names do not run out');
}

async function isTaken(tx: Tx, organizationId: string, username: string): Promise<boolean> {
  const holder = await findRow(tx.db, 'organization_usernames', { org_id: organizationId, username });
  return holder !== undefined;
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
  if (!row) throw new DomainError('not_found', 'The organization has no such member.');
  return row.role;
}

async function deletePermissions(tx: Tx, { organizationId, userId }: MemberId): Promise<void> {
  await deleteRows(tx.db, 'member_permissions', { org_id: organizationId, user_id: userId });
}

/**
 * The only change of an active membership, after that of its permissions: writes it, says when, and announces it. Throws `not_found` when there is none, and
 * `invalid_state` when no owner would be left.
 */
async function touch(
  tx: Tx,
  member: MemberId,
  values: { role?: Role; lifecycle_state?: 'removed' },
): Promise<void> {
  const { organizationId, userId } = member;
  const before = await roleOf(tx, member);
  await updateRows(
    tx.db,
    'memberships',
    { org_id: organizationId, user_id: userId },
    { ...values, updated_at: toTime(tx.now) },
  );
  if (before === 'owner') await requireOwner(tx, organizationId);
  await recordMember(tx, member);
  tx.changed({ kind: 'person', userId });
}

/** Whether a person is the only owner of an organization that has to have one. */
export async function isLastOwner(db: Reader, { organizationId, userId }: MemberId): Promise<boolean> {
  const owners = await listRows(db, 'memberships', {
    org_id: organizationId,
    role: 'owner',
    lifecycle_state: 'active',
  });
  const organization = await findOrganization(db, organizationId);
  return owners.length === 1 && owners[0]?.user_id === userId && organization?.lifecycleState !== 'retired';
}

async function requireOwner(tx: Tx, organizationId: string): Promise<void> {
  const owners = await tx.db
    .selectFrom('memberships')
    .select('user_id')
    .where('org_id', '=', organizationId)
    .where('role', '=', 'owner')
    .where('lifecycle_state', '=', 'active')
    .limit(1)
    .execute();
  const organization = await findOrganization(tx.db, organizationId);
  checkOwners({ isRetired: organization?.lifecycleState === 'retired', owners: owners.length });
}
