/** The machines of a cluster, and the use of their GPUs. */
import { isRecent } from '../../domain/access/manifest.ts';
import { type Cluster, freshness, isInService, type Machine } from '../../domain/clusters/cluster.ts';
import { gpuUsage, type MachineUse, mostUsagesAtOnce } from '../../domain/clusters/gpu-usage.ts';
import { DomainError, invalidRequest } from '../../domain/error.ts';
import { present, snakeCased } from '../../domain/present.ts';
import { listMachines as listClusterMachines } from '../../store/clusters/machines.ts';
import { findObservation } from '../../store/clusters/observations.ts';
import type { Reader } from '../../store/engine/index.ts';
import { fromTime, toTime } from '../../store/engine/time.ts';
import {
  type Operation,
  type PlatformReply,
  pageToken,
  readPageToken,
  requireClusterId,
  visibleCluster,
} from './access.ts';
import { type JobViewer, jobsIn, jobViewerIn } from './gpu-hours.ts';

export const listMachines: Operation<'listMachines'> = async ({ store }, request) => {
  const { businessOrgId: organizationId, limit = 50, after: token } = request.query;
  const clusterId = requireClusterId(request.path.clusterId);
  const list = `machines/${organizationId}/${clusterId}`;
  const after = token === undefined ? undefined : readPageToken(list, token);
  const cluster = await visibleCluster(store.read, request);
  const page = await machinesOf(store.read, cluster, { limit: limit + 1, after });
  const last = page.length > limit ? page[limit - 1] : undefined;
  return {
    organization_id: organizationId,
    cluster_id: clusterId,
    items: page.slice(0, limit).map((machine) => machineBody(machine, cluster, request.now)),
    ...present({ next_page_token: last && pageToken(list, last.id) }),
  };
};

export const getClusterUsage: Operation<'getClusterUsage'> = async ({ store }, request) =>
  usageOf(store.read, await visibleCluster(store.read, request), {
    now: request.now,
    viewer: await jobViewerIn(store.read, request.query.businessOrgId, request),
  });

export const listClusterUsage: Operation<'listClusterUsage'> = async ({ store }, request) => {
  const ids = new Set(request.query.cluster_ids.split(',').map(requireClusterId));
  if (ids.size > mostUsagesAtOnce)
    throw invalidRequest(`At most ${mostUsagesAtOnce} clusters can be asked for at once.`);
  const viewer = await jobViewerIn(store.read, request.query.businessOrgId, request);
  const items: PlatformReply<'getClusterUsage'>[] = [];
  for (const clusterId of ids) {
    const cluster = await visibleCluster(store.read, { ...request, path: { clusterId } }).catch(ifUnseen);
    if (cluster) items.push(await usageOf(store.read, cluster, { now: request.now, viewer }));
  }
  return { items };
};

function ifUnseen(error: unknown): undefined {
  if (!(error instanceof DomainError && ['forbidden', 'not_found'].includes(error.code))) throw error;
}

async function usageOf(
  db: Reader,
  cluster: Cluster,
  { now, viewer }: { now: number; viewer: JobViewer },
): Promise<PlatformReply<'getClusterUsage'>> {
  const [machines, slurm, kubernetes] = await Promise.all([
    machinesOf(db, cluster),
    findObservation(db, cluster.id, 'slurm'),
    findObservation(db, cluster.id, 'kubernetes'),
  ]);
  const observed = [slurm, kubernetes].flatMap((one) => one?.observedAt ?? []);
  // Jobs of an old report may have ended, so only a recent one is used.
  const report = cluster.scheduler === 'sunk' && slurm && isRecent(slurm.observedAt, now) && slurm.report;
  const pods =
    cluster.scheduler === 'kubernetes' &&
    viewer.seesPods &&
    kubernetes &&
    isRecent(kubernetes.observedAt, now)
      ? kubernetes.report.pods
      : undefined;
  machines.sort((a, b) => byName.compare(a.name, b.name));
  const { inUse, freeNodes, biggestBlock, ...gpus } = gpuUsage(
    machines.map((machine) => useOf(machine, cluster, now)),
  );
  return {
    organization_id: cluster.organizationId,
    cluster_id: cluster.id,
    ...present({
      scheduler: cluster.scheduler,
      links: cluster.links.length > 0 ? cluster.links.map((link) => ({ ...link })) : undefined,
      observed_at: observed.length === 0 ? undefined : toTime(Math.max(...observed)),
    }),
    gpus: { ...gpus, in_use: inUse, free_nodes: freeNodes, biggest_block: biggestBlock },
    machines: machines.map((machine) => usageBody(machine, cluster, now)),
    ...present({ pods: pods?.map((pod) => ({ ...pod })) }),
    ...(report && (await jobsIn(db, cluster.organizationId, report, viewer))),
  };
}

async function machinesOf(
  db: Reader,
  { id, state }: Cluster,
  page?: Parameters<typeof listClusterMachines>[2],
) {
  return state === 'released' ? [] : listClusterMachines(db, id, page);
}

const byName = new Intl.Collator('en', { numeric: true });

function useOf({ report, observedAt, lifecycleState }: Machine, cluster: Cluster, now: number): MachineUse {
  const isFresh = observedAt !== null && freshnessOf(observedAt, cluster, now) === 'fresh';
  return {
    gpuCount: report?.gpuCount ?? 0,
    gpusInUse: report?.gpusInUse,
    takesWork: report && isFresh ? report.ready && lifecycleState !== 'quarantined' : 'unknown',
  };
}

/** Leaves out the facts that an old report cannot confirm. */
function usageBody(machine: Machine, cluster: Cluster, now: number) {
  const { id, name, report, observedAt, lifecycleState } = machine;
  const { gpusInUse, takesWork } = useOf(machine, cluster, now);
  const isKnown = takesWork !== 'unknown';
  const isKept = lifecycleState === 'quarantined';
  return {
    id,
    name,
    takes_work: isKnown ? takesWork : null,
    ...present({
      gpu_count: report?.gpuCount,
      gpus_in_use: isKnown ? gpusInUse : undefined,
      reason: isKept ? 'An operator keeps it from work' : isKnown ? report?.reason : undefined,
      observed_at: observedAt,
    }),
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
    hardware: report
      ? present(snakeCased(report, ['gpuModel', 'gpuCount', 'cpuCores', 'memoryGib', 'ibSpeed']))
      : {},
    ...(report &&
      observedAt !== null && {
        observed: {
          ready: report.ready,
          phase: report.phase,
          freshness: freshnessOf(observedAt, cluster, now),
          observed_at: observedAt,
          generation: reportGeneration,
        },
      }),
  };
}
