/** The commercial record of clusters, and their access lists. */
import { accessListHash, accessListState, type Delivery, observationState } from '../domain/access-list.ts';
import { DomainError } from '../domain/error.ts';
import { isInService } from '../domain/options.ts';
import { homeOf } from '../domain/username.ts';
import { type AccessList, readAccessList } from '../store/access-lists.ts';
import { type Cluster, findCluster, listOrganizationClusters } from '../store/clusters.ts';
import type { Reader } from '../store/index.ts';
import { findMembership } from '../store/members.ts';
import { findObservation, type Observation } from '../store/observations.ts';
import { withoutLapsed } from '../store/reservations.ts';
import { fromTime } from '../store/time.ts';
import type { BusinessDeps, BusinessReply, BusinessRequest } from './operation.ts';
import { organizationNotFound } from './organizations.ts';

/** The organization's clusters in order of creation; none for a member without `clusters.read`. */
export async function listClusters(
  { store }: BusinessDeps,
  { caller, path, now }: BusinessRequest<'listClusters'>,
): Promise<BusinessReply<'listClusters'>> {
  const membership = await findMembership(store.read, path.orgID, caller.userId);
  if (!membership) throw organizationNotFound();
  if (!membership.permissions.has('clusters.read')) return { clusters: [] };
  const clusters = await listOrganizationClusters(store.read, path.orgID);
  return { clusters: (await withoutLapsed(store.read, clusters, now)).map(clusterBody) };
}

/** One cluster. */
export async function getCluster(
  { store }: BusinessDeps,
  { caller, path, now }: BusinessRequest<'getCluster'>,
): Promise<BusinessReply<'getCluster'>> {
  const cluster = await readableCluster(store.read, caller.userId, path);
  const [current = cluster] = await withoutLapsed(store.read, [cluster], now);
  return clusterBody(current);
}

/** Who a Slurm cluster must know, and how far the list has got. */
export async function getClusterAccess(
  { store }: BusinessDeps,
  { caller, path, now }: BusinessRequest<'getClusterAccess'>,
): Promise<BusinessReply<'getClusterAccess'>> {
  const cluster = await readableCluster(store.read, caller.userId, path);
  const clusterId = cluster.id;
  const found = await readAccessList(store, clusterId);
  if (!found) throw new DomainError('not_found', 'No access list has been made for this cluster yet.');
  const { list, users } = found;
  const observation = await findObservation(store.read, clusterId, 'slurm');
  const delivery = deliveryOf(cluster, list, observation, now);
  return {
    cluster_id: clusterId,
    organization_id: cluster.organization_id,
    generation: list.generation,
    state: accessListState(delivery),
    observation_state: observationState(delivery),
    desired_generation: list.desired_generation,
    observed_generation: observation?.desired_generation ?? null,
    source_hash: accessListHash(users),
    updated_at: list.updated_at,
    users: users.map((user) => ({
      user_id: user.userId,
      username: user.username,
      access_mode: user.accessMode,
      desired_login_state: user.desiredLoginState,
      ssh_key_set_generation: user.keySetGeneration,
      ...(user.uid === null
        ? {}
        : { allocation: { uid: user.uid, gid: user.uid, home: homeOf(user.username), shell: user.shell } }),
    })),
  };
}

/** A cluster of an organization, for someone with `clusters.read` there. Throws `forbidden`, then `not_found`. */
async function readableCluster(
  db: Reader,
  userId: string,
  { orgID, clusterID }: { orgID: string; clusterID: string },
): Promise<Cluster> {
  const membership = await findMembership(db, orgID, userId);
  if (!membership?.permissions.has('clusters.read')) {
    throw new DomainError('forbidden', 'This needs the permission clusters.read in the organization.');
  }
  const cluster = await findCluster(db, clusterID.toLowerCase());
  if (cluster?.organization_id !== orgID) {
    throw new DomainError('not_found', 'The organization has no such cluster.');
  }
  return cluster;
}

/** What the state of a list is read from. A cluster out of service is not asked any more: its last report stands. */
export function deliveryOf(
  cluster: Cluster,
  list: AccessList,
  observation: Observation | undefined,
  now: number,
): Delivery {
  const isAsked = isInService({ clusterState: cluster.state });
  return {
    generation: list.generation,
    acceptedGeneration: list.accepted_generation,
    rejection: list.rejection,
    observation: observation && {
      observedAt: fromTime(observation.observed_at),
      manifestGeneration: observation.manifest_generation,
      failure: observation.failure,
    },
    now: isAsked || !observation ? now : fromTime(observation.observed_at),
  };
}

/** A cluster as the API shows it. */
export function clusterBody(cluster: Cluster) {
  return {
    id: cluster.id,
    organization_id: cluster.organization_id,
    state: cluster.state,
    reason_code: cluster.reason_code,
    expected_node_count: cluster.expected_node_count,
    assigned_node_count: cluster.assigned_node_count,
    ...(cluster.scheduler === null ? {} : { selected_scheduler: cluster.scheduler }),
    ...(cluster.reservation_id === null ? {} : { reservation_id: cluster.reservation_id }),
    infrastructure_ready_at: cluster.infrastructure_ready_at,
    teardown_completed_at: cluster.teardown_completed_at,
    cleanup_state: cluster.cleanup_state,
    end_command_id: cluster.end_command_id,
    version: cluster.version,
    created_at: cluster.created_at,
    updated_at: cluster.updated_at,
  };
}
