/**
 * Plans the steps from the present installation to the one that a lab file describes. The file's settings are
 * applied; everything it leaves out stays, unless pruning is asked for. A second plan, after the steps, is empty.
 */
import type { Role } from '../access/permission.ts';
import { parseSshPublicKey } from '../access/ssh-key.ts';
import { invalidRequest, invalidState } from '../error.ts';
import { foldEmail } from '../people/person.ts';
import { present } from '../present.ts';
import { accountingChange } from '../slurm/accounting.ts';
import { checkDirectDate, directChange } from '../slurm/direct.ts';
import { restartsForPeople, type SlurmSettings } from '../slurm/settings.ts';
import {
  checkDriver,
  grantName,
  type Lab,
  type LabCluster,
  type LabGrant,
  type LabGroup,
  type LabOrganization,
  type LabUser,
} from './lab.ts';
import { LabError, type LabMember } from './lab-member.ts';

/** A step of the plan. An update contains only the changed fields and the identity of its subject. */
export type LabStep = { action: 'create' | 'update' | 'remove'; name: string; details: string } & (
  | { kind: 'person'; person: LabUser }
  | { kind: 'organization'; organization: Partial<LabOrganization> & { slug: string } }
  | { kind: 'member'; organization: string; member: Partial<LabMember> & { email: string } }
  | { kind: 'team'; organization: string; group: LabGroup }
  | { kind: 'cluster'; cluster: Partial<LabCluster> & { name: string } }
  | { kind: 'grant'; grant: LabGrant }
);

export interface PlanOptions {
  prune: boolean;
  /** Milliseconds since 1970. */
  now: number;
  /** Addresses of deactivated accounts. A person whom only an ended grant names stays as they are. */
  deactivated?: ReadonlySet<string>;
}

/**
 * The steps in an executable order: prerequisites first, removals last. Throws `invalid_request` for a forbidden
 * setting, `invalid_state` for one that cannot be changed any more.
 */
export function planLab(current: Lab, wanted: Lab, options: PlanOptions): LabStep[] {
  if (options.prune && Object.keys(wanted).length === 0) {
    throw invalidRequest('The file is empty: pruning with it would take everything away.');
  }
  const steps = [
    ...people(current, wanted, options),
    ...organizations(current, wanted),
    ...members(current, wanted),
    ...teams(current, wanted),
    ...clusters(current, wanted, options.now),
    ...grants(current, wanted, options.now),
  ];
  return options.prune ? [...steps, ...removals(current, wanted)] : steps;
}

function people(current: Lab, wanted: Lab, { now, deactivated }: PlanOptions): LabStep[] {
  const known = new Map((current.users ?? []).map((user) => [key(user.email), user]));
  const steps: (LabStep & { kind: 'person' })[] = [];
  for (const user of wanted.users ?? []) {
    const email = key(user.email);
    const before = known.get(email);
    if (!before) {
      const details = joinDetails(
        user.name,
        user.staff?.length ? `staff keys ${user.staff.join(', ')}` : undefined,
      );
      steps.push({ action: 'create', kind: 'person', name: email, details, person: user });
      known.set(email, user);
      continue;
    }
    const difference = differenceOf(before, user, { name: 'name', staff: 'staff keys' });
    if (!difference) continue;
    const { changed, details } = difference;
    steps.push({ action: 'update', kind: 'person', name: email, details, person: { email, ...changed } });
  }
  const named = [
    ...(wanted.organizations ?? [])
      .flatMap((organization) => organization.members ?? [])
      .map(({ email }) => email),
    // A grant's person has an account even if the grant has ended.
    ...(wanted.grants ?? [])
      .filter((grant) => isLive(grant, now) || !deactivated?.has(key(grant.user)))
      .map(({ user }) => user),
  ];
  for (const name of new Set(named.map(key))) {
    if (known.has(name)) continue;
    steps.push({ action: 'create', kind: 'person', name, details: '', person: { email: name } });
  }
  // New operators come before old ones lose the role.
  const isOperator = (step: (typeof steps)[number]) => step.person.staff?.includes('staff.operate') ?? false;
  return steps.sort((a, b) => Number(isOperator(b)) - Number(isOperator(a)));
}

function organizations(current: Lab, wanted: Lab): LabStep[] {
  const known = new Map((current.organizations ?? []).map((one) => [one.slug, one]));
  return (wanted.organizations ?? []).flatMap((organization, index): LabStep[] => {
    const { slug, autoJoinDomains, maxHoursWithoutSignIn: hours } = organization;
    const before = known.get(slug);
    const common = { kind: 'organization' as const, name: slug };
    if (!before) {
      if (!organization.members?.some((member) => member.role === 'owner')) {
        throw new LabError(`Organization ${slug} needs an owner.`, ['organizations', index]);
      }
      const details = joinDetails(
        organization.name,
        autoJoinDomains && `domains ${set(autoJoinDomains)}`,
        hours === undefined ? '' : `hours without a sign-in ${hours}`,
      );
      return [{ action: 'create', ...common, details, organization }];
    }
    const folded = { ...organization, ...present({ autoJoinDomains: autoJoinDomains?.map(key) }) };
    const difference = differenceOf(before, folded, {
      name: 'name',
      autoJoinDomains: 'domains',
      maxHoursWithoutSignIn: 'hours without a sign-in',
    });
    if (!difference) return [];
    const { changed, details } = difference;
    return [{ action: 'update', ...common, details, organization: { slug, ...changed } }];
  });
}

function members(current: Lab, wanted: Lab): LabStep[] {
  const steps: LabStep[] = [];
  for (const { slug, members: list = [] } of wanted.organizations ?? []) {
    const organization = (current.organizations ?? []).find((one) => one.slug === slug);
    const known = new Map((organization?.members ?? []).map((member) => [key(member.email), member]));
    for (const member of list) {
      const step = memberStep(slug, known.get(key(member.email)), member);
      if (step) steps.push(step);
    }
  }
  // Given login names come before generated ones; new owners before old ones lose the role.
  return steps.sort((a, b) => order(a) - order(b));
}

function order(step: LabStep): number {
  if (step.kind !== 'member') return 0;
  if (step.action === 'create') return step.member.username === undefined ? 1 : 0;
  return step.member.role === 'owner' ? 2 : 3;
}

function memberStep(slug: string, before: LabMember | undefined, member: LabMember): LabStep | undefined {
  const email = key(member.email);
  const common = { kind: 'member' as const, organization: slug, name: `${slug}/${email}` };
  const granted = grantable(member.role, member.permissions);
  const fingerprints = member.keys?.map((line) => parseSshPublicKey(line).fingerprint) ?? [];
  const keys = fingerprints.length > 0 ? `keys ${set(fingerprints)}` : undefined;
  if (!before) {
    const details = joinDetails(
      `role ${member.role}`,
      member.username && `username ${member.username}`,
      member.uid && `uid ${member.uid}`,
      member.gid && `gid ${member.gid}`,
      granted?.length ? set(granted) : undefined,
      keys,
    );
    const { permissions: _, ...rest } = member;
    const created = { ...rest, email, ...present({ permissions: granted }) };
    return { action: 'create', ...common, details, member: created };
  }
  const difference = differenceOf(
    { ...before, permissions: grantable(before.role, before.permissions) },
    { ...member, permissions: granted },
    { role: 'role', username: 'username', uid: 'uid', gid: 'gid', permissions: 'permissions' },
  );
  if (!difference && !keys) return undefined;
  const { changed = {}, details } = difference ?? {};
  const hasNumbers = changed.uid !== undefined || changed.gid !== undefined;
  const numbers = hasNumbers ? present({ uid: member.uid, gid: member.gid }) : {};
  const updated = { email, ...changed, ...numbers, ...(keys && present({ keys: member.keys })) };
  return { action: 'update', ...common, details: joinDetails(details, keys), member: updated };
}

function teams(current: Lab, wanted: Lab): LabStep[] {
  const membersOf = ({ members }: LabGroup) => members && set(members.map(key));
  return (wanted.organizations ?? []).flatMap(({ slug, groups = [] }) => {
    const organization = (current.organizations ?? []).find((one) => one.slug === slug);
    const known = new Map((organization?.groups ?? []).map((group) => [group.name, group]));
    return groups.flatMap((group): LabStep[] => {
      const { name, gid } = group;
      const common = { kind: 'team' as const, name: `${slug}/${name}`, organization: slug, group };
      const [before, after] = [known.get(name), membersOf(group) ?? 'everyone'];
      if (!before) {
        const details = joinDetails(gid === undefined ? '' : `gid ${gid}`, `members ${after}`);
        return [{ action: 'create', ...common, details }];
      }
      const had = membersOf(before) ?? 'everyone';
      const details = joinDetails(
        gid === undefined || gid === before.gid ? '' : change('gid', `${before.gid}`, `${gid}`),
        after === had ? '' : change('members', had, after),
      );
      return details === '' ? [] : [{ action: 'update', ...common, details }];
    });
  });
}

/** Owners and admins hold every permission, so nothing can be granted to them. */
function grantable(role: Role, permissions: LabMember['permissions']): LabMember['permissions'] {
  return role === 'member' ? permissions : undefined;
}

function clusters(current: Lab, wanted: Lab, now: number): LabStep[] {
  const known = new Map(
    (current.clusters ?? []).map((one) => [one.name, { reservedNodes: 0, links: [], ...one }]),
  );
  const slugs = new Set(
    [...(current.organizations ?? []), ...(wanted.organizations ?? [])].map((one) => one.slug),
  );
  return (wanted.clusters ?? []).flatMap((cluster, index): LabStep[] => {
    const { name, organization } = cluster;
    if (!slugs.has(organization)) {
      throw new LabError(`Cluster ${name} names the organization ${organization}, which does not exist.`, [
        'clusters',
        index,
        'organization',
      ]);
    }
    const before = known.get(name);
    const common = { kind: 'cluster' as const, name };
    checkDirectDate(cluster, before?.slurm?.direct, now);
    if (!before) {
      const details = joinDetails(
        cluster.scheduler && `scheduler ${cluster.scheduler}`,
        `organization ${organization}`,
        ...(cluster.slurm ? slurmChanges(undefined, cluster.slurm) : []),
      );
      return [{ action: 'create', ...common, details, cluster }];
    }
    for (const field of ['id', 'organization', 'scheduler'] as const) {
      const asked = field === 'id' ? cluster.id?.toLowerCase() : cluster[field];
      if (asked === undefined || asked === before[field]) continue;
      throw invalidState(
        `Cluster ${name} has the ${field} ${before[field] ?? 'none'}, which cannot change to ${asked}. Release it and add another.`,
      );
    }
    const changed: Partial<LabCluster> = {};
    for (const field of ['site', 'reservedNodes', 'links', 'simulated', 'slurm', 'kubernetes'] as const) {
      if (cluster[field] !== undefined && !isSame(cluster[field], before[field]))
        Object.assign(changed, { [field]: cluster[field] });
    }
    if (Object.keys(changed).length === 0) return [];
    checkDriver({ ...before, ...changed });
    const details = joinDetails(
      `new settings: ${Object.keys(changed).join(', ')}`,
      ...(changed.slurm ? slurmChanges(before.slurm, changed.slurm) : []),
    );
    return [{ action: 'update', ...common, details, cluster: { name, ...changed } }];
  });
}

function slurmChanges(before: SlurmSettings | undefined, wanted: SlurmSettings) {
  return [
    restartsForPeople(wanted),
    accountingChange(before?.accounting, wanted.accounting),
    directChange(before?.direct, wanted.direct),
  ];
}

function grants(current: Lab, wanted: Lab, now: number): LabStep[] {
  const steps: LabStep[] = [];
  const known = new Map((current.grants ?? []).map((grant) => [grantName(grant), grant]));
  const names = new Set(
    [...(current.clusters ?? []), ...(wanted.clusters ?? [])].map((cluster) => cluster.name),
  );
  for (const [index, grant] of (wanted.grants ?? []).entries()) {
    if (!names.has(grant.cluster)) {
      const at = ['grants', index, 'cluster'];
      throw new LabError(`A grant names the cluster ${grant.cluster}, which does not exist.`, at);
    }
    if (!isLive(grant, now)) continue;
    const before = known.get(grantName(grant));
    const common = { kind: 'grant' as const, name: grantName(grant), grant };
    if (!before) {
      const details = joinDetails(grant.expiresAt && `until ${grant.expiresAt}`);
      steps.push({ action: 'create', ...common, details });
    } else if (
      grant.expiresAt !== undefined &&
      Date.parse(grant.expiresAt) !== Date.parse(before.expiresAt ?? '')
    ) {
      const details = change('until', before.expiresAt, grant.expiresAt);
      steps.push({ action: 'update', ...common, details });
    }
  }
  return steps;
}

function removals(current: Lab, wanted: Lab): LabStep[] {
  const action = 'remove' as const;
  const keptGrants = new Set(wanted.grants?.map(grantName));
  const keptClusters = new Set(wanted.clusters?.map(({ name }) => name));
  const keptMembers = new Map(
    wanted.organizations?.map(({ slug, members = [] }) => [
      slug,
      new Set(members.map(({ email }) => key(email))),
    ]),
  );
  return [
    ...(current.grants ?? [])
      .map((grant) => ({ action, kind: 'grant' as const, name: grantName(grant), details: 'revoked', grant }))
      .filter(({ name }) => !keptGrants.has(name)),
    ...(current.clusters ?? [])
      .filter(({ name }) => !keptClusters.has(name))
      .map((cluster) => ({
        action,
        kind: 'cluster' as const,
        name: cluster.name,
        details: 'released',
        cluster,
      })),
    ...teamRemovals(current, wanted),
    ...(current.organizations ?? []).flatMap(({ slug, members = [] }) => {
      // Members of an organization that the file does not name stay: pruning does not apply to them.
      const kept = keptMembers.get(slug);
      return members
        .filter(({ email }) => kept && !kept.has(key(email)))
        .map((member) => ({
          action,
          kind: 'member' as const,
          name: `${slug}/${member.email}`,
          details: `was ${member.role}`,
          organization: slug,
          member,
        }));
    }),
  ];
}

function teamRemovals(current: Lab, wanted: Lab): LabStep[] {
  return (current.organizations ?? []).flatMap(({ slug, groups = [] }) => {
    const kept = wanted.organizations?.find((one) => one.slug === slug)?.groups;
    // The group of everyone comes with the first one, whatever the file names.
    const goes = ({ name, members }: LabGroup) =>
      kept && !kept.some((one) => one.name === name) && (members || kept.length === 0);
    return groups.filter(goes).map((group) => {
      const common = { action: 'remove' as const, kind: 'team' as const, name: `${slug}/${group.name}` };
      return { ...common, details: `gid ${group.gid}`, organization: slug, group };
    });
  });
}

function isLive({ expiresAt }: LabGrant, now: number): boolean {
  return expiresAt === undefined || Date.parse(expiresAt) > now;
}

/** Email addresses are compared without regard to case. */
function key(text: string): string {
  return foldEmail(text);
}

function set(values: readonly string[] | undefined): string {
  return [...new Set(values)].sort().join(', ') || 'none';
}

/**
 * The fields of `names` in which `wanted` differs from `before`, and a text of the changes with the display names of
 * `names`; undefined without a difference. Absent fields stay, and lists are compared as sets.
 */
function differenceOf<T extends object, Field extends keyof T & string>(
  before: T,
  wanted: { [Name in keyof T]?: T[Name] | undefined },
  names: Record<Field, string>,
): { changed: { [Name in Field]?: NonNullable<T[Name]> }; details: string } | undefined {
  const text = (value: unknown) => (Array.isArray(value) ? set(value) : String(value ?? 'none'));
  const fields = (Object.keys(names) as Field[]).filter(
    (field) => wanted[field] !== undefined && text(wanted[field]) !== text(before[field]),
  );
  if (fields.length === 0) return undefined;
  const changed = Object.fromEntries(fields.map((field) => [field, wanted[field]]));
  const details = fields.map((field) => change(names[field], text(before[field]), text(wanted[field])));
  return { changed: changed as { [Name in Field]?: NonNullable<T[Name]> }, details: joinDetails(...details) };
}

/** Compares two settings, ignoring the order of keys. */
function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).sort();
  return Object.fromEntries(fields.map(([name, inner]) => [name, sorted(inner)]));
}

function change(what: string, before: string | undefined, after: string): string {
  return `${what} ${before ?? 'none'} → ${after}`;
}

function joinDetails(...parts: (string | number | undefined)[]): string {
  return parts.filter(Boolean).join('; ');
}
