/** Clusters: one row for both APIs, with one ID. */
import type { Selectable } from 'kysely';
import type { Reader, Tx } from './index.ts';
import type { ClusterTable } from './schema.ts';
import { toTime } from './time.ts';

export type Cluster = Selectable<ClusterTable>;

export async function findCluster(db: Reader, clusterId: string): Promise<Cluster | undefined> {
  return db.selectFrom('clusters').selectAll().where('id', '=', clusterId).executeTakeFirst();
}

/** An organization's clusters in order of creation. */
export async function listOrganizationClusters(db: Reader, orgId: string): Promise<Cluster[]> {
  return db
    .selectFrom('clusters')
    .selectAll()
    .where('organization_id', '=', orgId)
    .orderBy('created_at')
    .orderBy('id')
    .execute();
}

/** A page of an organization's clusters by ID, beginning behind `after`; of those in `among` where it is given. */
export async function listClusterPage(
  db: Reader,
  page: { orgId: string; limit: number; after?: string | undefined; among?: readonly string[] | undefined },
): Promise<Cluster[]> {
  let query = db.selectFrom('clusters').selectAll().where('organization_id', '=', page.orgId);
  if (page.after !== undefined) query = query.where('id', '>', page.after);
  if (page.among !== undefined) query = query.where('id', 'in', page.among);
  return query.orderBy('id').limit(page.limit).execute();
}

/** Every cluster that the sync loop has something to do with. */
export async function listDrivenClusters(db: Reader): Promise<Cluster[]> {
  return db.selectFrom('clusters').selectAll().where('state', '!=', 'released').orderBy('id').execute();
}

/** The clusters whose access lists a person or an organization can be on. */
export async function listConcernedClusters(
  db: Reader,
  who: { userId: string } | { organizationId: string },
): Promise<string[]> {
  let query = db.selectFrom('clusters').select('clusters.id');
  if ('userId' in who) {
    query = query
      .innerJoin('memberships', 'memberships.org_id', 'clusters.organization_id')
      .where('memberships.user_id', '=', who.userId);
  } else {
    query = query.where('clusters.organization_id', '=', who.organizationId);
  }
  return (await query.execute()).map((row) => row.id);
}

/** A new cluster, in `provisioning`. */
export async function createCluster(
  tx: Tx,
  cluster: Pick<
    ClusterTable,
    'id' | 'organization_id' | 'name' | 'site_id' | 'site_name' | 'scheduler' | 'driver'
  > & {
    expected_node_count: number | null;
  },
  now: number,
): Promise<void> {
  const at = toTime(now);
  await tx.db
    .insertInto('clusters')
    .values({
      ...cluster,
      state: 'provisioning',
      reason_code: null,
      assigned_node_count: 0,
      reservation_id: null,
      infrastructure_ready_at: null,
      teardown_completed_at: null,
      cleanup_state: null,
      end_command_id: null,
      version: 1,
      kubernetes_version: '',
      version_generation: 0,
      desired_generation: 1,
      scheduler_generation: 0,
      lifecycle_version: 1,
      kubelet_version: '',
      created_at: at,
      updated_at: at,
    })
    .execute();
  tx.changed({ clusterId: cluster.id });
}

/** Marks a cluster active, once, when its driver first reports a working control plane. */
export async function activateCluster(
  tx: Tx,
  clusterId: string,
  nodes: number,
  now: number,
): Promise<boolean> {
  const at = toTime(now);
  const updated = await tx.db
    .updateTable('clusters')
    .set((eb) => ({
      state: 'active' as const,
      assigned_node_count: nodes,
      infrastructure_ready_at: at,
      version: eb('version', '+', 1),
      lifecycle_version: eb('lifecycle_version', '+', 1),
      updated_at: at,
    }))
    .where('id', '=', clusterId)
    .where('state', '=', 'provisioning')
    .executeTakeFirst();
  return updated.numUpdatedRows > 0n;
}
