/** What a simulated cluster reports of its parts, from the settings that say what is there and what is wrong with it. */
import type {
  ConditionReport,
  KubernetesReport,
  MachineReport,
  SchedulerReport,
  StorageReport,
} from '../../../domain/manifest.ts';
import { defaultSharedVolumeBytes } from '../../../domain/options.ts';
import type { Fault, SimulatedSettings } from '../../../domain/simulated.ts';

type Scheduler = 'sunk' | 'kubernetes' | null;

const defaultVersion = 'v1.34.2';

/** Whether enough time has passed since its first start. */
export function isProvisioned(settings: SimulatedSettings, startedAt: number, now: number): boolean {
  return now - startedAt >= (settings.provisionMs ?? 0);
}

export function machineReports(name: string, settings: SimulatedSettings): MachineReport[] {
  const { computeNodes, gpusPerNode, nodesDown = 0, machine } = settings;
  return Array.from({ length: computeNodes }, (_, index) => {
    const isDown = index >= computeNodes - nodesDown;
    return {
      name: `${name}-${index + 1}`,
      ready: !isDown,
      phase: isDown ? 'down' : 'idle',
      gpuCount: gpusPerNode,
      ...machine,
    };
  });
}

/** `refused` is the configuration that was not applied last, where one was not. */
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
  // Where the API is what people get, a control plane without it is none.
  const isApiDown = scheduler === 'kubernetes' && settings.kubernetes?.ready === false;
  const down = isApiDown ? { reason: 'ApiNotReady', message: 'The Kubernetes API is not ready.' } : undefined;
  return {
    configured: scheduler,
    ready: condition(provisioned ? (settings.schedulerFault ?? down) : provisioning),
  };
}

/** A Slurm cluster's nodes share a volume wherever there is storage to have one on. */
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

/** Slurm runs on Kubernetes here, so that every cluster has its API. Nothing listens at the default address. */
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
