/** The installation as a lab file, and the steps that bring it to one. */
import { isSameGrant, isWiderRole } from '../../domain/access/grant.ts';
import { forGood, type GrantedPermission, type PermissionKey } from '../../domain/access/permission.ts';
import { isInService } from '../../domain/clusters/cluster.ts';
import type { Lab, LabGroup } from '../../domain/clusters/lab.ts';
import type { LabMember } from '../../domain/clusters/lab-member.ts';
import { type LabStep, planLab } from '../../domain/clusters/lab-plan.ts';
import { invalidRequest } from '../../domain/error.ts';
import { present } from '../../domain/present.ts';
import { giveNumbers, listGivenNumbers } from '../access/numbers.ts';
import { endTeam, listTeams, saveTeam } from '../access/teams.ts';
import { appendAuditEntry } from '../audit/audit.ts';
import {
  createCluster,
  findClusterByName,
  listAllClusters,
  startRelease,
  updateClusterSettings,
} from '../clusters/clusters.ts';
import type { Reader, Store, Tx } from '../engine/index.ts';
import { toTime } from '../engine/time.ts';
import { createGrant, listAllLiveGrants, listLiveGrants, revokeGrant } from '../organizations/grants.ts';
import { findShares, listMembersAt } from '../organizations/holdings.ts';
import {
  createMembership,
  removeByHand,
  updateMemberPermissions,
  updateMemberRole,
  updateUsername,
} from '../organizations/membership-changes.ts';
import { listMembers } from '../organizations/memberships.ts';
import {
  createOrganization,
  findOrganizationBySlug,
  listOrganizations,
  updateAutoJoinDomains,
  updateOrganizationName,
  updateSignInHours,
} from '../organizations/organizations.ts';
import {
  findOrCreatePerson,
  findPersonByEmail,
  listPeople,
  systemUserId,
  updateDisplayName,
  updateStaffKeys,
} from '../people/people.ts';
import { refuseSimulated } from '../servers/servers.ts';
import { isEmpty } from './first-start.ts';
import { registerKeys } from './lab-keys.ts';

const pageSize = 500;

/** The installation as a file: its people, organizations and members, clusters in service, and live grants. */
export async function exportLab(db: Reader, now: number): Promise<Lab> {
  const organizations = (await listOrganizations(db)).filter(
    ({ organization }) => organization.lifecycleState === 'active',
  );
  const clusters = (await listAllClusters(db)).filter(isInService);
  const inService = new Set(clusters.map(({ id }) => id));
  const grants = (await listAllLiveGrants(db, now)).filter((grant) => inService.has(grant.clusterId));
  const slugs = new Map(organizations.map(({ organization }) => [organization.id, organization.slug]));
  return {
    users: await exportUsers(db),
    organizations: await Promise.all(
      organizations.map(async ({ organization, domains }) => {
        const members = await exportMembers(db, organization.id, now);
        const groups = await exportGroups(db, organization.id, members);
        return {
          slug: organization.slug,
          name: organization.displayName,
          ...(domains.length > 0 ? { autoJoinDomains: domains } : {}),
          ...present({ maxHoursWithoutSignIn: organization.maxHoursWithoutSignIn }),
          members,
          ...(groups.length > 0 && { groups }),
        };
      }),
    ),
    clusters: clusters.map((cluster) => ({
      name: cluster.name,
      id: cluster.id,
      organization: slugs.get(cluster.organizationId) ?? '',
      site: { id: cluster.siteId, name: cluster.siteName },
      ...(cluster.scheduler === null ? {} : { scheduler: cluster.scheduler }),
      ...(cluster.reservationId === null ? {} : { reservedNodes: cluster.expectedNodeCount ?? 0 }),
      ...(cluster.links.length === 0 ? {} : { links: [...cluster.links] }),
      ...cluster.driver,
    })),
    grants: grants.map(({ email: user, clusterName: cluster, relation, scope, roleId, expiresAt }) => {
      const grant = { user, cluster, relation, ...present({ namespace: scope, roleId }) };
      return { ...grant, ...(isWiderRole(grant) && { allowWiderRole: true }), ...present({ expiresAt }) };
    }),
  };
}

async function exportUsers(db: Reader): Promise<NonNullable<Lab['users']>> {
  const users: NonNullable<Lab['users']> = [];
  for (let after: string | undefined; ; ) {
    const page = await listPeople(db, { after, limit: pageSize });
    for (const { email, displayName, lifecycleState, staffKeys } of page) {
      if (lifecycleState !== 'active') continue;
      users.push({
        email,
        ...(displayName === email ? {} : { name: displayName }),
        ...(staffKeys.length > 0 ? { staff: staffKeys } : {}),
      });
    }
    if (page.length < pageSize) return users;
    after = page.at(-1)?.id;
  }
}

/** Leaves out what ends by itself, or comes from rules alone: a file holds until another file says otherwise. */
async function exportMembers(db: Reader, organizationId: string, now: number): Promise<LabMember[]> {
  const held = await listMembersAt(db, organizationId, toTime(now));
  const shares = new Map(held.map(({ userId, byHand }) => [userId, byHand]));
  const numbers = await listGivenNumbers(db, organizationId);
  return (await listMembers(db, organizationId)).flatMap(({ email, userId, username }) => {
    const byHand = shares.get(userId);
    if (!byHand) return [];
    const { role } = byHand;
    const permissions = role === 'member' ? withoutEnd(byHand.permissions) : [];
    const listed = permissions.length > 0 ? { permissions } : {};
    return [{ email, role, username: username.username, ...numbers.get(userId), ...listed }];
  });
}

/** With those of its members who are in the file too. */
async function exportGroups(
  db: Reader,
  organizationId: string,
  members: readonly LabMember[],
): Promise<LabGroup[]> {
  const listed = new Set(members.map(({ email }) => email));
  return (await listTeams(db, organizationId)).map(({ name, gid, isWhole, members }) => {
    const emails = members.map(({ email }) => email).filter((email) => listed.has(email));
    return { name, gid, ...(isWhole ? {} : { members: emails }) };
  });
}

function withoutEnd(granted: readonly GrantedPermission[]): PermissionKey[] {
  return granted.filter(({ expiresAt }) => expiresAt === null).map(({ key }) => key as PermissionKey);
}

interface Actor {
  actor: string;
  commandId: string | null;
}

/** Takes the steps of a plan, as `actor`. Throws the error of the first step that fails. */
export async function takeSteps(tx: Tx, steps: readonly LabStep[], by: Actor): Promise<void> {
  const { actor, commandId } = by;
  for (const step of steps) {
    if (step.kind === 'person') await takePersonStep(tx, step);
    else if (step.kind === 'organization') await takeOrganizationStep(tx, step, actor);
    else if (step.kind === 'member') await takeMemberStep(tx, step, by);
    else if (step.kind === 'team') await takeTeamStep(tx, step);
    else if (step.kind === 'cluster') await takeClusterStep(tx, step, commandId);
    else await takeGrantStep(tx, step, actor);
  }
}

type StepOf<Kind extends LabStep['kind']> = Extract<LabStep, { kind: Kind }>;

async function takePersonStep(tx: Tx, { action, person }: StepOf<'person'>): Promise<void> {
  const { email, name, staff } = person;
  const userId =
    action === 'create'
      ? (await findOrCreatePerson(tx, { email, displayName: name })).userId
      : await requireUserId(tx, email);
  if (action === 'update' && name !== undefined) await updateDisplayName(tx, { userId, displayName: name });
  if (staff) await updateStaffKeys(tx, { userId, keys: staff });
}

async function takeOrganizationStep(
  tx: Tx,
  { action, organization }: StepOf<'organization'>,
  actor: string,
): Promise<void> {
  const { slug, name, autoJoinDomains, maxHoursWithoutSignIn: hours } = organization;
  if (action === 'create') {
    const made = {
      slug,
      displayName: name ?? slug,
      autoJoinDomains: autoJoinDomains ?? [],
      createdBy: actor,
    };
    const organizationId = await createOrganization(tx, made);
    if (hours !== undefined) await updateSignInHours(tx, { organizationId, hours });
    return;
  }
  const organizationId = await requireOrganizationId(tx, slug);
  if (name !== undefined) await updateOrganizationName(tx, { organizationId, displayName: name });
  if (autoJoinDomains) await updateAutoJoinDomains(tx, { organizationId, domains: autoJoinDomains });
  if (hours !== undefined) await updateSignInHours(tx, { organizationId, hours });
}

async function takeMemberStep(tx: Tx, step: StepOf<'member'>, by: Actor): Promise<void> {
  const { email, role, username, uid, gid, keys, permissions } = step.member;
  const organizationId = await requireOrganizationId(tx, step.organization);
  const userId = await requireUserId(tx, email);
  const member = { organizationId, userId };
  if (step.action === 'remove') return removeByHand(tx, member);
  if (step.action === 'create') {
    const granted = forGood(permissions ?? []);
    await createMembership(tx, { ...member, email, role: role ?? 'member', username, permissions: granted });
  }
  if (uid !== undefined) await giveNumbers(tx, { ...member, uid, gid });
  if (keys) await registerKeys(tx, { userId, keys, ...by });
  if (step.action === 'create') return;
  if (role !== undefined) await updateMemberRole(tx, { ...member, role }, { isFile: true });
  if (username !== undefined) await updateUsername(tx, { ...member, username });
  if (!permissions) return;
  const held = (await findShares(tx.db, member, tx.now)).byHand?.permissions ?? [];
  const ending = held.filter(
    ({ key, expiresAt }) => expiresAt !== null && !permissions.includes(key as PermissionKey),
  );
  const granted = [...forGood(permissions), ...ending];
  await updateMemberPermissions(tx, { ...member, permissions: granted }, { isFile: true });
}

async function takeTeamStep(tx: Tx, { action, organization, group }: StepOf<'team'>): Promise<void> {
  const { name, gid, members } = group;
  const organizationId = await requireOrganizationId(tx, organization);
  if (action === 'remove') return endTeam(tx, { organizationId, name });
  const userIds = members && (await Promise.all(members.map((email) => requireTeamMember(tx, name, email))));
  await saveTeam(tx, { organizationId, name, gid, userIds });
}

async function requireTeamMember(tx: Tx, team: string, email: string): Promise<string> {
  const user = await findPersonByEmail(tx.db, email);
  if (!user) throw invalidRequest(`The group ${team} has the member ${email}, whom no organization has.`);
  return user.id;
}

async function takeClusterStep(
  tx: Tx,
  { action, name, cluster }: StepOf<'cluster'>,
  commandId: string | null,
): Promise<void> {
  if (action === 'create') {
    const { organization = '', ...rest } = cluster;
    await createCluster(tx, { ...rest, organizationId: await requireOrganizationId(tx, organization) });
    return refuseSimulated(tx);
  }
  const found = await findClusterByName(tx.db, name);
  if (!found) throw new Error(`cluster ${name} is gone`);
  if (action === 'remove') await startRelease(tx, { clusterId: found.id, commandId });
  else await updateClusterSettings(tx, found, cluster);
}

async function takeGrantStep(tx: Tx, { action, grant }: StepOf<'grant'>, actor: string): Promise<void> {
  const cluster = await findClusterByName(tx.db, grant.cluster);
  const wanted = {
    clusterId: cluster?.id ?? '',
    userId: await requireUserId(tx, grant.user),
    relation: grant.relation,
    scope: grant.namespace ?? null,
    roleId: grant.roleId ?? null,
  };
  if (action !== 'create') {
    const live = await listLiveGrants(tx.db, wanted.userId, tx.now);
    for (const one of live) if (isSameGrant(one, wanted)) await revokeGrant(tx, one.id);
  }
  if (action === 'remove') return;
  const expiresAt = grant.expiresAt === undefined ? null : toTime(Date.parse(grant.expiresAt));
  await createGrant(tx, { ...wanted, expiresAt, grantedBy: actor });
}

async function requireUserId(tx: Tx, email: string): Promise<string> {
  const user = await findPersonByEmail(tx.db, email);
  if (!user) throw new Error('a plan makes people before they are needed');
  return user.id;
}

async function requireOrganizationId(tx: Tx, slug: string): Promise<string> {
  const organization = await findOrganizationBySlug(tx.db, slug);
  if (!organization) throw new Error('a plan makes organizations before they are needed');
  return organization.id;
}

/** Makes all that a lab names in one transaction, as the installation itself; false if the database is not empty. */
export async function createInstallation(store: Store, lab: Lab, source: string): Promise<boolean> {
  return store.write(async (tx) => {
    if (!(await isEmpty(tx.db))) return false;
    const steps = planLab({}, lab, { prune: false, now: tx.now });
    await takeSteps(tx, steps, { actor: systemUserId, commandId: null });
    await appendAuditEntry(tx, {
      actorUserId: systemUserId,
      operation: 'createInstallation',
      target: source,
      reason: 'First start on an empty database',
      result: 'done',
    });
    return true;
  });
}
