/** The commercial record of clusters, and their access lists. */
import {
  type AccessList,
  accessListHash,
  accessListState,
  type Delivery,
  observationState,
} from '../../domain/access/manifest.ts';
import { type Cluster, isInService, type Observation } from '../../domain/clusters/cluster.ts';
import { forbidden, notFound } from '../../domain/error.ts';
import { homeOf } from '../../domain/people/person.ts';
import { present, snakeCased } from '../../domain/present.ts';
import { readAccessList } from '../../store/access/access-lists.ts';
import { findCluster, listOrganizationClusters } from '../../store/clusters/clusters.ts';
import { findObservation } from '../../store/clusters/observations.ts';
import type { Reader } from '../../store/engine/index.ts';
import { findMembership } from '../../store/organizations/memberships.ts';
import type { Operation } from './operation.ts';
import { ownMembership } from './organizations.ts';

export const listClusters: Operation<'listClusters'> = async ({ store }, { caller, path, now }) => {
  const { permissions } = await ownMembership(store.read, path.orgID, caller.userId, now);
  if (!permissions.has('clusters.read')) return { clusters: [] };
  const clusters = await listOrganizationClusters(store.read, path.orgID);
  return { clusters: clusters.map(clusterBody) };
};

export const getCluster: Operation<'getCluster'> = async ({ store }, { caller, path, now }) =>
  clusterBody(await readableCluster(store.read, caller.userId, path, now));

export const listReservations: Operation<'listReservations'> = async ({ store }, { caller, path, now }) => {
  const { permissions } = await ownMembership(store.read, path.orgID, caller.userId, now);
  if (!permissions.has('reservations.read')) {
    throw forbidden('This needs the permission reservations.read in the organization.');
  }
  const clusters = await listOrganizationClusters(store.read, path.orgID);
  return {
    reservations: clusters.flatMap(({ id, organizationId, reservationId, expectedNodeCount }) =>
      reservationId === null
        ? []
        : {
            id: reservationId,
            organization_id: organizationId,
            cluster_id: id,
            node_count: expectedNodeCount ?? 0,
          },
    ),
  };
};

export const getClusterAccess: Operation<'getClusterAccess'> = async ({ store }, { caller, path, now }) => {
  const cluster = await readableCluster(store.read, caller.userId, path, now);
  const clusterId = cluster.id;
  const found = await readAccessList(store, clusterId);
  if (!found) throw notFound('No access list has been made for this cluster yet.');
  const { list, users } = found;
  const observation = await findObservation(store.read, clusterId, 'slurm');
  const delivery = deliveryOf(cluster, list, observation, now);
  return {
    cluster_id: clusterId,
    organization_id: cluster.organizationId,
    generation: list.generation,
    state: accessListState(delivery),
    observation_state: observationState(delivery),
    desired_generation: list.desiredGeneration,
    observed_generation: observation?.desiredGeneration ?? null,
    source_hash: accessListHash(users),
    updated_at: list.updatedAt,
    ...(observation &&
      observation.waiting.length > 0 && {
        waiting_hosts: observation.waiting.map(({ host, since = '', message }) => ({ host, since, message })),
      }),
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
};

/** A cluster of an organization, for someone with `clusters.read` there. Throws `forbidden`, then `not_found`. */
async function readableCluster(
  db: Reader,
  userId: string,
  { orgID, clusterID }: { orgID: string; clusterID: string },
  now: number,
): Promise<Cluster> {
  const membership = await findMembership(db, orgID, userId, now);
  if (!membership?.permissions.has('clusters.read')) {
    throw forbidden('This needs the permission clusters.read in the organization.');
  }
  return clusterIn(db, orgID, clusterID.toLowerCase());
}

export async function clusterIn(db: Reader, organizationId: string, clusterId: string): Promise<Cluster> {
  const cluster = await findCluster(db, clusterId);
  if (cluster?.organizationId === organizationId) return cluster;
  throw notFound('The organization has no such cluster.');
}

/**
 * What the state of a list is read from. A cluster out of service is not asked any more: its last report stands, until it is
 * released. Then the last list, which is empty, is in force, or it never will be.
 */
export function deliveryOf(
  cluster: Cluster,
  list: AccessList,
  observation: Observation | undefined,
  now: number,
): Delivery {
  const { generation } = list;
  if (cluster.state === 'released') {
    const failure = cluster.cleanupState === 'done' ? null : cluster.cleanupState;
    const last = { observedAt: now, manifestGeneration: generation, failure, waiting: [] };
    return { generation, observation: last, now };
  }
  const isAsked = isInService(cluster);
  return {
    generation,
    observation,
    now: isAsked || !observation ? now : observation.observedAt,
  };
}

export function clusterBody(cluster: Cluster) {
  return {
    ...snakeCased(cluster, ['id', 'organizationId', 'state', 'reasonCode', 'expectedNodeCount']),
    ...snakeCased(cluster, ['assignedNodeCount', 'infrastructureReadyAt', 'teardownCompletedAt']),
    ...snakeCased(cluster, ['cleanupState', 'endCommandId', 'version', 'createdAt', 'updatedAt']),
    ...present({ selected_scheduler: cluster.scheduler, reservation_id: cluster.reservationId }),
  };
}
