import {
  endStaysMs,
  endsOf,
  fullCatalog,
  type GrantedPermission,
  grantedText,
  type Holdings,
  heldUntil,
  isPermissionKey,
  type PermissionKey,
  permissionProfiles,
  requireEndSaid,
  requireHeld,
  requireMayGrant,
  roleKeys,
  seesClusters,
  withoutFaultDetails,
} from '../../domain/access/permission.ts';
import { isInService, sidesOf } from '../../domain/clusters/cluster.ts';
import { type DomainError, invalidRequest, invalidState, notFound } from '../../domain/error.ts';
import { kubernetesAccessState, permissionIds } from '../../domain/kubernetes/bindings.ts';
import { cutText } from '../../domain/text.ts';
import { findKubernetesAccessOf } from '../../store/access/kubernetes-access.ts';
import { listOrganizationClusters } from '../../store/clusters/clusters.ts';
import { cachedAs } from '../../store/engine/cache.ts';
import type { Reader, Tx } from '../../store/engine/index.ts';
import { fromTime, toTime } from '../../store/engine/time.ts';
import { updateMemberPermissions } from '../../store/organizations/membership-changes.ts';
import {
  findLastEnd,
  findMembership,
  findMembersVersion,
  listAllGrantedPermissions,
  listEndedOf,
  listGrantedPermissions,
  listMembers,
} from '../../store/organizations/memberships.ts';
import {
  type BusinessReply,
  type BusinessRequest,
  type CommandBody,
  type Operation,
  writes,
} from './operation.ts';
import { ownMembership, standingIn } from './organizations.ts';

export const listPermissionProfiles: Operation<'listPermissionProfiles'> = async () => ({
  permissions: fullCatalog.map(({ implies, ...permission }) => ({ ...permission, implies: [...implies] })),
  profiles: permissionProfiles.map(({ permissions, ...profile }) => ({
    ...profile,
    permissions: [...permissions],
  })),
});

export const getMemberPermissions: Operation<'getMemberPermissions'> = async (
  { store },
  { caller, path, now },
) => {
  await requireReader(store.read, caller.userId, path, now);
  return permissionsBody(store.read, path.orgID, path.userID, now);
};

export const listMemberPermissions: Operation<'listMemberPermissions'> = async (
  { store },
  { caller, path, now },
) => {
  const { orgID: organizationId } = path;
  await requireReader(store.read, caller.userId, { orgID: organizationId, userID: undefined }, now);
  const ended = await findLastEnd(store.read, organizationId, now);
  const version = `${await findMembersVersion(store.read, organizationId)}/${ended}`;
  return cachedAs(store, { key: `permissions/${organizationId}`, version }, async () => {
    const [members, granted] = await store.readSnapshot(async (db) => [
      await listMembers(db, organizationId),
      await listAllGrantedPermissions(db, organizationId, now),
    ]);
    return {
      members: members.map(({ userId, role }) => ({
        organization_id: organizationId,
        user_id: userId,
        role,
        ...(role === 'member' ? grantedBody(granted.get(userId) ?? []) : { permissions: [roleKeys[role]] }),
      })),
    };
  });
};

type SetPermissions = Pick<BusinessRequest<'setMemberPermissions'>, 'caller' | 'path' | 'body'>;

export const setMemberPermissions = writes('setMemberPermissions', (_, request) =>
  settingPermissions(request),
);

/** The command that sets permissions. It is made without the headers of a write, so that plans can use it too. */
export function settingPermissions({
  path,
  body,
  caller,
}: SetPermissions): CommandBody<BusinessReply<'setMemberPermissions'>> {
  const { orgID: organizationId, userID: userId } = path;
  const keys = [...new Set(body.permissions)].sort();
  const ends = newEnds(body.expires_at);
  const about = { target: `${organizationId}/${userId}`, organizationId, subjectUserId: userId };
  return {
    meaning: [organizationId, userId, ...keys, ...(ends.size > 0 ? [[...ends]] : [])],
    about: { ...about, details: `permissions → ${keys.join(', ') || 'none'}` },
    async authorize(tx) {
      keys.forEach(requireKey);
      const manager = { organizationId, userId: caller.userId };
      const own = await standingIn(tx, manager, 'staff.operate', ({ role }) => role === 'owner');
      requireHeld(own.permissions, 'members.manage');
      const held = heldUntil(own.role, own.granted);
      const before = await listGrantedPermissions(tx.db, organizationId, userId, tx.now);
      requireMayGrant(held, before, wantedOf(keys, ends, before));
    },
    async apply(tx) {
      await requireOrdinaryMember(tx, organizationId, userId);
      requireAhead(keys, ends, tx.now);
      const ended = await listEndedOf(tx.db, { organizationId, userId }, tx.now - endStaysMs, tx.now);
      requireEndSaid(keys, ends, ended);
      const before = await listGrantedPermissions(tx.db, organizationId, userId, tx.now);
      const permissions = wantedOf(keys, ends, before);
      await updateMemberPermissions(tx, { organizationId, userId, permissions });
      const details = `permissions ${grantedText(before)} → ${grantedText(permissions)}`;
      return { result: await permissionsBody(tx.db, organizationId, userId, tx.now), about: { details } };
    },
  };
}

/** The permissions of a member who may set permissions, and so may grant those. Throws for anyone else. */
export async function requireHoldings(
  { db, now }: { db: Reader; now: number },
  organizationId: string,
  userId: string,
): Promise<Holdings> {
  const own = await ownMembership(db, organizationId, userId, now);
  requireHeld(own.permissions, 'members.manage');
  return heldUntil(own.role, own.granted);
}

/** Throws `not_found` for a non-member, and `invalid_state` for one who holds everything by role. */
export async function requireOrdinaryMember(tx: Tx, organizationId: string, userId: string): Promise<void> {
  const member = await findMembership(tx.db, organizationId, userId, tx.now);
  if (!member) throw memberNotFound();
  if (member.role === 'member') return;
  throw invalidState(`An ${member.role} holds every permission; change the role instead.`);
}

export function newEnds(sent: Record<string, string | null> = {}): ReadonlyMap<string, string | null> {
  const ends = Object.entries(sent).map(([key, end]) => [key, end && toTime(fromTime(end))] as const);
  return new Map(ends.sort());
}

/** The keys with their ends: the sent one, else the key's present one. */
function wantedOf(
  keys: readonly string[],
  ends: ReadonlyMap<string, string | null>,
  before: readonly GrantedPermission[],
): GrantedPermission[] {
  const had = new Map(before.map(({ key, expiresAt }) => [key, expiresAt]));
  return keys.map((key) => {
    const sent = ends.get(key);
    return { key, expiresAt: sent === undefined ? (had.get(key) ?? null) : sent };
  });
}

/** Throws `invalid_request` for an end in the past, or of a key that is not granted. */
export function requireAhead(
  keys: readonly string[],
  ends: ReadonlyMap<string, string | null>,
  now: number,
): void {
  for (const [key, end] of ends) {
    if (!keys.includes(key)) {
      const name = JSON.stringify(cutText(key, 80));
      throw invalidRequest(`expires_at names ${name}, which permissions does not.`);
    }
    if (end !== null && fromTime(end) <= now) {
      throw invalidRequest(`The end of ${key} has passed already.`);
    }
  }
}

async function permissionsBody(db: Reader, organizationId: string, userId: string, now: number) {
  const member = await findMembership(db, organizationId, userId, now);
  if (!member) throw memberNotFound();
  const { role } = member;
  const held =
    role === 'member'
      ? grantedBody(await listGrantedPermissions(db, organizationId, userId, now))
      : { permissions: [roleKeys[role]] };
  return { organization_id: organizationId, user_id: userId, role, ...held };
}

function grantedBody(granted: readonly GrantedPermission[]) {
  const ends = endsOf(granted);
  return { permissions: granted.map(({ key }) => key), ...(ends && { expires_at: ends }) };
}

export function requireKey(key: string): PermissionKey {
  if (isPermissionKey(key)) return key;
  const reason = Object.values<string>(roleKeys).includes(key)
    ? `${key} comes with a role and cannot be granted.`
    : `${JSON.stringify(cutText(key, 80))} is not a permission; GET /permission-profiles lists them.`;
  throw invalidRequest(reason);
}

export const getMemberKubernetesAccess: Operation<'getMemberKubernetesAccess'> = async (
  { store },
  { caller, path, now },
) => {
  const own = await requireReader(store.read, caller.userId, path, now);
  const clusters = await listOrganizationClusters(store.read, path.orgID);
  const inService = clusters.filter(
    (cluster) => isInService(cluster) && sidesOf(cluster).includes('kubernetes'),
  );
  const seesAll = seesClusters(own.permissions);
  const found = await Promise.all(
    inService.map(async (cluster) => {
      const facts = await findKubernetesAccessOf(store, cluster, path.userID, now);
      const state = kubernetesAccessState(facts);
      const access = seesAll ? state : withoutFaultDetails(state);
      const body = { cluster_id: cluster.id, cluster_name: cluster.name, ...access };
      return seesAll || permissionIds(facts.access).length > 0 ? [body] : [];
    }),
  );
  return { clusters: found.flat() };
};

/** Throws unless the caller may read the member's permissions: their own, with `members.manage`, or as staff. */
async function requireReader(
  db: Reader,
  userId: string,
  { orgID: organizationId, userID: subjectId }: { orgID: string; userID: string | undefined },
  now: number,
) {
  const isOwn = userId === subjectId;
  const own = await standingIn(
    { db, now },
    { organizationId, userId },
    'staff.read',
    ({ permissions }) => isOwn || permissions.has('members.manage'),
  );
  if (!isOwn) requireHeld(own.permissions, 'members.manage');
  return own;
}

export function memberNotFound(): DomainError {
  return notFound('The organization has no such member.');
}
