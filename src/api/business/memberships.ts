/**
 * Memberships and teams: managed by owners and admins of the organization, and by operators. Changes that concern an owner need
 * an owner or an operator.
 */
import { isPermissionKey, type PermissionKey, type Role } from '../../domain/access/permission.ts';
import { forbidden, invalidRequest, invalidState } from '../../domain/error.ts';
import type { Request } from '../../domain/operation.ts';
import type { Team } from '../../domain/organizations/membership.ts';
import { foldEmail } from '../../domain/people/person.ts';
import { cutText } from '../../domain/text.ts';
import * as teams from '../../store/access/teams.ts';
import type { About } from '../../store/audit/commands.ts';
import { cachedAs } from '../../store/engine/cache.ts';
import type { Tx } from '../../store/engine/index.ts';
import {
  createMembership,
  removeByHand,
  updateMemberRole,
  updateUsername,
} from '../../store/organizations/membership-changes.ts';
import {
  findMember,
  findMembership,
  findMembersVersion,
  listMembers as listOrganizationMembers,
} from '../../store/organizations/memberships.ts';
import { findOrCreatePerson } from '../../store/people/people.ts';
import { membershipBody } from './me.ts';
import { memberNotFound, newEnds, requireAhead } from './member-permissions.ts';
import { type BusinessRequest, type CommandBody, type Operation, writes } from './operation.ts';
import { standingIn } from './organizations.ts';

export const listMembers: Operation<'listMembers'> = async ({ store }, { caller, path, now }) => {
  const reader = { organizationId: path.orgID, userId: caller.userId };
  await standingIn({ db: store.read, now }, reader, 'staff.read');
  const version = await findMembersVersion(store.read, path.orgID);
  return cachedAs(store, { key: `members/${path.orgID}`, version }, async () => {
    const members = await store.readSnapshot((db) => listOrganizationMembers(db, path.orgID));
    return { members: members.map(membershipBody) };
  });
};

export const addMember = writes('addMember', (_, request) => adding(request));
export const setMemberRole = writes('setMemberRole', (_, request) => settingRole(request));
export const removeMember = writes('removeMember', (_, request) => removing(request));

/** The parts of a request that define a change, without the headers of a write, so that plans can use it too. */
type MemberChange<Id extends 'addMember' | 'setMemberRole' | 'removeMember'> = Pick<
  BusinessRequest<Id>,
  'caller' | 'path' | 'body'
>;

export function adding(request: MemberChange<'addMember'>) {
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
  return managing(request, {
    meaning,
    about,
    concernsOwners: async () => role === 'owner',
    async apply(tx) {
      requireAhead(wanted, ends, tx.now);
      const permissions = wanted.map((key) => ({
        key: requireGrantable(key),
        expiresAt: ends.get(key) ?? null,
      }));
      if (role !== 'member' && permissions.length > 0) {
        throw invalidRequest(`An ${role} holds every permission; leave permissions out.`);
      }
      const { userId } = await findOrCreatePerson(tx, { email, displayName: name });
      await createMembership(tx, { organizationId, userId, email, role, username, permissions });
      return { result: await memberBody(tx, organizationId, userId), about: { subjectUserId: userId } };
    },
  });
}

export function settingRole(request: MemberChange<'setMemberRole'>) {
  const { orgID: organizationId, userID: userId } = request.path;
  const { role } = request.body;
  const about = { ...aboutMember(organizationId, userId), details: `role → ${role}` };
  return managing(request, {
    meaning: [userId, role],
    about,
    concernsOwners: async (tx) => role === 'owner' || (await roleOf(tx, organizationId, userId)) === 'owner',
    async apply(tx) {
      const before = await roleOf(tx, organizationId, userId);
      await updateMemberRole(tx, { organizationId, userId, role });
      return {
        result: await memberBody(tx, organizationId, userId),
        about: { details: `role ${before} → ${role}` },
      };
    },
  });
}

export const setMemberUsername = writes('setMemberUsername', (_, request) => {
  const { orgID: organizationId, userID: userId } = request.path;
  const { username } = request.body;
  const about = { ...aboutMember(organizationId, userId), details: `username → ${cutText(username, 80)}` };
  return managing(request, {
    meaning: [userId, username],
    about,
    concernsOwners: async (tx) => (await roleOf(tx, organizationId, userId)) === 'owner',
    async apply(tx) {
      const { username: before } = (await requireMember(tx, organizationId, userId)).username;
      await updateUsername(tx, { organizationId, userId, username });
      const details = `username ${before} → ${username}`;
      return { result: await memberBody(tx, organizationId, userId), about: { details } };
    },
  });
});

export function removing(request: MemberChange<'removeMember'>) {
  const { orgID: organizationId, userID: userId } = request.path;
  const about = aboutMember(organizationId, userId);
  return managing(request, {
    meaning: [userId],
    about,
    concernsOwners: async (tx) => (await roleOf(tx, organizationId, userId)) === 'owner',
    async apply(tx) {
      const before = await roleOf(tx, organizationId, userId);
      await removeByHand(tx, { organizationId, userId });
      return {
        result: { organization_id: organizationId, user_id: userId },
        about: { details: `was ${before}` },
      };
    },
  });
}

function managing<T>(
  { path, caller }: Pick<Request, 'caller'> & { path: { orgID: string } },
  {
    concernsOwners,
    ...command
  }: Omit<CommandBody<T>, 'authorize'> & { concernsOwners(tx: Tx): Promise<boolean> },
): CommandBody<T> {
  const { orgID: organizationId } = path;
  return {
    ...command,
    meaning: [organizationId, ...command.meaning],
    about: { ...command.about, organizationId },
    async authorize(tx) {
      const manager = { organizationId, userId: caller.userId };
      const isOwner = ({ role }: { role: Role }) => role === 'owner';
      const { role } = await standingIn(tx, manager, 'staff.operate', isOwner);
      if (role === 'owner') return;
      if (role !== 'admin') throw forbidden('Only owners and admins of the organization manage its members.');
      if (!(await concernsOwners(tx))) return;
      throw forbidden('What concerns an owner needs an owner of the organization.');
    },
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
  throw invalidRequest(`${JSON.stringify(cutText(key, 80))} is not a permission that can be granted.`);
}

export const listTeams: Operation<'listTeams'> = async ({ store }, { caller, path, now }) => {
  const reader = { organizationId: path.orgID, userId: caller.userId };
  await standingIn({ db: store.read, now }, reader, 'staff.read');
  return { teams: (await teams.listTeams(store.read, path.orgID)).map(teamBody) };
};

export const setTeam = writes('setTeam', (_, { path, body, caller }) => {
  const team = { organizationId: path.orgID, name: path.team };
  const userIds = [...new Set(body.members)].sort();
  return owning(caller.userId, team, {
    meaning: userIds,
    details: `${userIds.length} members`,
    async apply(tx) {
      const before = await findTeam(tx.db, team);
      if (before?.isWhole) throw invalidState(`Everyone in the organization is in ${team.name}.`);
      await teams.saveTeam(tx, { ...team, userIds });
      const after = await findTeam(tx.db, team);
      if (!after) throw teams.teamNotFound();
      const emails = after.members.map(({ email }) => email).join(', ') || 'none';
      return { result: teamBody(after), about: { details: `gid ${after.gid}, members → ${emails}` } };
    },
  });
});

export const removeTeam = writes('removeTeam', (_, { path, caller }) => {
  const team = { organizationId: path.orgID, name: path.team };
  return owning(caller.userId, team, {
    meaning: [],
    details: '',
    async apply(tx) {
      const before = await findTeam(tx.db, team);
      if (before?.isWhole) throw invalidState(`The group ${team.name} of everyone stays.`);
      await teams.endTeam(tx, team);
      return { result: { name: team.name } };
    },
  });
});

function owning<T>(
  userId: string,
  { organizationId, name }: { organizationId: string; name: string },
  { meaning, details, apply }: Pick<CommandBody<T>, 'meaning' | 'apply'> & { details: string },
): CommandBody<T> {
  return {
    apply,
    meaning: [organizationId, name, ...meaning],
    about: { target: cutText(name, 80), organizationId, details },
    async authorize(tx) {
      const who = { organizationId, userId };
      const { role } = await standingIn(tx, who, 'staff.operate', (own) => own.role === 'owner');
      if (role !== 'owner') throw forbidden('Only owners of the organization make teams.');
    },
  };
}

async function findTeam(
  db: Tx['db'],
  { organizationId, name }: { organizationId: string; name: string },
): Promise<Team | undefined> {
  return (await teams.listTeams(db, organizationId)).find((team) => team.name === name);
}

function teamBody({ name, gid, isWhole, members }: Team) {
  return {
    ...{ name, gid, everyone: isWhole },
    members: members.map(({ userId, email, username }) => ({ user_id: userId, email, username })),
  };
}
