/** The options of clusters and the storage that can be bought (contract, "Cluster options", "Storage inventory"). */
import { type ConditionReport, isRecent, type SideReport } from '../../domain/access/manifest.ts';
import { type Cluster, type ClusterState, isInService } from '../../domain/clusters/cluster.ts';
import { forbidden } from '../../domain/error.ts';
import { present } from '../../domain/present.ts';
import { listOrganizationClusters } from '../../store/clusters/clusters.ts';
import { findClusterReport } from '../../store/clusters/observations.ts';
import { sumActivePurchases } from '../../store/clusters/storage-purchases.ts';
import type { Reader } from '../../store/engine/index.ts';
import { toTime } from '../../store/engine/time.ts';
import { canReadClusters, type Operation, type PlatformReply, visibleCluster } from './access.ts';

type Options = PlatformReply<'getClusterOptions'>;
type Inventory = PlatformReply<'listStorage'>['items'][number];
type Condition = NonNullable<Options['scheduler']['ready']>;

export const getClusterOptions: Operation<'getClusterOptions'> = async ({ store }, request) => {
  const cluster = await visibleCluster(store.read, request);
  return clusterOptions(await optionFacts(store.read, cluster, request.now));
};

export const listStorage: Operation<'listStorage'> = async ({ store }, request) => {
  const { orgId: organizationId } = request.path;
  if (!(await canReadClusters(store.read, request, organizationId))) {
    throw forbidden('This needs the permission clusters.read in the organization.');
  }
  const clusters = await listOrganizationClusters(store.read, organizationId);
  const items = clusters.map(async (cluster) => ({
    clusterId: cluster.id,
    clusterName: cluster.name,
    lifecycleState: cluster.state,
    ...storageInventory(await optionFacts(store.read, cluster, request.now)),
  }));
  return { items: await Promise.all(items) };
};

export interface OptionFacts {
  clusterId: string;
  organizationId: string;
  clusterState: ClusterState;
  /** The cluster's desired configuration version. */
  desiredGeneration: number;
  observation: { observedAt: number; report: Pick<SideReport, 'scheduler' | 'storage'> } | undefined;
  purchased: { ceph: number; nfs: number };
  now: number;
}

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

export function clusterOptions(facts: OptionFacts): Options {
  const { state, reason, report } = observed(facts);
  const scheduler = report?.scheduler;
  const storage = report?.storage;
  const isSlurm = scheduler?.configured === 'sunk';
  return {
    state,
    ...present({ reason, observedAt: observedAt(facts) }),
    scheduler: {
      configured: configuredScheduler(scheduler),
      ...present({
        ready: condition(facts, isSlurm ? 'SUNKReady' : 'ControlPlaneAvailable', scheduler?.ready),
      }),
      supported: { kubernetes: true, sunk: true },
    },
    storage: {
      configured: {
        ceph: configured(storage?.ceph),
        weka: configured(storage?.weka),
        nfs: configured(storage?.nfs),
      },
      ...present({ quotaBytes: storage?.quotaBytes, ready: storageCondition(facts, storage) }),
      supported: { ceph: true, nfs: true },
      purchase: purchaseRoute(facts, storage),
    },
  };
}

/** A cluster's entry in its organization's storage inventory, without the fields that identify the cluster. */
export function storageInventory(
  facts: OptionFacts,
): Omit<Inventory, 'clusterId' | 'clusterName' | 'lifecycleState'> {
  const { state, reason, report } = observed(facts);
  const storage = report?.storage;
  const isOpen = isInService({ state: facts.clusterState });
  return {
    state,
    ...present({ reason, observedAt: observedAt(facts) }),
    backends: [
      {
        type: 'ceph',
        configured: configured(storage?.ceph),
        ...present({
          configuredQuotaBytes: storage?.quotaBytes,
          purchasedRawBytes: facts.purchased.ceph || undefined,
          ready: storage?.ceph ? storageCondition(facts, storage) : undefined,
          purchase: isOpen ? purchaseRoute(facts, storage) : undefined,
        }),
      },
      { type: 'weka', configured: configured(storage?.weka) },
      { type: 'nfs', configured: configured(storage?.nfs) },
    ],
  };
}

/** How reliable the last report is; the report is included only if it is. */
function observed({ observation, clusterState, now }: OptionFacts) {
  if (!isInService({ state: clusterState }))
    return { state: 'unavailable', reason: 'cluster_not_active' } as const;
  if (!observation || !isRecent(observation.observedAt, now))
    return { state: 'unknown', reason: 'observation_stale' } as const;
  return { state: 'available', reason: undefined, report: observation.report } as const;
}

function observedAt({ observation }: OptionFacts): string | undefined {
  return observation && toTime(observation.observedAt);
}

function configuredScheduler(report: SideReport['scheduler']): Options['scheduler']['configured'] {
  if (!report) return { state: 'unknown' };
  return report.configured === null ? { state: 'none' } : { state: 'configured', value: report.configured };
}

function configured(is: boolean | undefined): Inventory['backends'][number]['configured'] {
  if (is === undefined) return 'unknown';
  return is ? 'configured' : 'not_configured';
}

/** WEKA's readiness is not observed. */
function storageCondition(facts: OptionFacts, storage: SideReport['storage']): Condition | undefined {
  return storage?.ceph || storage?.nfs ? condition(facts, 'StorageReady', storage.ready) : undefined;
}

/** A condition is returned only if it is about the cluster's current configuration. */
function condition(
  facts: OptionFacts,
  type: Condition['type'],
  report: ConditionReport | undefined,
): Condition | undefined {
  const observedGeneration = facts.desiredGeneration;
  return report?.observedGeneration === observedGeneration
    ? { type, ...report, observedGeneration }
    : undefined;
}

function purchaseRoute(
  { organizationId, clusterId, purchased }: OptionFacts,
  storage: SideReport['storage'],
): Options['storage']['purchase'] {
  const admitted = storage?.nfs ? purchased.nfs : purchased.ceph;
  return {
    method: 'POST',
    path: `/organizations/${organizationId}/purchases`,
    target_cluster_id: clusterId,
    ...present({ admittedQuotaBytes: admitted || undefined }),
  };
}
