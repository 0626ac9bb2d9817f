/** What a cluster is set up with, and what can be bought for it. */
import type { Cluster } from '../../domain/clusters/cluster.ts';
import { clusterOptions, type OptionFacts } from '../../domain/clusters/options.ts';
import { findClusterReport } from '../../store/clusters/observations.ts';
import { sumActivePurchases } from '../../store/clusters/storage-purchases.ts';
import type { Reader } from '../../store/engine/index.ts';
import { requireClusterId, visibleCluster } from './access.ts';
import type { Operation } from './operation.ts';

/** The options of a cluster that the caller may see, from its latest report. */
export const getClusterOptions: Operation<'getClusterOptions'> = async (
  { store },
  { caller, path, query, now },
) => {
  const clusterId = requireClusterId(path.clusterId);
  const organizationId = query.businessOrgId;
  const cluster = await visibleCluster(store.read, { userId: caller.userId, organizationId, clusterId, now });
  return clusterOptions(await optionFacts(store.read, cluster, now));
};

/** What the options and the storage of a cluster are derived from. */
export async function optionFacts(db: Reader, cluster: Cluster, now: number): Promise<OptionFacts> {
  const [report, purchased] = await Promise.all([
    findClusterReport(db, cluster, now),
    sumActivePurchases(db, cluster.id),
  ]);
  return {
    clusterId: cluster.id,
    organizationId: cluster.organizationId,
    clusterState: cluster.state,
    desiredGeneration: cluster.desiredGeneration,
    observation: report.observedAt === undefined ? undefined : { observedAt: report.observedAt, report },
    purchased,
    now,
  };
}
