/** What a cluster is set up with, and what can be bought for it (contract, "Cluster options", "Storage inventory"). */
import { isRecent } from '../access/list.ts';
import type { ConditionReport, SideReport } from '../access/manifest.ts';
import { type ClusterState, isInService } from './cluster.ts';
import type { Condition } from './condition.ts';

export type ObservedState = 'available' | 'unknown' | 'unavailable';
type Configured = 'configured' | 'not_configured' | 'unknown';

/** A cluster, its last report, and what was bought for it. Times in ms since 1970. */
export interface OptionFacts {
  clusterId: string;
  organizationId: string;
  clusterState: ClusterState;
  /** The configuration that the cluster is to have. */
  desiredGeneration: number;
  observation: { observedAt: number; report: Pick<SideReport, 'scheduler' | 'storage'> } | undefined;
  /** Bytes of active purchases. */
  purchased: { ceph: number; nfs: number };
  now: number;
}

/** Where more storage is bought: a Business write. */
interface StoragePurchaseRoute {
  method: 'POST';
  path: string;
  target_cluster_id: string;
  admittedQuotaBytes?: number;
}

type Reason = 'observation_stale' | 'cluster_not_active';

export interface ClusterOptions {
  state: ObservedState;
  reason?: Reason;
  observedAt?: string;
  scheduler: {
    configured: { state: 'configured' | 'none' | 'unknown'; value?: 'sunk' | 'kubernetes' };
    ready?: Condition;
    supported: { kubernetes: boolean; sunk: boolean };
  };
  storage: {
    configured: { ceph: Configured; weka: Configured; nfs: Configured };
    quotaBytes?: number;
    ready?: Condition;
    supported: { ceph: boolean; nfs: boolean };
    purchase: StoragePurchaseRoute;
  };
}

export interface InventoryBackend {
  type: 'ceph' | 'weka' | 'nfs';
  configured: Configured;
  configuredQuotaBytes?: number;
  purchasedRawBytes?: number;
  ready?: Condition;
  purchase?: StoragePurchaseRoute;
}

/** What the volume that a Slurm cluster's nodes share asks for when no size is set: 100 GiB. */
export const defaultSharedVolumeBytes = 100 * 2 ** 30;

/** The options of a cluster, from its latest report. */
export function clusterOptions(facts: OptionFacts): ClusterOptions {
  const { state, reason, report } = observed(facts);
  const scheduler = report?.scheduler;
  const storage = report?.storage;
  const schedulerReady = condition(facts, schedulerCondition(scheduler?.configured), scheduler?.ready);
  const storageReady = storageCondition(facts, storage);
  return {
    state,
    ...(reason ? { reason } : {}),
    ...observedAt(facts),
    scheduler: {
      configured: configuredScheduler(scheduler),
      ...(schedulerReady ? { ready: schedulerReady } : {}),
      supported: { kubernetes: true, sunk: true },
    },
    storage: {
      configured: {
        ceph: configured(storage?.ceph),
        weka: configured(storage?.weka),
        nfs: configured(storage?.nfs),
      },
      ...(storage?.quotaBytes === undefined ? {} : { quotaBytes: storage.quotaBytes }),
      ...(storageReady ? { ready: storageReady } : {}),
      supported: { ceph: true, nfs: true },
      purchase: purchaseRoute(facts, storage),
    },
  };
}

/** A cluster's entry in its organization's storage inventory, without what names the cluster. */
export function storageInventory(facts: OptionFacts): {
  state: ObservedState;
  reason?: Reason;
  observedAt?: string;
  backends: InventoryBackend[];
} {
  const { state, reason, report } = observed(facts);
  const storage = report?.storage;
  const ready = storage?.ceph ? storageCondition(facts, storage) : undefined;
  return {
    state,
    ...(reason ? { reason } : {}),
    ...observedAt(facts),
    backends: [
      {
        type: 'ceph',
        configured: configured(storage?.ceph),
        ...(storage?.quotaBytes === undefined ? {} : { configuredQuotaBytes: storage.quotaBytes }),
        ...(facts.purchased.ceph > 0 ? { purchasedRawBytes: facts.purchased.ceph } : {}),
        ...(ready ? { ready } : {}),
        ...(isInService({ state: facts.clusterState }) ? { purchase: purchaseRoute(facts, storage) } : {}),
      },
      { type: 'weka', configured: configured(storage?.weka) },
      { type: 'nfs', configured: configured(storage?.nfs) },
    ],
  };
}

/** How far the last report can be relied on; it is there only where it can. */
function observed(facts: OptionFacts): {
  state: ObservedState;
  reason?: Reason;
  report?: NonNullable<OptionFacts['observation']>['report'];
} {
  const { observation, now } = facts;
  if (!isInService({ state: facts.clusterState }))
    return { state: 'unavailable', reason: 'cluster_not_active' };
  if (!observation || !isRecent(observation.observedAt, now)) {
    return { state: 'unknown', reason: 'observation_stale' };
  }
  return { state: 'available', report: observation.report };
}

function observedAt({ observation }: OptionFacts): { observedAt?: string } {
  return observation ? { observedAt: new Date(observation.observedAt).toISOString() } : {};
}

function configuredScheduler(report: SideReport['scheduler']): ClusterOptions['scheduler']['configured'] {
  if (!report) return { state: 'unknown' };
  return report.configured === null ? { state: 'none' } : { state: 'configured', value: report.configured };
}

function configured(is: boolean | undefined): Configured {
  if (is === undefined) return 'unknown';
  return is ? 'configured' : 'not_configured';
}

function schedulerCondition(scheduler: 'sunk' | 'kubernetes' | null | undefined): Condition['type'] {
  return scheduler === 'sunk' ? 'SUNKReady' : 'ControlPlaneAvailable';
}

/** WEKA's readiness is not observed. */
function storageCondition(facts: OptionFacts, storage: SideReport['storage']): Condition | undefined {
  return storage?.ceph || storage?.nfs ? condition(facts, 'StorageReady', storage.ready) : undefined;
}

/** What was said of another configuration than the cluster's current one is not said of this one. */
function condition(
  facts: OptionFacts,
  type: Condition['type'],
  report: ConditionReport | undefined,
): Condition | undefined {
  if (!report) return undefined;
  const { observedGeneration } = report;
  if (observedGeneration !== facts.desiredGeneration) return undefined;
  return { type, ...report, observedGeneration };
}

/** The quota is Ceph's, unless the cluster has NFS storage, which excludes Ceph. */
function purchaseRoute(
  { organizationId, clusterId, purchased }: OptionFacts,
  storage: SideReport['storage'],
): StoragePurchaseRoute {
  const admitted = storage?.nfs ? purchased.nfs : purchased.ceph;
  return {
    method: 'POST',
    path: `/organizations/${organizationId}/purchases`,
    target_cluster_id: clusterId,
    ...(admitted > 0 ? { admittedQuotaBytes: admitted } : {}),
  };
}
