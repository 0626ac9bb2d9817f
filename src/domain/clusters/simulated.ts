/** The lab file's `simulated` section: a cluster that exists only here, and what is to be wrong with it. */
import type { LoginMode, MachineReport, PendingJob, RunningJob } from '../access/manifest.ts';

/** Why something does not work: one word, and a sentence. */
export interface Fault {
  reason: string;
  message: string;
}

/** What the volume that a Slurm cluster's nodes share asks for when no size is set: 100 GiB. */
export const defaultSharedVolumeBytes = 100 * 2 ** 30;

export interface SimulatedSettings {
  computeNodes: number;
  gpusPerNode: number;
  /** How long applying a manifest takes. */
  applyMs?: number;
  /** How long after its first start the control plane begins to work. */
  provisionMs?: number;
  runningJobs?: RunningJob[];
  pendingJobs?: PendingJob[];
  /** Those that ran run again after a restart. */
  requeue?: boolean;
  machine?: Pick<MachineReport, 'gpuModel' | 'cpuCores' | 'memoryGib' | 'ibSpeed'>;
  /** How many of the compute nodes, the last ones, take no work. */
  nodesDown?: number;
  /** How many of the others, the last ones, take no new work, and why. */
  nodesDrained?: number;
  drainReason?: string;
  /** GPUs held by jobs other than `runningJobs`, on the first nodes that take work. */
  gpusInUse?: number;
  /** `PerUser`: it reports a login node for each account, which are one machine all the same. */
  loginMode?: LoginMode;
  /** It does not answer: nothing is applied and no report comes. */
  silent?: boolean;
  /** In words, what keeps it from applying anything. */
  failure?: string;
  /** Why its scheduler does not work. */
  schedulerFault?: Fault;
  kubernetes?: {
    version?: string;
    kubeletVersion?: string;
    server?: string;
    /** PEM. */
    certificateAuthority?: string;
    ready?: boolean;
  };
  storage?: {
    types: ('ceph' | 'weka' | 'nfs')[];
    quotaBytes?: number;
    /** What the volume that a Slurm cluster's nodes share asks for. */
    sharedVolumeBytes?: number;
    fault?: Fault;
  };
}
