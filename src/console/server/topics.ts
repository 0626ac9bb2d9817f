/**
 * The topics of the live stream, and who receives them. A topic names something that a person may read; its new state
 * they read by an operation of the APIs, which checks their permissions again.
 *
 *     me                 the person, their keys and memberships
 *     sign-ins           the browsers that they are signed in with
 *     organization/ID    an organization that they belong to      members/ID    its members
 *     requests           what they asked for                  requests/ORG  what members of one ask for, for people who decide
 *     cluster/UUID       a cluster that they may see or use, or whose access list they may see
 *     installation       for operators: anything that they see
 *     ssh-sessions       for operators: who is logged in           my-ssh-sessions   for the person: their own sessions
 *     everything         too many changes to list
 */
import { isInService } from '../../domain/clusters/cluster.ts';
import { listOrganizationClusters } from '../../store/clusters/clusters.ts';
import type { Heard, Reader } from '../../store/engine/index.ts';
import { fromTime } from '../../store/engine/time.ts';
import { listLiveGrants } from '../../store/organizations/grants.ts';
import { findMembership, listMembershipsOf } from '../../store/organizations/memberships.ts';
import { listStaffKeys } from '../../store/people/people.ts';

/** What a person may receive topics of. */
export interface View {
  userId: string;
  organizations: ReadonlySet<string>;
  /** Those of which they may set permissions. */
  managed: ReadonlySet<string>;
  /** Clusters that they may see or use, and those in service on which they follow the members that they manage, by ID. */
  clusters: ReadonlySet<string>;
  isStaff: boolean;
  /** When the first grant that it rests on ends by itself, in ms since 1970. */
  until: number;
}

/** What a person may receive topics of now. */
export async function viewOf(db: Reader, userId: string, now: number): Promise<View> {
  const [memberships, grants, staffKeys] = await Promise.all([
    listMembershipsOf(db, userId),
    listLiveGrants(db, userId, now),
    listStaffKeys(db, userId),
  ]);
  const organizations = memberships.map(({ organizationId }) => organizationId);
  const clusters = new Set(grants.map(({ clusterId }) => clusterId));
  const managed = new Set<string>();
  for (const organizationId of organizations) {
    const held = await findMembership(db, organizationId, userId, now);
    const isManager = held?.permissions.has('members.manage') ?? false;
    if (isManager) managed.add(organizationId);
    const isOfClusters = [...(held?.permissions ?? [])].some((key) => key.startsWith('clusters.'));
    if (!isManager && !isOfClusters) continue;
    for (const cluster of await listOrganizationClusters(db, organizationId)) {
      // Of the others, the list of access (`listMemberAccess`) says nothing.
      if (isOfClusters || isInService(cluster)) clusters.add(cluster.id);
    }
  }
  const until = Math.min(
    ...grants.map(({ expiresAt }) => (expiresAt === null ? Infinity : fromTime(expiresAt))),
  );
  return {
    userId,
    organizations: new Set(organizations),
    managed,
    clusters,
    isStaff: staffKeys.length > 0,
    until,
  };
}

/** Changes of a short while, gathered. */
export interface Changed {
  people: ReadonlySet<string>;
  /** People whose sign-ins to the console changed. */
  browsersOf: ReadonlySet<string>;
  /** People who asked for something, or whose requests were decided, and where. */
  askers: ReadonlySet<string>;
  askedIn: ReadonlySet<string>;
  organizations: ReadonlySet<string>;
  /** Those of which something was decided or reported. */
  clusters: ReadonlySet<string>;
  /** Those of which something was decided. */
  decided: ReadonlySet<string>;
  /** The organizations that the people belong to. */
  organizationsOfPeople: ReadonlySet<string>;
}

const mostPeople = 200;
const newSet = () => new Set<string>();

/** Undefined where there are too many to look at one by one, or everything may have changed. */
export async function gather(
  db: Reader,
  changes: readonly Heard<'consoleTopics'>[],
): Promise<Changed | undefined> {
  if (changes.some((change) => change.kind === 'everything')) return undefined;
  const [people, browsersOf, askers, askedIn] = [newSet(), newSet(), newSet(), newSet()];
  const [organizations, clusters, decided] = [newSet(), newSet(), newSet()];
  for (const change of changes) {
    if (change.kind === 'person') people.add(change.userId);
    else if (change.kind === 'browsers') browsersOf.add(change.userId);
    else if (change.kind === 'requests') {
      askers.add(change.userId);
      askedIn.add(change.organizationId);
    } else if (change.kind === 'organization') organizations.add(change.organizationId);
    else if (change.kind === 'report' || change.kind === 'cluster') {
      clusters.add(change.clusterId);
      if (change.kind === 'cluster') decided.add(change.clusterId);
    }
  }
  if (people.size > mostPeople) return undefined;
  const memberships = await Promise.all([...people].map((userId) => listMembershipsOf(db, userId)));
  const organizationsOfPeople = new Set(memberships.flat().map(({ organizationId }) => organizationId));
  return { people, browsersOf, askers, askedIn, organizations, clusters, decided, organizationsOfPeople };
}

/** The topics of these changes that the person may receive. */
export function topicsFor(view: View, changed: Changed): string[] {
  const { people, browsersOf, askers, askedIn, organizations, clusters, organizationsOfPeople } = changed;
  const own = (ids: ReadonlySet<string>) => [...ids].filter((id) => view.organizations.has(id));
  return [
    ...(people.has(view.userId) ? ['me'] : []),
    ...(browsersOf.has(view.userId) ? ['sign-ins'] : []),
    ...(askers.has(view.userId) ? ['requests'] : []),
    ...[...askedIn].filter((id) => view.managed.has(id)).map((id) => `requests/${id}`),
    ...own(organizations).flatMap((id) => [`organization/${id}`, `members/${id}`]),
    ...own(organizationsOfPeople).map((id) => `members/${id}`),
    ...[...clusters].filter((id) => view.isStaff || view.clusters.has(id)).map((id) => `cluster/${id}`),
    ...(view.isStaff ? ['installation'] : []),
  ];
}

/** Whether these changes can change the person's view: their own do; those of clusters may, by a grant. */
export function concerns(
  view: View,
  { people, organizations, decided }: Changed,
): 'own' | 'cluster' | undefined {
  const isOwn = people.has(view.userId) || [...organizations].some((id) => view.organizations.has(id));
  if (isOwn) return 'own';
  return decided.size > 0 ? 'cluster' : undefined;
}

export function merge(one: Changed, other: Changed): Changed {
  const names = Object.keys(one) as (keyof Changed)[];
  return Object.fromEntries(names.map((name) => [name, one[name].union(other[name])])) as unknown as Changed;
}
