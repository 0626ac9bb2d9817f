/** Teams of organizations: POSIX groups on their Slurm clusters. A name and its number are never given to another one. */
import { invalidState, notFound } from '../../domain/error.ts';
import {
  checkTeamName,
  groupNameOf,
  type ManifestGroup,
  mostTeams,
  type Team,
} from '../../domain/organizations/membership.ts';
import type { Reader, Tx } from '../engine/index.ts';
import { deleteRows, findRow, insertRow, listRows, updateRows } from '../engine/rows.ts';
import { toTime } from '../engine/time.ts';
import { findOrganization, requireActiveOrganization } from '../organizations/organizations.ts';
import { raiseVersion } from './access-list-users.ts';
import { allocateGid } from './numbers.ts';

interface TeamName {
  organizationId: string;
  name: string;
}

/** The teams of an organization, by name. */
export async function listTeams(db: Reader, organizationId: string): Promise<Team[]> {
  const teams = await listRows(db, 'teams', { org_id: organizationId, ended_at: null }, 'name');
  if (teams.length === 0) return [];
  const members = await db
    .selectFrom('team_members as t')
    .innerJoin('users as u', 'u.id', 't.user_id')
    .innerJoin('organization_usernames as n', (join) =>
      join.onRef('n.org_id', '=', 't.org_id').onRef('n.user_id', '=', 't.user_id'),
    )
    .select(['t.name as team', 't.user_id as userId', 'u.primary_email as email', 'n.username'])
    .where('t.org_id', '=', organizationId)
    .orderBy('u.primary_email')
    .execute();
  const byTeam = Map.groupBy(members, ({ team }) => team);
  return teams.map(({ name, gid, is_whole }) => ({
    ...{ name, gid, isWhole: is_whole === 1 },
    members: (byTeam.get(name) ?? []).map(({ team: _, ...member }) => member),
  }));
}

/** The groups of an organization with those of `usernames` who are in them. */
export async function listGroups(
  db: Reader,
  organizationId: string,
  usernames: readonly string[],
): Promise<ManifestGroup[]> {
  const listed = new Set(usernames);
  return (await listTeams(db, organizationId)).map(({ name, gid, isWhole, members }) => {
    const names = members.map(({ username }) => username).filter((username) => listed.has(username));
    return { name, gid, members: isWhole ? usernames : names };
  });
}

/**
 * Makes a team, or replaces its members (`undefined`: everyone); returns whether that changed anything. The first one of an organization
 * also makes the group of everyone. Throws `invalid_request` for a name that no team can have, `invalid_state` for a number that the team
 * does not have or that is another's, and for people who are no members.
 */
export async function saveTeam(
  tx: Tx,
  team: TeamName & { gid?: number | undefined; userIds: readonly string[] | undefined },
): Promise<boolean> {
  const { organizationId, name, gid, userIds } = team;
  await requireActiveOrganization(tx.db, organizationId);
  const all = await listRows(tx.db, 'teams', { org_id: organizationId });
  const before = all.find((one) => one.name === name);
  if (before && gid !== undefined && gid !== before.gid)
    throw invalidState(`The team ${name} has the gid ${before.gid} for good.`);
  if (!before) {
    checkTeamName(name);
    if (all.filter(({ ended_at }) => ended_at === null).length >= mostTeams)
      throw invalidState(`The organization has ${mostTeams} teams, which is the limit.`);
    await insertTeam(tx, { organizationId, name, gid, isWhole: userIds === undefined });
    if (all.length === 0 && userIds !== undefined) await insertWhole(tx, organizationId);
  }
  const hasMembers = await updateMembers(tx, { organizationId, name }, userIds ?? []);
  const isWhole = userIds === undefined ? 1 : 0;
  const isSame = before?.ended_at === null && before.is_whole === isWhole;
  if (isSame && !hasMembers) return false;
  await updateRows(tx.db, 'teams', { org_id: organizationId, name }, { is_whole: isWhole, ended_at: null });
  await announce(tx, organizationId);
  return true;
}

/** Ends a team; its name and number stay. Throws `not_found` when there is none. */
export async function endTeam(tx: Tx, { organizationId, name }: TeamName): Promise<void> {
  const of = { org_id: organizationId, name };
  if (!(await findRow(tx.db, 'teams', { ...of, ended_at: null }))) throw teamNotFound();
  await updateRows(tx.db, 'teams', of, { ended_at: toTime(tx.now) });
  await deleteRows(tx.db, 'team_members', of);
  await announce(tx, organizationId);
}

export function teamNotFound() {
  return notFound('The organization has no such team.');
}

async function announce(tx: Tx, organizationId: string): Promise<void> {
  await raiseVersion(tx, organizationId);
  tx.changed({ kind: 'organization', organizationId });
}

async function insertWhole(tx: Tx, organizationId: string): Promise<void> {
  const { slug = '' } = (await findOrganization(tx.db, organizationId)) ?? {};
  const name = groupNameOf(slug);
  if (await findRow(tx.db, 'teams', { org_id: organizationId, name })) return;
  await insertTeam(tx, { organizationId, name, gid: undefined, isWhole: true });
}

async function insertTeam(
  tx: Tx,
  { organizationId, name, ...team }: TeamName & { gid: number | undefined; isWhole: boolean },
): Promise<void> {
  const person = await findRow(tx.db, 'organization_usernames', { org_id: organizationId, username: name });
  if (person)
    throw invalidState(`The name ${name} is, or was, a person's here, and a person's group has it.`);
  const gid = team.gid === undefined ? await allocateGid(tx) : await freeNumber(tx, organizationId, team.gid);
  await insertRow(tx.db, 'teams', {
    org_id: organizationId,
    ...{ name, gid, is_whole: team.isWhole ? 1 : 0 },
    created_at: toTime(tx.now),
    ended_at: null,
  });
}

/** The number that an operator gives. Throws `invalid_state` where it is another team's or a person's here. */
async function freeNumber(tx: Tx, organizationId: string, gid: number): Promise<number> {
  const team = await findRow(tx.db, 'teams', { org_id: organizationId, gid });
  if (team) throw invalidState(`The gid ${gid} is, or was, that of the team ${team.name}.`);
  const of = { org_id: organizationId };
  const person =
    (await findRow(tx.db, 'organization_usernames', { ...of, uid: gid, gid: null })) ??
    (await findRow(tx.db, 'organization_usernames', { ...of, gid }));
  if (person) throw invalidState(`The gid ${gid} is, or was, that of ${person.username}.`);
  return gid;
}

/** Returns whether that changed anything. */
async function updateMembers(
  { db }: Tx,
  { organizationId, name }: TeamName,
  userIds: readonly string[],
): Promise<boolean> {
  const of = { org_id: organizationId, name };
  const had = new Set((await listRows(db, 'team_members', of)).map(({ user_id }) => user_id));
  const wanted = new Set(userIds);
  const [added, removed] = [wanted.difference(had), had.difference(wanted)];
  for (const userId of added) {
    const who = { org_id: organizationId, user_id: userId };
    if (!(await findRow(db, 'memberships', { ...who, lifecycle_state: 'active' })))
      throw invalidState('A team has members of its organization only.');
    await insertRow(db, 'team_members', { ...of, user_id: userId });
  }
  for (const userId of removed) await deleteRows(db, 'team_members', { ...of, user_id: userId });
  return added.size + removed.size > 0;
}
