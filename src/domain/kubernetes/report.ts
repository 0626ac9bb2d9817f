/** Converts the answers of a Kubernetes API server to a report: nodes as machines, storage, readiness. */
import type { ConditionReport, GpuPod, MachineReport, StorageReport } from '../access/manifest.ts';
import { present } from '../present.ts';
import { cutText } from '../text.ts';

export interface Node {
  metadata: { name: string; labels?: Record<string, string> };
  spec?: { unschedulable?: boolean };
  status?: {
    capacity?: Record<string, string>;
    allocatable?: Record<string, string>;
    conditions?: { type: string; status: string; message?: string }[];
    nodeInfo?: { kubeletVersion?: string };
  };
}

/** Extended resources that are GPUs, and the node label with their model. */
const gpus = [
  { resource: 'nvidia.com/gpu', label: 'nvidia.com/gpu.product' },
  { resource: 'amd.com/gpu', label: 'amd.com/gpu.product-name' },
  { resource: 'gpu.intel.com/i915', label: 'gpu.intel.com/product' },
  { resource: 'gpu.intel.com/xe', label: 'gpu.intel.com/product' },
] as const;

export function gpuOf({ status }: Node): (typeof gpus)[number] | undefined {
  return gpus.find(({ resource }) => status?.capacity?.[resource] !== undefined);
}

/**
 * A node as a machine. When a kubelet is gone, its node's capacity still counts as the machine's. `use`: the amount
 * of each resource that pods hold, by node; undefined if unknown.
 */
export function machineOf(node: Node, use: PodUse | undefined): MachineReport {
  const { metadata, spec, status } = node;
  const { capacity = {}, allocatable = {}, conditions = [] } = status ?? {};
  const readiness = conditions.find(({ type }) => type === 'Ready');
  const state = readiness?.status ?? 'Unknown';
  const isReady = state === 'True';
  const cordoned = spec?.unschedulable === true;
  const gpu = gpuOf(node);
  const gpuModel = gpu && metadata.labels?.[gpu.label];
  const gpuCount = gpu && quantity((isReady ? allocatable : capacity)[gpu.resource]);
  const cpuCores = quantity(capacity['cpu']);
  const memory = quantity(capacity['memory']);
  const gpusInUse = gpu && use && (use.held.get(metadata.name)?.get(gpu.resource) ?? 0);
  const reason = isReady ? (cordoned ? 'Cordoned: it takes no new pods' : undefined) : readiness?.message;
  return {
    name: metadata.name,
    ready: isReady && !cordoned,
    phase: `${isReady ? 'Ready' : state === 'False' ? 'NotReady' : 'Unknown'}${cordoned ? ',SchedulingDisabled' : ''}`,
    ...present({
      gpuModel,
      gpuCount,
      gpusInUse,
      reason: reason ? cutText(reason, mostReason) : undefined,
      cpuCores: cpuCores && Math.floor(cpuCores),
      memoryGib: memory && Math.floor(memory / 2 ** 30),
    }),
  };
}

const mostReason = 200;

export interface Pod {
  metadata?: { namespace?: string; name?: string };
  spec?: {
    nodeName?: string;
    containers?: PodContainer[];
    initContainers?: (PodContainer & { restartPolicy?: string })[];
  };
  status?: { phase?: string };
}

interface PodContainer {
  resources?: { requests?: Record<string, string>; limits?: Record<string, string> };
}

export interface PodUse {
  held: Map<string, Map<string, number>>;
  pods: GpuPod[];
}

export function addPods({ held, pods: holders }: PodUse, pods: readonly Pod[]): void {
  for (const { metadata, spec, status } of pods) {
    if (!spec?.nodeName || status?.phase === 'Succeeded' || status?.phase === 'Failed') continue;
    const machine = spec.nodeName;
    const onNode = held.get(machine) ?? new Map<string, number>();
    let all = 0;
    for (const { resource } of gpus) {
      const own = heldBy(spec, resource);
      if (own > 0) held.set(machine, onNode.set(resource, (onNode.get(resource) ?? 0) + own));
      all += own;
    }
    if (all > 0)
      holders.push({ namespace: metadata?.namespace ?? '', name: metadata?.name ?? '', machine, gpus: all });
  }
}

/** Counts as the scheduler does: init containers run one after another before the others; sidecars (`Always`) keep running. */
function heldBy(
  { containers = [], initContainers = [] }: NonNullable<Pod['spec']>,
  resource: string,
): number {
  const of = ({ resources }: PodContainer) =>
    quantity(resources?.requests?.[resource] ?? resources?.limits?.[resource]) ?? 0;
  let beside = 0;
  let most = 0;
  for (const one of initContainers) {
    if (one.restartPolicy === 'Always') beside += of(one);
    most = Math.max(most, beside + (one.restartPolicy === 'Always' ? 0 : of(one)));
  }
  return Math.max(most, beside + containers.reduce((sum, one) => sum + of(one), 0));
}

export function oldestKubelet(nodes: readonly Node[]): string | undefined {
  const versions = nodes.flatMap(({ status }) => status?.nodeInfo?.kubeletVersion ?? []);
  return versions.sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))[0];
}

export interface RookObject {
  metadata: { name: string; namespace?: string };
  spec?: { quota?: unknown };
  status?: {
    phase?: string;
    message?: string;
    ceph?: { health?: string; details?: Record<string, { message?: string }> };
  };
}

/** Storage objects found in the cluster; undefined: they could not be read. Empty if Rook is not installed. */
interface StorageFacts {
  cephClusters: readonly RookObject[] | undefined;
  cephFilesystems: readonly RookObject[] | undefined;
  subVolumeGroups: readonly RookObject[] | undefined;
  storageClasses: readonly { provisioner: string }[] | undefined;
  subVolumeGroup: string | undefined;
}

export function storageOf(facts: StorageFacts): StorageReport {
  const { cephClusters, storageClasses } = facts;
  const provisioners = storageClasses?.map(({ provisioner }) => provisioner);
  const ceph = cephClusters && cephClusters.length > 0;
  const weka = provisioners?.some((name) => name === 'csi.weka.io' || name.endsWith('.weka.io'));
  const hasNfs = provisioners?.some((name) => /(^|[./-])nfs([./-]|$)/.test(name));
  const report: StorageReport = {
    // NFS excludes the others (contract, "Cluster options"): with Ceph or WEKA present, NFS does not count as the cluster's storage.
    ...present({ ceph, weka, nfs: hasNfs && !ceph && !weka }),
  };
  if (!ceph) return report;
  const group = ownGroup(facts);
  const quotaBytes = quantity(group?.spec?.quota);
  const parts = [...cephClusters, ...(facts.cephFilesystems ?? []), ...(group ? [group] : [])];
  return {
    ...report,
    ...present({ quotaBytes }),
    ready: cephReadiness(parts, facts.cephFilesystems !== undefined),
  };
}

/** With several groups, which may have different owners, the settings must name the cluster's. */
function ownGroup({ subVolumeGroups, subVolumeGroup }: StorageFacts): RookObject | undefined {
  if (subVolumeGroup !== undefined) {
    return subVolumeGroups?.find(({ metadata }) => metadata.name === subVolumeGroup);
  }
  return subVolumeGroups?.length === 1 ? subVolumeGroups[0] : undefined;
}

/** Ready when every part is; else the condition of the first that is not. Rook's phase is `Ready` even while Ceph's health is bad. */
function cephReadiness(parts: readonly RookObject[], areAllReadable: boolean): ConditionReport {
  const conditions = parts.map(partReadiness);
  // An unreadable part is not known to be ready.
  if (!areAllReadable) {
    const message = 'Our credentials may not list the file systems of Rook.';
    conditions.push({ status: 'Unknown', reason: 'NotReadable', message });
  }
  return (
    conditions.find(({ status }) => status === 'False') ??
    conditions.find(({ status }) => status === 'Unknown') ??
    conditions.find(({ reason }) => reason === 'HEALTH_WARN') ?? { status: 'True', reason: 'Ready' }
  );
}

function partReadiness({ metadata, status }: RookObject): ConditionReport {
  const { phase, message, ceph } = status ?? {};
  if (phase === undefined) {
    return { status: 'Unknown', reason: 'NoStatus', message: `Rook says nothing of ${metadata.name} yet.` };
  }
  if (phase !== 'Ready') {
    return { status: 'False', reason: phase, message: `${metadata.name}: ${message ?? phase}` };
  }
  const health = ceph?.health;
  if (health !== 'HEALTH_WARN' && health !== 'HEALTH_ERR') return { status: 'True', reason: 'Ready' };
  const details = Object.values(ceph?.details ?? {}).flatMap((detail) => detail.message ?? []);
  return {
    status: health === 'HEALTH_ERR' ? 'False' : 'True',
    reason: health,
    message: `${metadata.name}: ${details.slice(0, 5).join('; ') || health}`,
  };
}

/** The condition for an answer of `/readyz`, whose text has a line for each check if it is not ready. */
export function apiReadiness(answer: { status: number; text: string }): ConditionReport {
  if (answer.status === 200) return { status: 'True', reason: 'Ready' };
  const failed = [...answer.text.matchAll(/^\[-\](\S+)/gm)].map(([, check]) => check);
  if (answer.status === 500) {
    const checks = failed.length > 0 ? ` Checks that fail: ${failed.slice(0, 10).join(', ')}.` : '';
    return {
      status: 'False',
      reason: 'NotReady',
      message: `The API server says that it is not ready.${checks}`,
    };
  }
  return {
    status: 'Unknown',
    reason: 'ReadinessUnknown',
    message: `The API server does not say whether it is ready (${answer.status}).`,
  };
}

const factors: Record<string, number> = {
  '': 1,
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

/** A Kubernetes quantity, such as `64000Mi`, `191500m` and `1e3`, as a number; undefined for anything else. */
export function quantity(value: unknown): number | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? value : undefined;
  if (typeof value !== 'string') return undefined;
  const [, digits, unit = ''] =
    /^([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)([numkMGTPE]|[KMGTPE]i)?$/.exec(value) ?? [];
  const factor = factors[unit];
  return digits === undefined || factor === undefined ? undefined : Number(digits) * factor;
}
