/** The machines of a cluster, and what of them is in use. */
import { type Cluster, isInService } from '../../domain/clusters/cluster.ts';
import { gpuUsage, type MachineUse } from '../../domain/clusters/gpu-usage.ts';
import { freshness, type Machine } from '../../domain/clusters/machine.ts';
import { listMachines as listClusterMachines } from '../../store/clusters/machines.ts';
import { fromTime } from '../../store/engine/time.ts';
import { requireClusterId, visibleCluster } from './access.ts';
import type { Operation } from './operation.ts';
import { pageToken, readPageToken } from './paging.ts';

/** A page of the machines of a cluster that the caller may see, by ID. */
export const listMachines: Operation<'listMachines'> = async ({ store }, { caller, path, query, now }) => {
  const clusterId = requireClusterId(path.clusterId);
  const { businessOrgId: organizationId, limit = 50 } = query;
  const list = `machines/${organizationId}/${clusterId}`;
  const after = query.after === undefined ? undefined : readPageToken(list, query.after);
  const cluster = await visibleCluster(store.read, { userId: caller.userId, organizationId, clusterId, now });
  // A released cluster's machines are released from it.
  const isListed = cluster.state !== 'released';
  const page = isListed ? await listClusterMachines(store.read, clusterId, { limit: limit + 1, after }) : [];
  const last = page.length > limit ? page[limit - 1] : undefined;
  return {
    organization_id: organizationId,
    cluster_id: clusterId,
    items: page.slice(0, limit).map((machine) => machineBody(machine, cluster, now)),
    ...(last ? { next_page_token: pageToken(list, last.id) } : {}),
  };
};

/** How many GPUs of a cluster are free, and what each of its machines holds. */
export const getClusterUsage: Operation<'getClusterUsage'> = async (
  { store },
  { caller, path, query, now },
) => {
  const clusterId = requireClusterId(path.clusterId);
  const organizationId = query.businessOrgId;
  const cluster = await visibleCluster(store.read, { userId: caller.userId, organizationId, clusterId, now });
  const machines = cluster.state === 'released' ? [] : await listClusterMachines(store.read, clusterId);
  machines.sort((a, b) => byName.compare(a.name, b.name));
  const { inUse, ...gpus } = gpuUsage(machines.map((machine) => useOf(machine, cluster, now)));
  return {
    organization_id: organizationId,
    cluster_id: clusterId,
    gpus: { ...gpus, in_use: inUse },
    machines: machines.map((machine) => usageBody(machine, cluster, now)),
  };
};

const byName = new Intl.Collator('en', { numeric: true });

function useOf({ report, observedAt, lifecycleState }: Machine, cluster: Cluster, now: number): MachineUse {
  const isFresh = observedAt !== null && freshnessOf(observedAt, cluster, now) === 'fresh';
  return {
    gpuCount: report?.gpuCount ?? 0,
    gpusInUse: report?.gpusInUse,
    takesWork: report && isFresh ? report.ready && lifecycleState !== 'quarantined' : 'unknown',
  };
}

/** A report that is old does not say how a machine is now. */
function usageBody(machine: Machine, cluster: Cluster, now: number) {
  const { id, name, report, observedAt, lifecycleState } = machine;
  const { gpusInUse, takesWork } = useOf(machine, cluster, now);
  const isKnown = takesWork !== 'unknown';
  return {
    id,
    name,
    takes_work: isKnown ? takesWork : null,
    ...(report?.gpuCount === undefined ? {} : { gpu_count: report.gpuCount }),
    ...(isKnown && gpusInUse !== undefined ? { gpus_in_use: gpusInUse } : {}),
    ...(lifecycleState === 'quarantined'
      ? { reason: 'An operator keeps it from work' }
      : isKnown && report?.reason !== undefined
        ? { reason: report.reason }
        : {}),
    ...(observedAt === null ? {} : { observed_at: observedAt }),
  };
}

function freshnessOf(observedAt: string, cluster: Cluster, now: number) {
  return freshness({ observedAt: fromTime(observedAt), isHeartbeatDue: isInService(cluster), now });
}

function machineBody(machine: Machine, cluster: Cluster, now: number) {
  const { id, name, lifecycleState, report, observedAt, reportGeneration } = machine;
  return {
    id,
    name,
    lifecycle_state: lifecycleState,
    hardware: report ? hardwareOf(report) : {},
    ...(report && observedAt !== null
      ? {
          observed: {
            ready: report.ready,
            phase: report.phase,
            freshness: freshnessOf(observedAt, cluster, now),
            observed_at: observedAt,
            generation: reportGeneration,
          },
        }
      : {}),
  };
}

function hardwareOf({ gpuModel, gpuCount, cpuCores, memoryGib, ibSpeed }: NonNullable<Machine['report']>) {
  return {
    ...(gpuModel === undefined ? {} : { gpu_model: gpuModel }),
    ...(gpuCount === undefined ? {} : { gpu_count: gpuCount }),
    ...(cpuCores === undefined ? {} : { cpu_cores: cpuCores }),
    ...(memoryGib === undefined ? {} : { memory_gib: memoryGib }),
    ...(ibSpeed === undefined ? {} : { ib_speed: ibSpeed }),
  };
}
