/** Members' access on an organization's clusters: the ways in, and how far their latest changes have been applied. */
import { decideAccess } from '../../domain/access/decision.ts';
import { type AccessList, isRecent, isSameEntry } from '../../domain/access/manifest.ts';
import { requireHeld, seesClusters, withoutFaultDetails } from '../../domain/access/permission.ts';
import { type WayIn, waysIn } from '../../domain/access/ways-in.ts';
import {
  type Cluster,
  isInService,
  type Observation,
  type Side,
  type SideState,
  sideFailure,
  sidesOf,
  waitingFor,
  waitingText,
} from '../../domain/clusters/cluster.ts';
import { invalidRequest } from '../../domain/error.ts';
import { kubernetesAccessState } from '../../domain/kubernetes/bindings.ts';
import type { Membership } from '../../domain/organizations/membership.ts';
import { present, snakeCased } from '../../domain/present.ts';
import { findPersonOnCluster } from '../../store/access/access-facts.ts';
import { findListing, type Listing } from '../../store/access/access-list-users.ts';
import { findAccessList } from '../../store/access/access-lists.ts';
import { findKubernetesLookup, type KubernetesLookup } from '../../store/access/kubernetes-access.ts';
import { listOrganizationClusters } from '../../store/clusters/clusters.ts';
import { findObservation, listSideStates } from '../../store/clusters/observations.ts';
import type { Store } from '../../store/engine/index.ts';
import { listAllLiveGrants, listLiveGrants } from '../../store/organizations/grants.ts';
import {
  findMember,
  findPastMembership,
  listGrantedPermissions,
} from '../../store/organizations/memberships.ts';
import { findPerson } from '../../store/people/people.ts';
import { listActiveKeys } from '../../store/people/ssh-keys.ts';
import { observedGrantBodies } from './grants.ts';
import { requireHoldings } from './member-permissions.ts';
import type { BusinessReply, Operation } from './operation.ts';
import { ownMembership } from './organizations.ts';

type MemberAccess = BusinessReply<'listMemberAccess'>['people'][number];
type OnCluster = MemberAccess['clusters'][number];

const mostPeople = 100;

/** The facts of a cluster that are the same for everyone on it. */
interface ClusterFacts {
  cluster: Cluster;
  list: AccessList | undefined;
  observation: Observation<'slurm'> | undefined;
  sides: readonly SideState[];
  kubernetes: KubernetesLookup | undefined;
}

export const listMemberAccess: Operation<'listMemberAccess'> = async (
  { store },
  { caller, path, query, now },
) => {
  const { orgID: organizationId } = path;
  const own = await ownMembership(store.read, organizationId, caller.userId, now);
  const wanted = [...new Set(query.user_ids.split(','))];
  if (wanted.length > mostPeople)
    throw invalidRequest(`At most ${mostPeople} people can be asked for at once.`);
  if (wanted.some((id) => id !== caller.userId)) requireHeld(own.permissions, 'members.manage');
  const seesAll = seesClusters(own.permissions);
  const clusters = (await listOrganizationClusters(store.read, organizationId)).filter(isInService);
  const known = await Promise.all(clusters.map((cluster) => knownOf(store, cluster, now)));
  const people: MemberAccess[] = [];
  for (const userId of wanted) {
    const person = await accessOf(store, organizationId, userId, known, now);
    if (person) people.push(person);
  }
  if (seesAll) return { people, clusters: known.map(deliveryBody) };
  // Only the caller is listed here: requests for others were refused. Each person's clusters have the same order as `known`.
  const reached = known
    .filter((_, index) => people.some((one) => isReached(one.clusters[index])))
    .map(deliveryBody);
  return {
    people: people.map((one) => ({ ...one, clusters: one.clusters.filter(isReached).map(forMember) })),
    clusters: reached.map(({ failure: _, ...delivery }) => delivery),
  };
};

/** The access without fault details, for members who do not see the clusters. */
function forMember({ slurm, kubernetes, ...on }: OnCluster): OnCluster {
  return {
    ...on,
    ...(slurm && { slurm: withoutFaultDetails(slurm) }),
    ...(kubernetes && { kubernetes: withoutFaultDetails(kubernetes) }),
  };
}

function isReached(on: OnCluster | undefined): boolean {
  return on !== undefined && on.ways.length > 0;
}

export const listOrganizationGrants: Operation<'listOrganizationGrants'> = async (
  { store },
  { caller, path, now },
) => {
  await requireHoldings({ db: store.read, now }, path.orgID, caller.userId);
  const clusters = new Set((await listOrganizationClusters(store.read, path.orgID)).map(({ id }) => id));
  const grants = (await listAllLiveGrants(store.read, now)).filter((one) => clusters.has(one.clusterId));
  return { grants: await observedGrantBodies(store.read, grants) };
};

async function knownOf(store: Store, cluster: Cluster, now: number): Promise<ClusterFacts> {
  const isSlurm = cluster.scheduler === 'sunk';
  const [list, observation, sides, kubernetes] = await Promise.all([
    isSlurm ? findAccessList(store.read, cluster.id) : undefined,
    isSlurm ? findObservation(store.read, cluster.id, 'slurm') : undefined,
    listSideStates(store.read, cluster),
    sidesOf(cluster).includes('kubernetes') ? findKubernetesLookup(store, cluster, now) : undefined,
  ]);
  return { cluster, list, observation, sides, kubernetes };
}

/** Undefined for a person who is not and was not a member, and holds no grant here. */
async function accessOf(
  store: Store,
  organizationId: string,
  userId: string,
  clusters: readonly ClusterFacts[],
  now: number,
): Promise<MemberAccess | undefined> {
  const db = store.read;
  const ids = new Set(clusters.map(({ cluster }) => cluster.id));
  const [user, member, past, granted, keys, listing] = await Promise.all([
    findPerson(db, userId),
    findMember(db, organizationId, userId),
    findPastMembership(db, organizationId, userId),
    listGrantedPermissions(db, organizationId, userId, now),
    listActiveKeys(db, userId),
    findListing(store, organizationId, userId),
  ]);
  const grants = (await listLiveGrants(db, userId, now)).filter(({ clusterId }) => ids.has(clusterId));
  if (!user || (!member && !past && grants.length === 0)) return undefined;
  const registeredAfter = store.lapses.registeredAfter();
  return {
    user_id: userId,
    email: user.email,
    name: user.displayName,
    is_member: member !== undefined,
    ...(member ? memberBody(member) : present({ changed_at: past?.endedAt })),
    keys: keys
      .toSorted((a, b) => (a.createdAt < b.createdAt ? -1 : 1))
      .map((key) => ({
        ...snakeCased(key, ['fingerprint', 'createdAt']),
        lapsed: key.createdAt <= registeredAfter,
      })),
    clusters: await Promise.all(
      clusters.map(async (known): Promise<OnCluster> => {
        const { cluster, kubernetes } = known;
        const there = grants.filter(({ clusterId }) => clusterId === cluster.id);
        const ways = waysIn(sidesWithWays(cluster), member && { ...member, granted }, there);
        return {
          cluster_id: cluster.id,
          ways: ways.map(wayBody),
          ...(cluster.scheduler === 'sunk' && { slurm: await onSlurm(store, known, userId, listing, now) }),
          ...(kubernetes && { kubernetes: kubernetesAccessState(await kubernetes.of(userId)) }),
        };
      }),
    ),
  };
}

export function wayBody({ roleId, grantId, ...way }: WayIn) {
  return { ...way, ...present({ role_id: roleId, grant_id: grantId }) };
}

function memberBody(member: Membership) {
  return {
    role: member.role,
    username: member.username.username,
    username_state: member.username.lifecycleState,
    member_since: member.createdAt,
    changed_at: member.updatedAt,
  };
}

export function sidesWithWays(cluster: Cluster): Side[] {
  const sides = sidesOf(cluster);
  return cluster.scheduler === 'sunk' ? [...new Set([...sides, 'slurm' as const])] : sides;
}

/** Whether a Slurm cluster has the person's entry: it needs the last list version that changed the entry. */
async function onSlurm(
  store: Store,
  { cluster, list, observation, sides }: ClusterFacts,
  userId: string,
  { wanted, listed, changedIn }: Listing,
  now: number,
): Promise<NonNullable<OnCluster['slurm']>> {
  const found = await findPersonOnCluster(store, cluster.id, userId);
  const isListed = list !== undefined && isSameEntry(listed, wanted);
  const isReady = wanted?.desiredLoginState === 'ready';
  const waiting = waitingFor(changedIn, observation ?? {});
  const isThere =
    isListed &&
    (observation?.listVersion ?? 0) >= changedIn &&
    waiting.length === 0 &&
    (!isReady || found?.facts.confirmed?.loginState === 'ready');
  const side = sides.find((one) => one.side === 'slurm');
  const failure = (side && sideFailure(side)) ?? observation?.failure ?? undefined;
  const message = failure ?? waitingText(waiting);
  const decision = found && wanted ? decideAccess(found.facts, {}) : undefined;
  const isKnown = observation !== undefined && isRecent(observation.observedAt, now);
  return {
    account: wanted?.desiredLoginState ?? 'none',
    state: !isKnown ? 'unknown' : isThere ? 'applied' : failure === undefined ? 'pending' : 'failed',
    accepted: isListed,
    ...(message !== undefined && !isThere && { message }),
    ...(decision && !decision.allowed && { obstacle: decision.obstacle }),
  };
}

function deliveryBody({ cluster, list, sides }: ClusterFacts) {
  const times = sides.flatMap(({ observation }) => observation?.observedAt ?? []);
  const failures = sides.flatMap((side) => sideFailure(side) ?? []);
  return {
    cluster_id: cluster.id,
    cluster_name: cluster.name,
    ...(list && { list_updated_at: list.updatedAt }),
    ...(times.length > 0 && { observed_at: new Date(Math.max(...times)).toISOString() }),
    ...(failures.length > 0 && { failure: failures.join(' ') }),
  };
}
