/** Clusters: one row for both APIs, with one ID. */
import { sql } from 'kysely';
import type { Cluster, DriverSettings } from '../../domain/clusters/cluster.ts';
import type { LabCluster } from '../../domain/clusters/lab.ts';
import { DomainError, notFound } from '../../domain/error.ts';
import { newId, newUuid } from '../../domain/id.ts';
import type { Reader, Tx } from '../engine/index.ts';
import { prepared } from '../engine/queries.ts';
import { findRow, inCamelCase, insertRow, listRows } from '../engine/rows.ts';
import { toTime } from '../engine/time.ts';
import type { Schema } from '../generated/schema.ts';
import { listClustersOfGrants, revokeClusterGrants } from '../organizations/grants.ts';
import { requireActiveOrganization } from '../organizations/organizations.ts';
import { updateCluster } from './cluster-row.ts';
import { retireMachines } from './machines.ts';
import { copyDefaultSlurmConfiguration } from './slurm-configurations.ts';

export async function findCluster(db: Reader, clusterId: string): Promise<Cluster | undefined> {
  const row = await findRow(db, 'clusters', { id: clusterId });
  return row && clusterOf(row);
}

/** Throws `not_found` where the organization has no such cluster. */
export async function requireClusterOf(
  db: Reader,
  organizationId: string,
  clusterId: string,
): Promise<Cluster> {
  const cluster = await findCluster(db, clusterId);
  if (cluster?.organizationId === organizationId) return cluster;
  throw notFound('The organization has no such cluster.');
}

export async function findClusterByName(db: Reader, name: string): Promise<Cluster | undefined> {
  const row = await findRow(db, 'clusters', { name });
  return row && clusterOf(row);
}

export async function listAllClusters(db: Reader): Promise<Cluster[]> {
  return (await listRows(db, 'clusters', {}, 'created_at', 'id')).map(clusterOf);
}

export async function listOrganizationClusters(db: Reader, organizationId: string): Promise<Cluster[]> {
  const rows = await listRows(db, 'clusters', { organization_id: organizationId }, 'created_at', 'id');
  return rows.map(clusterOf);
}

function clusterOf(row: Schema['clusters']): Cluster {
  const { links = [], ...driver } = JSON.parse(row.driver) as Pick<LabCluster, 'links'> & DriverSettings;
  return { ...inCamelCase(row), driver, links };
}

/** The columns that a page shows: a page of 200 takes twice the time when it reads the others as well. */
const pageColumns = [
  'id',
  'organization_id as organizationId',
  'name',
  'site_id as siteId',
  'site_name as siteName',
  'state',
  'kubernetes_version as kubernetesVersion',
  'version_generation as versionGeneration',
  'desired_generation as desiredGeneration',
  'scheduler_generation as schedulerGeneration',
  'lifecycle_version as lifecycleVersion',
  'kubelet_version as kubeletVersion',
  'created_at as createdAt',
  'updated_at as updatedAt',
] as const;

export type ClusterOfPage = Awaited<ReturnType<typeof pageOfAll>>[number];

/** A page of an organization's clusters by ID, beginning behind `after`; of those in `among` where it is given. */
export async function listClusterPage(
  db: Reader,
  page: {
    organizationId: string;
    limit: number;
    after?: string | undefined;
    among?: readonly string[] | undefined;
  },
): Promise<ClusterOfPage[]> {
  const { organizationId, limit, after = '', among } = page;
  return among === undefined
    ? pageOfAll(db, organizationId, after, limit)
    : pageBehind(db, organizationId, after).where('id', 'in', among).limit(limit).execute();
}

const pageOfAll = prepared((db, organizationId: string, after: string, limit: number) =>
  pageBehind(db, organizationId, after).limit(sql<number>`${limit}`),
);

function pageBehind(db: Reader, organizationId: string, after: string) {
  return db
    .selectFrom('clusters')
    .select(pageColumns)
    .where('organization_id', '=', organizationId)
    .where('id', '>', after)
    .orderBy('id');
}

export async function listDrivenClusters(db: Reader): Promise<Cluster[]> {
  return (await listRows(db, 'clusters', {}, 'id'))
    .filter(({ state }) => state !== 'released')
    .map(clusterOf);
}

/** The clusters, unless they are released, on which a person or an organization can have access. */
export async function listConcernedClusters(
  db: Reader,
  who: { userId: string } | { organizationId: string },
): Promise<string[]> {
  const rows =
    'userId' in who
      ? [...(await clustersOfPerson(db, who.userId)), ...(await listClustersOfGrants(db, who.userId))]
      : (await listOrganizationClusters(db, who.organizationId)).filter(({ state }) => state !== 'released');
  return [...new Set(rows.map((row) => row.id))];
}

const clustersOfPerson = prepared((db, userId: string) =>
  db
    .selectFrom('clusters')
    .select('clusters.id')
    .innerJoin('memberships', 'memberships.org_id', 'clusters.organization_id')
    .where('clusters.state', '!=', 'released')
    .where('memberships.user_id', '=', userId),
);

/**
 * Creates a cluster, in `provisioning`, with its organization's default Slurm configuration; returns its ID. The name
 * of a released one is free again. Throws `invalid_state` when the name or the ID is another's.
 */
export async function createCluster(
  tx: Tx,
  cluster: Omit<LabCluster, 'organization'> & { organizationId: string },
): Promise<string> {
  const { name, site, simulated, slurm, kubernetes, links, reservedNodes } = cluster;
  const id = cluster.id?.toLowerCase() ?? newUuid();
  await requireActiveOrganization(tx.db, cluster.organizationId);
  await freeName(tx, name);
  if (await findCluster(tx.db, id)) {
    throw new DomainError(
      'invalid_state',
      `The ID ${id} is, or was, another cluster's. Leave it out to have one made.`,
    );
  }
  const at = toTime(tx.now);
  await insertRow(tx.db, 'clusters', {
    id,
    organization_id: cluster.organizationId,
    name,
    site_id: site?.id ?? 'default',
    site_name: site?.name ?? 'default',
    scheduler: cluster.scheduler ?? (slurm ? 'sunk' : null),
    driver: JSON.stringify({ simulated, slurm, kubernetes, links }),
    expected_node_count: reservedNodes || (simulated?.computeNodes ?? null),
    state: 'provisioning',
    assigned_node_count: 0,
    reservation_id: reservedNodes ? newId('reservation', tx.now) : null,
    version: 1,
    kubernetes_version: '',
    version_generation: 0,
    desired_generation: 1,
    scheduler_generation: 0,
    lifecycle_version: 1,
    kubelet_version: '',
    created_at: at,
    updated_at: at,
  });
  const { organizationId } = cluster;
  await copyDefaultSlurmConfiguration(tx, { clusterId: id, organizationId });
  tx.changed({ kind: 'cluster', clusterId: id });
  return id;
}

async function freeName(tx: Tx, name: string): Promise<void> {
  const other = await findClusterByName(tx.db, name);
  if (!other) return;
  if (other.state !== 'released') {
    const state = other.state === 'releasing' ? ', which is being released' : '';
    throw new DomainError('invalid_state', `There is a cluster ${name} already${state}.`);
  }
  await updateCluster(tx, other.id, { name: `${name} (released, ${other.id})` });
}

/** Updates a cluster's site, driver settings, links and reservation; settings that are left out stay. */
export async function updateClusterSettings(
  tx: Tx,
  cluster: Cluster,
  { site, simulated, slurm, kubernetes, links, reservedNodes }: Partial<LabCluster>,
): Promise<void> {
  const drivers = { simulated, slurm, kubernetes };
  const given = Object.fromEntries(Object.entries(drivers).filter(([, settings]) => settings !== undefined));
  const driver = { ...cluster.driver, ...given };
  const reserved = reservedNodes ?? (cluster.reservationId === null ? 0 : cluster.expectedNodeCount);
  const isConfigured = site !== undefined || Object.keys(given).length > 0;
  const change = {
    ...(site ? { site_id: site.id, site_name: site.name } : {}),
    driver: JSON.stringify({ ...driver, links: links ?? cluster.links }),
    expected_node_count: reserved || (driver.simulated?.computeNodes ?? null),
    reservation_id: reserved ? (cluster.reservationId ?? newId('reservation', tx.now)) : null,
  };
  await updateCluster(tx, cluster.id, change, { raised: isConfigured ? ['desired_generation'] : [] });
  tx.changed({ kind: isConfigured ? 'cluster' : 'report', clusterId: cluster.id });
}

/** Takes a cluster out of service: `releasing` until all of ours on it is gone. Returns whether it was in service. */
export async function startRelease(
  tx: Tx,
  release: { clusterId: string; commandId: string | null },
): Promise<boolean> {
  const change = {
    state: 'releasing',
    reason_code: 'release_requested',
    cleanup_state: 'pending',
    end_command_id: release.commandId,
    reservation_id: null,
  } as const;
  const options = { raised: ['lifecycle_version'], from: ['provisioning', 'active'] } as const;
  if (!(await updateCluster(tx, release.clusterId, change, options))) return false;
  await withdrawAccessList(tx, release.clusterId);
  await revokeClusterGrants(tx, release.clusterId);
  tx.changed({ kind: 'cluster', clusterId: release.clusterId });
  return true;
}

/** Withdraws the access list of a cluster that leaves service: its last generation is empty. */
async function withdrawAccessList(tx: Tx, clusterId: string): Promise<void> {
  await tx.db
    .updateTable('access_lists')
    .set((eb) => ({
      generation: eb('generation', '+', 1),
      withdrawn: 1,
      updated_at: toTime(tx.now),
    }))
    .where('cluster_id', '=', clusterId)
    .where('withdrawn', '=', 0)
    .execute();
}

/** Marks a cluster active, once, when its driver first reports a working control plane. */
export async function activateCluster(tx: Tx, clusterId: string): Promise<boolean> {
  const change = { state: 'active', infrastructure_ready_at: toTime(tx.now) } as const;
  return updateCluster(tx, clusterId, change, { raised: ['lifecycle_version'], from: ['provisioning'] });
}

/** Raises a cluster's configuration version after a change of its desired state, and announces that. */
export async function raiseDesiredGeneration(tx: Tx, clusterId: string): Promise<void> {
  await updateCluster(tx, clusterId, {}, { raised: ['desired_generation'] });
  tx.changed({ kind: 'cluster', clusterId });
}

/** Records, as text, the obstacle to a release that is under way. */
export async function recordCleanupFailure(tx: Tx, clusterId: string, failure: string): Promise<void> {
  const cluster = await findRow(tx.db, 'clusters', { id: clusterId });
  if (cluster?.cleanup_state === failure) return;
  await updateCluster(tx, clusterId, { cleanup_state: failure }, { from: ['releasing'] });
}

export async function completeRelease(tx: Tx, clusterId: string, cleanup = 'done'): Promise<void> {
  const change = {
    state: 'released',
    cleanup_state: cleanup,
    assigned_node_count: 0,
    teardown_completed_at: toTime(tx.now),
  } as const;
  const options = { raised: ['lifecycle_version'], from: ['releasing'] } as const;
  if (!(await updateCluster(tx, clusterId, change, options))) return;
  await retireMachines(tx, clusterId);
  tx.changed({ kind: 'cluster', clusterId });
}
