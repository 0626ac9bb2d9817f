/** What each member of an organization may do there. */

import { isInService } from '../domain/cluster.ts';
import { DomainError } from '../domain/error.ts';
import { kubernetesAccessState } from '../domain/kubernetes-access-state.ts';
import type { CommandReply } from '../domain/operation.ts';
import { isPermissionKey, type PermissionKey, permissionCatalog, roleKeys } from '../domain/permission.ts';
import { sidesOf } from '../domain/side.ts';
import { cached } from '../store/cache.ts';
import { listOrganizationClusters } from '../store/clusters.ts';
import { type Command, runCommand } from '../store/commands.ts';
import type { Reader } from '../store/index.ts';
import { findKubernetesAccessOf } from '../store/kubernetes-access.ts';
import { updateMemberPermissions } from '../store/membership-changes.ts';
import {
  findMembership,
  listAllGrantedPermissions,
  listGrantedPermissions,
  listMembers,
} from '../store/memberships.ts';
import type { BusinessDeps, BusinessReply, BusinessRequest } from './operation.ts';
import { requireStaff } from './operator/staff.ts';
import { organizationNotFound, requireOrganization } from './organizations.ts';

/** The keys a member was granted, or the one that stands for an owner's or admin's role. */
export async function getMemberPermissions(
  { store }: BusinessDeps,
  { caller, path }: BusinessRequest<'getMemberPermissions'>,
): Promise<BusinessReply<'getMemberPermissions'>> {
  const own = await findMembership(store.read, path.orgID, caller.userId);
  if (!own) throw organizationNotFound();
  if (path.userID !== caller.userId) requireManager(own.permissions);
  return permissionsBody(store.read, path.orgID, path.userID);
}

/** The same of every member, for those who may grant. */
export async function listMemberPermissions(
  { store }: BusinessDeps,
  { caller, path }: BusinessRequest<'listMemberPermissions'>,
): Promise<BusinessReply<'listMemberPermissions'>> {
  const { orgID: organizationId } = path;
  const own = await findMembership(store.read, organizationId, caller.userId);
  if (!own) throw organizationNotFound();
  requireManager(own.permissions);
  return cached(store, `permissions/${organizationId}`, async () => {
    const [members, granted] = await Promise.all([
      listMembers(store.read, organizationId),
      listAllGrantedPermissions(store.read, organizationId),
    ]);
    return {
      members: members.map(({ userId, role }) => ({
        organization_id: organizationId,
        user_id: userId,
        role,
        permissions: role === 'member' ? (granted.get(userId) ?? []) : [roleKeys[role]],
      })),
    };
  });
}

type SetPermissions = Pick<BusinessRequest<'setMemberPermissions'>, 'caller' | 'path' | 'body'>;

/** Makes a member's permissions exactly the set sent. */
export function setMemberPermissions(
  { store }: BusinessDeps,
  request: BusinessRequest<'setMemberPermissions'>,
): Promise<CommandReply<BusinessReply<'setMemberPermissions'>>> {
  return runCommand(store, request, settingPermissions(request));
}

/** The same for operators, who may grant everything. */
export function operatorSetMemberPermissions(
  { store }: BusinessDeps,
  request: BusinessRequest<'operatorSetMemberPermissions'>,
): Promise<CommandReply<BusinessReply<'operatorSetMemberPermissions'>>> {
  const command = settingOf(request, 'operatorSetMemberPermissions', async (db, organizationId) => {
    await requireStaff(db, request.caller.userId, 'staff.operate');
    await requireOrganization(db, organizationId);
    return new Set(permissionCatalog.map(({ key }) => key));
  });
  return runCommand(store, request, command);
}

/** The command of those who may grant. The headers of a write have no part in it, so that it can be tried out as well. */
export function settingPermissions(request: SetPermissions) {
  return settingOf(request, 'setMemberPermissions', async (db, organizationId) => {
    const own = await findMembership(db, organizationId, request.caller.userId);
    if (!own) throw organizationNotFound();
    requireManager(own.permissions);
    return own.permissions;
  });
}

/** `holdings` throws if the caller may not do this at all, and says which keys they may add. */
function settingOf(
  { path, body }: SetPermissions,
  operation: string,
  holdings: (db: Reader, organizationId: string) => Promise<ReadonlySet<string>>,
): Command<BusinessReply<'setMemberPermissions'>> {
  const { orgID: organizationId, userID: userId } = path;
  const wanted = [...new Set(body.permissions)].sort();
  const about = {
    target: `${organizationId}/${userId}`,
    organizationId,
    subjectUserId: userId,
  };
  return {
    operation,
    meaning: [organizationId, userId, ...wanted],
    about: { ...about, details: `permissions → ${wanted.join(', ') || 'none'}` },
    async authorize(tx) {
      wanted.forEach(requireKey);
      const held = await holdings(tx.db, organizationId);
      const granted = new Set(await listGrantedPermissions(tx.db, organizationId, userId));
      const beyond = wanted.find((key) => !granted.has(key) && !held.has(key));
      if (beyond) throw new DomainError('forbidden', `You cannot grant ${beyond}, which you do not hold.`);
    },
    async apply(tx) {
      const member = await findMembership(tx.db, organizationId, userId);
      if (!member) throw memberNotFound();
      if (member.role !== 'member') {
        throw new DomainError(
          'invalid_state',
          `An ${member.role} holds every permission; change the role instead.`,
        );
      }
      const before = await listGrantedPermissions(tx.db, organizationId, userId);
      const permissions = wanted.map(requireKey);
      await updateMemberPermissions(tx, { organizationId, userId, permissions });
      const details = `permissions ${before.join(', ') || 'none'} → ${permissions.join(', ') || 'none'}`;
      return { result: await permissionsBody(tx.db, organizationId, userId), about: { details } };
    },
  };
}

async function permissionsBody(db: Reader, organizationId: string, userId: string) {
  const member = await findMembership(db, organizationId, userId);
  if (!member) throw memberNotFound();
  const permissions =
    member.role === 'member'
      ? await listGrantedPermissions(db, organizationId, userId)
      : [roleKeys[member.role]];
  return { organization_id: organizationId, user_id: userId, role: member.role, permissions };
}

function requireKey(key: string): PermissionKey {
  if (isPermissionKey(key)) return key;
  const reason = Object.values<string>(roleKeys).includes(key)
    ? `${key} comes with a role and cannot be granted.`
    : `${JSON.stringify(key.slice(0, 80))} is not a permission; GET /permission-profiles lists them.`;
  throw new DomainError('invalid_request', reason);
}

/** Whether a member's Kubernetes permissions are in force on the organization's clusters. */
export async function getMemberKubernetesAccess(
  { store }: BusinessDeps,
  { caller, path, now }: BusinessRequest<'getMemberKubernetesAccess'>,
): Promise<BusinessReply<'getMemberKubernetesAccess'>> {
  const own = await findMembership(store.read, path.orgID, caller.userId);
  if (!own) throw organizationNotFound();
  if (path.userID !== caller.userId) requireManager(own.permissions);
  const clusters = await listOrganizationClusters(store.read, path.orgID);
  const inService = clusters.filter(
    (cluster) => isInService(cluster) && sidesOf(cluster).includes('kubernetes'),
  );
  return {
    clusters: await Promise.all(
      inService.map(async (cluster) => {
        const facts = await findKubernetesAccessOf(store, cluster, path.userID, now);
        return { cluster_id: cluster.id, cluster_name: cluster.name, ...kubernetesAccessState(facts) };
      }),
    ),
  };
}

/** Throws `forbidden` for who may not grant. */
export function requireManager(held: ReadonlySet<string>): void {
  if (!held.has('members.manage')) {
    throw new DomainError('forbidden', 'This needs the permission members.manage in the organization.');
  }
}

/** What is said of someone who is no member. */
export function memberNotFound(): DomainError {
  return new DomainError('not_found', 'The organization has no such member.');
}
