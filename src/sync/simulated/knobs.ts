/** The reports of a simulated cluster's parts, from settings that describe its parts and their faults. */
import type {
  ConditionReport,
  KubernetesReport,
  MachineReport,
  RunningJob,
  SchedulerReport,
  StorageReport,
} from '../../domain/access/manifest.ts';
import { defaultSharedVolumeBytes, type Fault, type SimulatedSettings } from '../../domain/clusters/lab.ts';

type Scheduler = 'sunk' | 'kubernetes' | null;

export interface SimulatedOptions {
  name: string;
  /** Reads the section of the lab file; called each time, so that faults can come and go. */
  settings(): Promise<SimulatedSettings>;
  /** Directory of this cluster's state and of its login node's homes. */
  dataDir: string;
}

const defaultVersion = 'v1.34.2';

export async function reach({ name, settings }: SimulatedOptions): Promise<SimulatedSettings> {
  const found = await settings();
  if (found.silent) throw new Error(`the simulated cluster ${name} does not answer`);
  return found;
}

export function isProvisioned(settings: SimulatedSettings, startedAt: number, now: number): boolean {
  return now - startedAt >= (settings.provisionMs ?? 0);
}

/** A job of `runningJobs` holds all GPUs of its machines; `gpusInUse` fills the other machines one after the other. */
export function machineReports(
  name: string,
  settings: SimulatedSettings,
  jobs: readonly RunningJob[] = settings.runningJobs ?? [],
): MachineReport[] {
  const { computeNodes, gpusPerNode, nodesDown = 0, nodesDrained = 0, machine } = settings;
  const { gpusInUse: others = 0, drainReason = 'Drained' } = settings;
  const taken = new Set(jobs.flatMap(({ machines }) => machines));
  let left = others;
  return Array.from({ length: computeNodes }, (_, index) => {
    const own = `${name}-${index + 1}`;
    const isDown = index >= computeNodes - nodesDown;
    const isDrained = !isDown && index >= computeNodes - nodesDown - nodesDrained;
    const isTaken = !isDown && taken.has(own);
    const inUse = isTaken ? gpusPerNode : isDown || isDrained ? 0 : Math.min(left, gpusPerNode);
    if (!isTaken) left -= inUse;
    const busy = inUse === 0 && !isTaken ? 'idle' : inUse < gpusPerNode ? 'mixed' : 'allocated';
    return {
      name: own,
      ready: !isDown && !isDrained,
      phase: isDown ? 'down' : isDrained ? `${busy}+drain` : busy,
      gpuCount: gpusPerNode,
      gpusInUse: inUse,
      ...(isDown ? { reason: 'Not responding' } : isDrained ? { reason: drainReason } : {}),
      ...machine,
    };
  });
}

/** `refused`: the configuration that the last `apply` failed to apply, if any. */
export function schedulerReport(
  scheduler: Scheduler,
  settings: SimulatedSettings,
  { provisioned, refused }: { provisioned: boolean; refused: number | 'current' | undefined },
): SchedulerReport {
  if (scheduler === null) return { configured: null };
  if (refused !== undefined && settings.failure !== undefined) {
    const fault = { reason: 'ApplyFailed', message: settings.failure };
    const about = refused === 'current' ? {} : { observedGeneration: refused };
    return { configured: scheduler, ready: { ...condition(fault), ...about } };
  }
  const provisioning = { reason: 'Provisioning', message: 'The control plane is starting.' };
  // In a Kubernetes cluster, people use the API: without it, the control plane is down.
  const isApiDown = scheduler === 'kubernetes' && settings.kubernetes?.ready === false;
  const down = isApiDown ? { reason: 'ApiNotReady', message: 'The Kubernetes API is not ready.' } : undefined;
  return {
    configured: scheduler,
    ready: condition(provisioned ? (settings.schedulerFault ?? down) : provisioning),
  };
}

/** Nodes of a Slurm cluster share a volume if there is any storage. */
export function storageReport(scheduler: Scheduler, { storage }: SimulatedSettings): StorageReport {
  const has = (type: 'ceph' | 'weka' | 'nfs') => storage?.types.includes(type) ?? false;
  const report = { ceph: has('ceph'), weka: has('weka'), nfs: has('nfs') };
  if (!storage || storage.types.length === 0) return report;
  return {
    ...report,
    ...(report.ceph && storage.quotaBytes !== undefined ? { quotaBytes: storage.quotaBytes } : {}),
    ...(scheduler === 'sunk'
      ? { sharedVolumeBytes: storage.sharedVolumeBytes ?? defaultSharedVolumeBytes }
      : {}),
    ready: condition(storage.fault),
  };
}

/** The simulated Slurm runs on Kubernetes, so that every cluster has an API. Nothing listens at the default address. */
export function kubernetesReport(
  name: string,
  { kubernetes }: SimulatedSettings,
  provisioned: boolean,
): KubernetesReport {
  const version = kubernetes?.version ?? defaultVersion;
  const { certificateAuthority } = kubernetes ?? {};
  return {
    server: kubernetes?.server ?? `https://${name.toLowerCase()}.simulated.invalid:6443`,
    ...(certificateAuthority === undefined ? {} : { certificateAuthority }),
    ready: provisioned && (kubernetes?.ready ?? true),
    version,
    ...(provisioned ? { kubeletVersion: kubernetes?.kubeletVersion ?? version } : {}),
  };
}

function condition(fault: Fault | undefined): ConditionReport {
  return fault ? { status: 'False', ...fault } : { status: 'True', reason: 'Ready' };
}
