/**
 * Who belongs to an organization: managed by its owners and admins, and by operators of the installation, through
 * routes of their own. What concerns an owner needs an owner or an operator.
 */
import { foldEmail } from '../domain/email.ts';
import { DomainError } from '../domain/error.ts';
import type { CommandReply, Request } from '../domain/operation.ts';
import { isPermissionKey, type PermissionKey, type Role } from '../domain/permission.ts';
import type { About } from '../store/attempts.ts';
import { type CommandBody, runCommand } from '../store/commands.ts';
import type { Reader, Tx } from '../store/index.ts';
import { findMember, findMembership } from '../store/members.ts';
import {
  createMembership,
  removeMembership,
  updateMemberRole,
  updateUsername,
} from '../store/memberships.ts';
import { findOrCreateUser } from '../store/users.ts';
import { membershipBody } from './me.ts';
import { memberNotFound } from './members.ts';
import type { BusinessDeps, BusinessRequest } from './operation.ts';
import { requireStaff } from './operator/staff.ts';
import { organizationNotFound, requireOrganization } from './organizations.ts';

interface Authority {
  /** What its commands are called in the audit trail. */
  name(operation: string): string;
  /** Whether the caller may manage an organization's owners, or only its other members. Throws when neither. */
  of(db: Reader, orgId: string, userId: string): Promise<'owners' | 'others'>;
}

const ofOwnersAndAdmins: Authority = { name: (operation) => operation, of: authorityOfMember };
const ofOperators: Authority = {
  name: (operation) => `operator${operation.charAt(0).toUpperCase()}${operation.slice(1)}`,
  of: authorityOfOperator,
};

async function authorityOfMember(db: Reader, orgId: string, userId: string): Promise<'owners' | 'others'> {
  const membership = await findMembership(db, orgId, userId);
  if (!membership) throw organizationNotFound();
  if (membership.role === 'owner') return 'owners';
  if (membership.role === 'admin') return 'others';
  throw new DomainError('forbidden', 'Only owners and admins of the organization manage its members.');
}

async function authorityOfOperator(db: Reader, orgId: string, userId: string): Promise<'owners'> {
  await requireStaff(db, userId, 'staff.operate');
  await requireOrganization(db, orgId);
  return 'owners';
}

/** Makes someone a member; they get an account where there is none for their address. */
export const [addMember, operatorAddMember] = byBoth(add);
/** Makes a member an owner, an admin or an ordinary member. */
export const [setMemberRole, operatorSetMemberRole] = byBoth(setRole);
/** Sets a member's login name while no cluster has used it. */
export const [setMemberUsername, operatorSetMemberUsername] = byBoth(setUsername);
/** Ends a membership. */
export const [removeMember, operatorRemoveMember] = byBoth(remove);

function byBoth<Asked, Reply>(run: (deps: BusinessDeps, request: Asked, authority: Authority) => Reply) {
  return [
    (deps: BusinessDeps, request: Asked) => run(deps, request, ofOwnersAndAdmins),
    (deps: BusinessDeps, request: Asked) => run(deps, request, ofOperators),
  ] as const;
}

function add(deps: BusinessDeps, request: BusinessRequest<'addMember'>, authority: Authority) {
  const { orgID: orgId } = request.path;
  const { email, name, role = 'member', username } = request.body;
  const wanted = [...new Set(request.body.permissions)].sort();
  const meaning = [foldEmail(email), name ?? '', role, username ?? '', wanted];
  const about = { target: `${orgId}/${foldEmail(email)}`, details: `role ${role}` };
  return manage(deps, request, { operation: 'addMember', meaning, about }, authority, {
    concernsOwners: async () => role === 'owner',
    async change(tx, now) {
      const permissions = wanted.map(requireGrantable);
      if (role !== 'member' && permissions.length > 0) {
        throw new DomainError('invalid_request', `An ${role} holds every permission; leave permissions out.`);
      }
      const { userId } = await findOrCreateUser(tx, { email, displayName: name }, now);
      await createMembership(tx, { orgId, userId, email, role, username, permissions });
      return { result: await memberBody(tx, orgId, userId), about: { subject_user_id: userId } };
    },
  });
}

function setRole(deps: BusinessDeps, request: BusinessRequest<'setMemberRole'>, authority: Authority) {
  const { orgID: orgId, userID: userId } = request.path;
  const { role } = request.body;
  const about = { ...aboutMember(orgId, userId), details: `role → ${role}` };
  return manage(deps, request, { operation: 'setMemberRole', meaning: [userId, role], about }, authority, {
    concernsOwners: async (tx) => role === 'owner' || (await roleOf(tx, orgId, userId)) === 'owner',
    async change(tx) {
      const before = await roleOf(tx, orgId, userId);
      await updateMemberRole(tx, { orgId, userId, role });
      return { result: await memberBody(tx, orgId, userId), about: { details: `role ${before} → ${role}` } };
    },
  });
}

function setUsername(
  deps: BusinessDeps,
  request: BusinessRequest<'setMemberUsername'>,
  authority: Authority,
) {
  const { orgID: orgId, userID: userId } = request.path;
  const { username } = request.body;
  const about = { ...aboutMember(orgId, userId), details: `username → ${username.slice(0, 80)}` };
  return manage(
    deps,
    request,
    { operation: 'setMemberUsername', meaning: [userId, username], about },
    authority,
    {
      concernsOwners: async (tx) => (await roleOf(tx, orgId, userId)) === 'owner',
      async change(tx) {
        const { username: before } = (await requireMember(tx, orgId, userId)).username;
        await updateUsername(tx, { orgId, userId, username });
        const details = `username ${before} → ${username}`;
        return { result: await memberBody(tx, orgId, userId), about: { details } };
      },
    },
  );
}

function remove(deps: BusinessDeps, request: BusinessRequest<'removeMember'>, authority: Authority) {
  const { orgID: orgId, userID: userId } = request.path;
  const about = aboutMember(orgId, userId);
  return manage(deps, request, { operation: 'removeMember', meaning: [userId], about }, authority, {
    concernsOwners: async (tx) => (await roleOf(tx, orgId, userId)) === 'owner',
    async change(tx) {
      const before = await roleOf(tx, orgId, userId);
      await removeMembership(tx, { orgId, userId });
      return { result: { organization_id: orgId, user_id: userId }, about: { details: `was ${before}` } };
    },
  });
}

/** One command on an organization's membership: who may do it, and then the change. */
function manage<T>(
  { store }: BusinessDeps,
  { path, caller, command, now }: Pick<Request, 'caller' | 'command' | 'now'> & { path: { orgID: string } },
  what: { operation: string; meaning: readonly unknown[]; about: About },
  authority: Authority,
  body: {
    concernsOwners(tx: Tx): Promise<boolean>;
    change(tx: Tx, now: number): ReturnType<CommandBody<T>['apply']>;
  },
): Promise<CommandReply<T>> {
  const { orgID: orgId } = path;
  const { meaning } = what;
  const operation = authority.name(what.operation);
  const about = { ...what.about, organization_id: orgId };
  return runCommand<T>(
    store,
    { operation, headers: command, caller, request: [orgId, ...meaning], about, now },
    {
      async authorize(tx) {
        const manages = await authority.of(tx.db, orgId, caller.userId);
        if (manages === 'owners' || !(await body.concernsOwners(tx))) return;
        throw new DomainError('forbidden', 'What concerns an owner needs an owner of the organization.');
      },
      apply: (tx) => body.change(tx, now),
    },
  );
}

function aboutMember(orgId: string, userId: string): About {
  return { target: `${orgId}/${userId}`, subject_user_id: userId };
}

async function memberBody(tx: Tx, orgId: string, userId: string) {
  return membershipBody(await requireMember(tx, orgId, userId));
}

async function requireMember(tx: Tx, orgId: string, userId: string) {
  const member = await findMember(tx.db, orgId, userId);
  if (!member) throw memberNotFound();
  return member;
}

async function roleOf(tx: Tx, orgId: string, userId: string): Promise<Role | undefined> {
  return (await findMembership(tx.db, orgId, userId))?.role;
}

function requireGrantable(key: string): PermissionKey {
  if (isPermissionKey(key)) return key;
  throw new DomainError(
    'invalid_request',
    `${JSON.stringify(key.slice(0, 80))} is not a permission that can be granted.`,
  );
}
