/** The machines of a cluster. */

import { type Cluster, isInService } from '../domain/cluster.ts';
import { freshness, type Machine } from '../domain/machine.ts';
import { listMachines as listClusterMachines } from '../store/machines.ts';
import { fromTime } from '../store/time.ts';
import { requireClusterId, visibleCluster } from './access.ts';
import type { PlatformDeps, PlatformReply, PlatformRequest } from './operation.ts';
import { pageToken, readPageToken } from './paging.ts';

/** A page of the machines of a cluster that the caller may see, by ID. */
export async function listMachines(
  { store }: PlatformDeps,
  { caller, path, query, now }: PlatformRequest<'listMachines'>,
): Promise<PlatformReply<'listMachines'>> {
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
            freshness: freshness({
              observedAt: fromTime(observedAt),
              isHeartbeatDue: isInService(cluster),
              now,
            }),
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
