/**
 * Who belongs to an organization: managed by its owners and admins, and by operators of the installation, through
 * routes of their own. What concerns an owner needs an owner or an operator.
 */
import { foldEmail } from '../domain/email.ts';
import { DomainError } from '../domain/error.ts';
import type { CommandReply, Request } from '../domain/operation.ts';
import { isPermissionKey, type PermissionKey, type Role } from '../domain/permission.ts';
import { mapInParts } from '../lib/event-loop.ts';
import type { About } from '../store/attempts.ts';
import { cachedAs } from '../store/cache.ts';
import { type Command, type CommandRequest, runCommand } from '../store/commands.ts';
import type { Tx } from '../store/index.ts';
import {
  createMembership,
  removeMembership,
  updateMemberRole,
  updateUsername,
} from '../store/membership-changes.ts';
import {
  findMember,
  findMembership,
  findMembersVersion,
  listMembers as listOrganizationMembers,
} from '../store/memberships.ts';
import { findOrCreatePerson } from '../store/people.ts';
import { membershipBody } from './me.ts';
import { memberNotFound, newEnds, requireAhead } from './member-permissions.ts';
import type { BusinessDeps, BusinessReply, BusinessRequest } from './operation.ts';
import { requireStaff } from './operator/staff.ts';
import { organizationNotFound, requireOrganization } from './organizations.ts';

/** Every member, oldest membership first. */
export async function listMembers(
  { store }: BusinessDeps,
  { caller, path, now }: BusinessRequest<'listMembers'>,
): Promise<BusinessReply<'listMembers'>> {
  if (!(await findMembership(store.read, path.orgID, caller.userId, now))) throw organizationNotFound();
  const version = await findMembersVersion(store.read, path.orgID);
  return cachedAs(store, { key: `members/${path.orgID}`, version }, async () => {
    const members = await store.readSnapshot((db) => listOrganizationMembers(db, path.orgID));
    return { members: await mapInParts(members, membershipBody) };
  });
}

/** Who manages members by right of what. */
export interface Authority {
  /** What its commands are called in the audit trail. */
  name(operation: string): string;
  /** Whether the caller may manage an organization's owners, or only its other members. Throws when neither. */
  of(tx: Tx, organizationId: string, userId: string): Promise<'owners' | 'others'>;
}

export const ofOwnersAndAdmins: Authority = { name: (operation) => operation, of: authorityOfMember };
const ofOperators: Authority = {
  name: (operation) => `operator${operation.charAt(0).toUpperCase()}${operation.slice(1)}`,
  of: authorityOfOperator,
};

async function authorityOfMember(
  { db, now }: Tx,
  organizationId: string,
  userId: string,
): Promise<'owners' | 'others'> {
  const membership = await findMembership(db, organizationId, userId, now);
  if (!membership) throw organizationNotFound();
  if (membership.role === 'owner') return 'owners';
  if (membership.role === 'admin') return 'others';
  throw new DomainError('forbidden', 'Only owners and admins of the organization manage its members.');
}

async function authorityOfOperator({ db }: Tx, organizationId: string, userId: string): Promise<'owners'> {
  await requireStaff(db, userId, 'staff.operate');
  await requireOrganization(db, organizationId);
  return 'owners';
}

/** Makes someone a member; they get an account where there is none for their address. */
export const [addMember, operatorAddMember] = byBoth(adding);
/** Makes a member an owner, an admin or an ordinary member. */
export const [setMemberRole, operatorSetMemberRole] = byBoth(settingRole);
/** Sets a member's login name while no cluster has used it. */
export const [setMemberUsername, operatorSetMemberUsername] = byBoth(settingUsername);
/** Ends a membership. */
export const [removeMember, operatorRemoveMember] = byBoth(removing);

function byBoth<Change, T>(of: (request: Change, authority: Authority) => Command<T>) {
  const run =
    (authority: Authority) =>
    ({ store }: BusinessDeps, request: Change & CommandRequest): Promise<CommandReply<T>> =>
      runCommand(store, request, of(request, authority));
  return [run(ofOwnersAndAdmins), run(ofOperators)] as const;
}

/** What a change is made of: the headers of a write have no part in it, so that it can be tried out as well. */
type Asked<Id extends 'addMember' | 'setMemberRole' | 'setMemberUsername' | 'removeMember'> = Pick<
  BusinessRequest<Id>,
  'caller' | 'path' | 'body'
>;

export function adding(request: Asked<'addMember'>, authority: Authority) {
  const { orgID: organizationId } = request.path;
  const { email, name, role = 'member', username } = request.body;
  const wanted = [...new Set(request.body.permissions)].sort();
  const ends = newEnds(request.body.expires_at);
  const meaning = [
    foldEmail(email),
    name ?? '',
    role,
    username ?? '',
    wanted,
    ...(ends.size > 0 ? [[...ends]] : []),
  ];
  const about = { target: `${organizationId}/${foldEmail(email)}`, details: `role ${role}` };
  return managing(request, { operation: 'addMember', meaning, about }, authority, {
    concernsOwners: async () => role === 'owner',
    async change(tx) {
      requireAhead(wanted, ends, tx.now);
      const permissions = wanted.map((key) => ({
        key: requireGrantable(key),
        expiresAt: ends.get(key) ?? null,
      }));
      if (role !== 'member' && permissions.length > 0) {
        throw new DomainError('invalid_request', `An ${role} holds every permission; leave permissions out.`);
      }
      const { userId } = await findOrCreatePerson(tx, { email, displayName: name });
      await createMembership(tx, { organizationId, userId, email, role, username, permissions });
      return { result: await memberBody(tx, organizationId, userId), about: { subjectUserId: userId } };
    },
  });
}

export function settingRole(request: Asked<'setMemberRole'>, authority: Authority) {
  const { orgID: organizationId, userID: userId } = request.path;
  const { role } = request.body;
  const about = { ...aboutMember(organizationId, userId), details: `role → ${role}` };
  return managing(request, { operation: 'setMemberRole', meaning: [userId, role], about }, authority, {
    concernsOwners: async (tx) => role === 'owner' || (await roleOf(tx, organizationId, userId)) === 'owner',
    async change(tx) {
      const before = await roleOf(tx, organizationId, userId);
      await updateMemberRole(tx, { organizationId, userId, role });
      return {
        result: await memberBody(tx, organizationId, userId),
        about: { details: `role ${before} → ${role}` },
      };
    },
  });
}

function settingUsername(request: Asked<'setMemberUsername'>, authority: Authority) {
  const { orgID: organizationId, userID: userId } = request.path;
  const { username } = request.body;
  const about = { ...aboutMember(organizationId, userId), details: `username → ${username.slice(0, 80)}` };
  return managing(
    request,
    { operation: 'setMemberUsername', meaning: [userId, username], about },
    authority,
    {
      concernsOwners: async (tx) => (await roleOf(tx, organizationId, userId)) === 'owner',
      async change(tx) {
        const { username: before } = (await requireMember(tx, organizationId, userId)).username;
        await updateUsername(tx, { organizationId, userId, username });
        const details = `username ${before} → ${username}`;
        return { result: await memberBody(tx, organizationId, userId), about: { details } };
      },
    },
  );
}

export function removing(request: Asked<'removeMember'>, authority: Authority) {
  const { orgID: organizationId, userID: userId } = request.path;
  const about = aboutMember(organizationId, userId);
  return managing(request, { operation: 'removeMember', meaning: [userId], about }, authority, {
    concernsOwners: async (tx) => (await roleOf(tx, organizationId, userId)) === 'owner',
    async change(tx) {
      const before = await roleOf(tx, organizationId, userId);
      await removeMembership(tx, { organizationId, userId });
      return {
        result: { organization_id: organizationId, user_id: userId },
        about: { details: `was ${before}` },
      };
    },
  });
}

/** One command on an organization's membership: who may do it, and then the change. */
function managing<T>(
  { path, caller }: Pick<Request, 'caller'> & { path: { orgID: string } },
  what: { operation: string; meaning: readonly unknown[]; about: About },
  authority: Authority,
  body: {
    concernsOwners(tx: Tx): Promise<boolean>;
    change(tx: Tx): ReturnType<Command<T>['apply']>;
  },
): Command<T> {
  const { orgID: organizationId } = path;
  return {
    operation: authority.name(what.operation),
    meaning: [organizationId, ...what.meaning],
    about: { ...what.about, organizationId },
    async authorize(tx) {
      const manages = await authority.of(tx, organizationId, caller.userId);
      if (manages === 'owners' || !(await body.concernsOwners(tx))) return;
      throw new DomainError('forbidden', 'What concerns an owner needs an owner of the organization.');
    },
    apply: body.change,
  };
}

function aboutMember(organizationId: string, userId: string): About {
  return { target: `${organizationId}/${userId}`, subjectUserId: userId };
}

async function memberBody(tx: Tx, organizationId: string, userId: string) {
  return membershipBody(await requireMember(tx, organizationId, userId));
}

async function requireMember(tx: Tx, organizationId: string, userId: string) {
  const member = await findMember(tx.db, organizationId, userId);
  if (!member) throw memberNotFound();
  return member;
}

async function roleOf(tx: Tx, organizationId: string, userId: string): Promise<Role | undefined> {
  return (await findMembership(tx.db, organizationId, userId, tx.now))?.role;
}

function requireGrantable(key: string): PermissionKey {
  if (isPermissionKey(key)) return key;
  throw new DomainError(
    'invalid_request',
    `${JSON.stringify(key.slice(0, 80))} is not a permission that can be granted.`,
  );
}
