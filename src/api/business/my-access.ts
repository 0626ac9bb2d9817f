/** The caller's SSH and Kubernetes use of each cluster that they may see or use. */
import {
  absenceOf,
  kubernetesUse,
  sshUse,
  type Use,
  type UseContext,
} from '../../domain/access/cluster-use.ts';
import { type Grant, longestLasting } from '../../domain/access/grant.ts';
import { heldUntil, laterEnd, seesClusters } from '../../domain/access/permission.ts';
import type { AccessRequest } from '../../domain/access/request.ts';
import {
  type Cluster,
  isInService,
  mergeSides,
  type Side,
  sideFailure,
  sidesOf,
} from '../../domain/clusters/cluster.ts';
import { type Access, kubernetesAccessState } from '../../domain/kubernetes/bindings.ts';
import { holdsStaffKey } from '../../domain/people/person.ts';
import { present } from '../../domain/present.ts';
import { findPersonOnCluster } from '../../store/access/access-facts.ts';
import { findAccessList } from '../../store/access/access-lists.ts';
import { findKubernetesAccessOf } from '../../store/access/kubernetes-access.ts';
import { findCluster, listOrganizationClusters } from '../../store/clusters/clusters.ts';
import { listSideStates } from '../../store/clusters/observations.ts';
import type { Reader } from '../../store/engine/index.ts';
import { listRequests } from '../../store/organizations/access-requests.ts';
import { listLiveGrants } from '../../store/organizations/grants.ts';
import { findMembership, listMembershipsOf } from '../../store/organizations/memberships.ts';
import { findPerson } from '../../store/people/people.ts';
import { listActiveKeys } from '../../store/people/ssh-keys.ts';
import type { BusinessDeps, BusinessReply, Operation } from './operation.ts';

type ClusterUse = BusinessReply<'getMyAccess'>['clusters'][number];
type OwnMembership = NonNullable<Awaited<ReturnType<typeof findMembership>>>;

interface OwnFacts {
  userId: string;
  held: ReadonlyMap<string, OwnMembership>;
  grants: readonly Grant[];
  requests: readonly AccessRequest[];
  isStaff: boolean;
  /** The last change of the caller's memberships, keys, grants or sign-in, in ms since 1970. */
  changedAt: number;
  now: number;
}

export const getMyAccess: Operation<'getMyAccess'> = async (deps, { caller, now }) => {
  const { store } = deps;
  const own = await ownOf(deps, caller.userId, now);
  const organizations = [...own.held.keys()];
  const lists = await Promise.all(organizations.map((id) => listOrganizationClusters(store.read, id)));
  const shared = await sharedClusters(store.read, own);
  const clusters = [...lists.flat(), ...shared].filter(isInService).sort(inOrder);
  const uses: ClusterUse[] = [];
  for (const cluster of clusters) {
    const use = await useOf(deps, cluster, own);
    if (use && (seesAll(own, cluster) || mayUse(own, cluster))) uses.push(use);
  }
  return { clusters: uses };
};

async function ownOf({ store }: BusinessDeps, userId: string, now: number): Promise<OwnFacts> {
  const db = store.read;
  const [person, memberships, grants, requests, keys] = await Promise.all([
    findPerson(db, userId),
    listMembershipsOf(db, userId),
    listLiveGrants(db, userId, now),
    listRequests(db, { userId }),
    listActiveKeys(db, userId),
  ]);
  const held = new Map<string, OwnMembership>();
  for (const { organizationId } of memberships) {
    const found = await findMembership(db, organizationId, userId, now);
    if (found) held.set(organizationId, found);
  }
  const signedInAt = store.lapses.policy.maxHoursWithoutSignIn === undefined ? null : person?.signedInAt;
  const times = [
    ...memberships.map(({ updatedAt }) => updatedAt),
    ...keys.map(({ createdAt }) => createdAt),
    ...grants.map(({ grantedAt }) => grantedAt),
    ...(signedInAt ? [signedInAt] : []),
  ];
  return {
    userId,
    held,
    grants,
    requests,
    isStaff: holdsStaffKey(person?.staffKeys ?? [], 'staff.read'),
    changedAt: Math.max(0, ...times.map((time) => Date.parse(time))),
    now,
  };
}

async function sharedClusters(db: Reader, { grants, held }: OwnFacts): Promise<Cluster[]> {
  const ids = [...new Set(grants.map(({ clusterId }) => clusterId))];
  const found = await Promise.all(ids.map((id) => findCluster(db, id)));
  return found.filter((one) => one !== undefined && !held.has(one.organizationId)) as Cluster[];
}

function inOrder(a: Cluster, b: Cluster): number {
  return a.organizationId.localeCompare(b.organizationId) || a.name.localeCompare(b.name);
}

function grantsOn({ grants }: OwnFacts, { id }: Cluster): Grant[] {
  return grants.filter(({ clusterId }) => clusterId === id);
}

function seesAll({ held }: OwnFacts, { organizationId }: Cluster): boolean {
  const own = held.get(organizationId);
  return own !== undefined && seesClusters(own.permissions);
}

function mayUse(own: OwnFacts, cluster: Cluster): boolean {
  const held = own.held.get(cluster.organizationId)?.permissions;
  if (grantsOn(own, cluster).length > 0) return true;
  if (cluster.scheduler === 'sunk' && held?.has('clusters.ssh')) return true;
  return sidesOf(cluster).includes('kubernetes') && held?.has('clusters.kubernetes') === true;
}

/** Undefined for a cluster that was deleted meanwhile. */
async function useOf(deps: BusinessDeps, cluster: Cluster, own: OwnFacts): Promise<ClusterUse | undefined> {
  const { store, gateway, offersKubernetesLogin } = deps;
  const [person, list, states] = await Promise.all([
    findPersonOnCluster(store, cluster.id, own.userId),
    findAccessList(store.read, cluster.id),
    listSideStates(store.read, cluster),
  ]);
  if (!person) return undefined;
  const { facts } = person;
  const grants = grantsOn(own, cluster);
  const requests = own.requests.filter(({ organizationId }) => organizationId === cluster.organizationId);
  const onSide = (side: Side, gate: 'clusters.ssh' | 'clusters.kubernetes'): UseContext => {
    const state = states.find((one) => one.side === side);
    return {
      name: cluster.name,
      lifecycle: cluster.state,
      seesFaults: seesAll(own, cluster) || grants.length > 0 || own.isStaff,
      fault: (state && sideFailure(state)) ?? undefined,
      changedAt: Math.max(own.changedAt, Date.parse(cluster.infrastructureReadyAt ?? cluster.createdAt)),
      now: own.now,
      absence: absenceOf(gate, facts, requests, own.now),
    };
  };
  const listChangedAt = Date.parse(list?.updatedAt ?? cluster.createdAt);
  const ssh = { access: facts, gatewayFault: gateway.fault, listChangedAt };
  const observedAt = states.find(({ side }) => side === 'kubernetes')?.observation?.observedAt;
  const kubernetes = sidesOf(cluster).includes('kubernetes')
    ? {
        hasGrant: grants.length > 0,
        access: await kubernetesAccessOn(deps, cluster, own),
        isReady: mergeSides(states, own.now).kubernetes?.ready,
        observedMsAgo: observedAt === undefined ? undefined : own.now - observedAt,
        offersLogin: offersKubernetesLogin,
      }
    : undefined;
  return {
    cluster_id: cluster.id,
    cluster_name: cluster.name,
    organization_id: cluster.organizationId,
    ssh: bodyOf(sshUse(ssh, onSide('slurm', 'clusters.ssh')), facts.accessEndsAt),
    kubernetes: bodyOf(
      kubernetesUse(facts, kubernetes, onSide('kubernetes', 'clusters.kubernetes')),
      kubernetesEnd(own.held.get(cluster.organizationId), grants),
    ),
  };
}

/** Whether the caller's permissions are in force there. Reads all permissions of the cluster, so it is skipped for callers without any. */
async function kubernetesAccessOn({ store }: BusinessDeps, cluster: Cluster, own: OwnFacts): Promise<Access> {
  if (!mayUse(own, cluster)) return { state: 'none' };
  return kubernetesAccessState(await findKubernetesAccessOf(store, cluster, own.userId, own.now));
}

function kubernetesEnd(held: OwnMembership | undefined, grants: readonly Grant[]): string | null {
  const ends = [];
  const byKey = held && heldUntil(held.role, held.granted);
  if (byKey?.has('clusters.kubernetes')) ends.push(byKey.endOf('clusters.kubernetes'));
  const grant = longestLasting(grants);
  if (grant) ends.push(grant.expiresAt);
  const [first = null, ...more] = ends;
  return more.reduce(laterEnd, first);
}

function bodyOf(use: Use, end: string | null) {
  return { ...use, ...present({ expires_at: end }) };
}
