/** The members of an organization, and what each may do there. */
import { DomainError } from '../domain/error.ts';
import type { CommandReply } from '../domain/operation.ts';
import { isPermissionKey, type PermissionKey, roleKeys } from '../domain/permission.ts';
import { runCommand } from '../store/commands.ts';
import type { Reader } from '../store/index.ts';
import {
  findMembership,
  listGrantedPermissions,
  listMembers as listOrganizationMembers,
  updateMemberPermissions,
} from '../store/members.ts';
import type { BusinessDeps, BusinessReply, BusinessRequest } from './index.ts';
import { membershipBody } from './me.ts';
import { organizationNotFound } from './organizations.ts';

/** Every member, oldest membership first. */
export async function listMembers(
  { store }: BusinessDeps,
  { caller, path }: BusinessRequest<'listMembers'>,
): Promise<BusinessReply<'listMembers'>> {
  if (!(await findMembership(store.read, path.orgID, caller.userId))) throw organizationNotFound();
  return { members: (await listOrganizationMembers(store.read, path.orgID)).map(membershipBody) };
}

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

/** Makes a member's permissions exactly the set sent. */
export async function setMemberPermissions(
  { store }: BusinessDeps,
  { caller, path, body, command, now }: BusinessRequest<'setMemberPermissions'>,
): Promise<CommandReply<BusinessReply<'setMemberPermissions'>>> {
  const { orgID: orgId, userID: userId } = path;
  const wanted = [...new Set(body.permissions)].sort().map(requireKey);
  return runCommand(
    store,
    { operation: 'setMemberPermissions', headers: command, caller, request: [orgId, userId, ...wanted], now },
    {
      async authorize(tx) {
        const own = await findMembership(tx.db, orgId, caller.userId);
        if (!own) throw organizationNotFound();
        requireManager(own.permissions);
        const granted = new Set(await listGrantedPermissions(tx.db, orgId, userId));
        const beyond = wanted.find((key) => !granted.has(key) && !own.permissions.has(key));
        if (beyond) throw new DomainError('forbidden', `You cannot grant ${beyond}, which you do not hold.`);
      },
      async apply(tx) {
        const member = await findMembership(tx.db, orgId, userId);
        if (!member) throw memberNotFound();
        if (member.role !== 'member') {
          throw new DomainError(
            'invalid_state',
            `An ${member.role} holds every permission; change the role instead.`,
          );
        }
        await updateMemberPermissions(tx, { orgId, userId, permissions: wanted }, now);
        return { target: `${orgId}/${userId}`, result: await permissionsBody(tx.db, orgId, userId) };
      },
    },
  );
}

async function permissionsBody(db: Reader, orgId: string, userId: string) {
  const member = await findMembership(db, orgId, userId);
  if (!member) throw memberNotFound();
  const permissions =
    member.role === 'member' ? await listGrantedPermissions(db, orgId, userId) : [roleKeys[member.role]];
  return { organization_id: orgId, user_id: userId, role: member.role, permissions };
}

function requireKey(key: string): PermissionKey {
  if (isPermissionKey(key)) return key;
  const reason = Object.values<string>(roleKeys).includes(key)
    ? `${key} comes with a role and cannot be granted.`
    : `${JSON.stringify(key.slice(0, 80))} is not a permission; GET /permission-profiles lists them.`;
  throw new DomainError('invalid_request', reason);
}

function requireManager(held: ReadonlySet<string>): void {
  if (!held.has('members.manage')) {
    throw new DomainError('forbidden', 'This needs the permission members.manage in the organization.');
  }
}

function memberNotFound(): DomainError {
  return new DomainError('not_found', 'The organization has no such member.');
}
