/**
 * The access list: the people whom an organization's Slurm clusters must know (contract, "Cluster access list"). The
 * manifest: the state that a driver has to apply. The reports: the state that drivers observe.
 */
import { createHash } from 'node:crypto';
import type { ManifestGroup } from '../organizations/membership.ts';
import type { SlurmConfiguration } from '../slurm/configuration.ts';
import type { DirectLogins } from '../slurm/direct.ts';
import type { Hop } from '../slurm/hop.ts';
import type { FormerAccount } from './adopted.ts';
import { effectivePermissions, type Role } from './permission.ts';

/** An access list as Platform accepted it, with fixed names and allocated UIDs, and the configuration that goes with it. */
export interface Manifest {
  clusterId: string;
  /** 0 on a cluster without a list, such as a Kubernetes-only one. */
  generation: number;
  /** The cluster's desired configuration version that this list goes with. */
  desiredGeneration: number;
  /** 0 before the first Slurm configuration. */
  schedulerGeneration: number;
  slurmConfiguration: SlurmConfiguration;
  /** The last write of the configuration, even one without a change: writing it again retries a rejected one. */
  configurationPutAt?: string;
  /** The version of the organization's list that the accounts are from; one list serves all its clusters. 0: no list. */
  listVersion: number;
  accounts: readonly ManifestAccount[];
  /** Adopted accounts of people who have none now: a host may still have such an account, and know nothing of it. */
  former?: readonly FormerAccount[];
  groups?: readonly ManifestGroup[];
  direct?: DirectLogins;
}

export interface ManifestAccount {
  userId: string;
  username: string;
  uid: number;
  gid: number;
  home: string;
  shell: string;
  loginState: 'ready' | 'waiting_for_key';
  /** Set for people with `clusters.ssh.admin`. */
  isAdmin?: true;
  /** An operator gave the numbers, and the cluster adopts accounts: one that a host has with them becomes ours. */
  isAdopted?: true;
  keySetGeneration: number;
  keyFingerprints: readonly string[];
}

export interface LoginNodeReport {
  name: string;
  host: string;
  port: number;
  /** `ssh-ed25519 AAAA…`; the gateway refuses to connect if the node shows another key. */
  hostKey: string;
  via?: Hop;
  up: boolean;
  /** One probe failed: the node counts as up until the next probe fails too. The next probe should be soon. */
  missed?: true;
  /** With one login node per person: its user. Absent: a shared node. */
  username?: string;
  /** Chosen shells that the node lacks: accounts with them get another. Absent: unknown. */
  missingShells?: readonly string[];
}

/** Shared login nodes, or a login node for each person (contract, "Login modes"). */
export type LoginMode = 'Shared' | 'PerUser';

export function loginModeOf({
  loginMode,
  loginNodes,
}: Pick<SlurmReport, 'loginMode' | 'loginNodes'>): LoginMode {
  return loginMode ?? (loginNodes.some(({ username }) => username !== undefined) ? 'PerUser' : 'Shared');
}

/** The login nodes that `username` may use, in the cluster's order. */
export function loginNodesFor(
  report: Pick<SlurmReport, 'loginMode' | 'loginNodes'>,
  username: string,
): LoginNodeReport[] {
  const isPerUser = loginModeOf(report) === 'PerUser';
  return report.loginNodes.filter((node) => node.username === (isPerUser ? username : undefined));
}

/** A machine as Slurm or Kubernetes reports it; unknown facts are absent. */
export interface MachineReport {
  name: string;
  ready: boolean;
  /** The scheduler's own state, such as `idle` or `Ready`. */
  phase: string;
  gpuModel?: string;
  gpuCount?: number;
  /** GPUs held by jobs or pods. Absent: unknown, which does not mean none. */
  gpusInUse?: number;
  /** Why it takes no work, as its scheduler or administrator wrote it. */
  reason?: string;
  cpuCores?: number;
  memoryGib?: number;
  /** InfiniBand link speed, such as `400 Gb/sec`. */
  ibSpeed?: string;
}

export interface RunningJob {
  /** As `squeue` prints it: in an array `4711_3`, in a heterogeneous job `4711+1`. */
  id: string;
  user: string;
  name: string;
  machines: string[];
  /** The number of GPUs that the job holds; absent for none. */
  gpus?: number;
  /** RFC 3339: the start and the time limit; absent if unknown, or without a limit. */
  startedAt?: string;
  endsAt?: string;
}

export interface PendingJob extends Pick<RunningJob, 'id' | 'user' | 'name' | 'gpus'> {
  /** Slurm's reason code, such as `Resources`. */
  reason: string;
  /** RFC 3339: the start time that Slurm expects; absent if it gives none. */
  startsAt?: string;
}

/** A limit set on an association itself, in Slurm's terms: `GrpTRES`, `gres/gpu=16`. */
export interface SlurmLimit {
  /** Absent: the limit is the account's. */
  user?: string;
  name: string;
  value: string;
  /** The lab file's value, where a manual change set another, which stays. */
  wanted?: string;
}

export interface GpuDay {
  /** Such as `2026-11-26`. */
  day: string;
  /** GPU seconds by login name. */
  seconds: Record<string, number>;
}

export interface ConditionReport {
  status: 'True' | 'False' | 'Unknown';
  /** The configuration that the condition is about; absent: the one in force there. */
  observedGeneration?: number;
  /** One word, such as `ControllerDown`. */
  reason?: string;
  message?: string;
  /** RFC 3339. Absent if the driver does not know it: then the first report with this status sets it. */
  lastTransitionTime?: string;
}

export interface SchedulerReport {
  /** The product installed there; null: none. */
  configured: 'sunk' | 'kubernetes' | null;
  ready?: ConditionReport;
}

/** The storage that a cluster has; facts that could not be read are absent. */
export interface StorageReport {
  ceph?: boolean;
  weka?: boolean;
  nfs?: boolean;
  quotaBytes?: number;
  /** The request of the cluster's shared volume, which is neither the quota nor the purchased size. */
  sharedVolumeBytes?: number;
  /** The readiness of Ceph or NFS. */
  ready?: ConditionReport;
}

/** The Kubernetes API of a cluster, and the versions there. */
export interface KubernetesReport {
  /** `https://…`, the address for kubectl. */
  server: string;
  /** PEM; absent if the server's certificate is publicly trusted. */
  certificateAuthority?: string;
  /** The name in its certificate, if `server` has another. */
  tlsServerName?: string;
  ready: boolean;
  /** The control plane's version, which its nodes are to run too. */
  version?: string;
  /** The oldest version among the nodes. */
  kubeletVersion?: string;
}

export interface GpuPod {
  namespace: string;
  name: string;
  machine: string;
  gpus: number;
}

/** The complete report of one side of a cluster, made anew by each observation. Unknown facts are absent. */
export interface SideReport {
  /** The configuration version in force there, 0 before the first. */
  desiredGeneration: number;
  controlPlaneReady: boolean;
  scheduler?: SchedulerReport;
  storage?: StorageReport;
  /** On Slurm's side, set only if Slurm runs on Kubernetes and Kubernetes is not a side of its own. */
  kubernetes?: KubernetesReport;
  /** Absent: the list of machines could not be read. */
  machines?: readonly MachineReport[] | undefined;
  /** Pods that hold GPUs, the largest holders first (Kubernetes only); absent if unknown. */
  pods?: readonly GpuPod[];
  /** A sentence that says what a person must mend there; null for no fault. */
  failure: string | null;
}

/** The report of the Kubernetes side. Its configuration is always the requested one: Kubernetes has nothing to apply. */
export type KubernetesSideReport = Omit<SideReport, 'desiredGeneration'>;

/** A host that has not confirmed the newest list: removed people may still have processes there. */
export interface WaitingHost {
  /** The Slurm node's name, or the host's management address. */
  host: string;
  /** The list generation that the host has; absent if none, or unknown. */
  generation?: number;
  listVersion?: number;
  message: string;
  /** RFC 3339. Drivers leave it out: the first report that named the host sets it. */
  since?: string;
}

export interface BlockedPerson extends Pick<WaitingHost, 'host' | 'message' | 'since'> {
  userId: string;
}

export interface DirectoryNumber {
  userId: string;
  uid: number;
  gid: number;
}

/** The report of the Slurm side. Its `failure` says why the manifest cannot be applied. */
export interface SlurmReport extends SideReport {
  /** The manifest generation in force there, 0 before the first. */
  manifestGeneration: number;
  /** Absent: Slurm did not return the running jobs. */
  runningJobs?: readonly RunningJob[];
  /** Waiting jobs, the first to start first. */
  pendingJobs?: readonly PendingJob[];
  /** The numbers of running and waiting jobs beyond those listed. */
  moreJobs?: { running: number; pending: number };
  /** Whether Slurm hides other people's jobs (`PrivateData`); absent if unknown. */
  jobsArePrivate?: boolean;
  /** Whether Slurm hides other people's GPU time (`PrivateData`); absent if unknown. */
  usageIsPrivate?: boolean;
  /** Days of GPU time from Slurm's accounting, if some were read; absent for a cluster without accounting. */
  gpuDays?: readonly GpuDay[];
  /** Absent: follows from the login nodes. */
  loginMode?: LoginMode;
  loginNodes: readonly LoginNodeReport[];
  /**
   * The version of the organization's list that the accounts in force are from. 0 or absent: no list, so that only
   * the people in `accounts` have accounts.
   */
  listVersion?: number;
  /**
   * The accounts that differ from that version, as the cluster reports them; a missing account is reported without
   * keys and as waiting for one.
   */
  accounts: readonly AccountReport[];
  /** Hosts without an answer. `controller`: the cluster was not observed; `all`: no host was. */
  silent?: 'controller' | 'all';
  /** Limits set on the Slurm account and on its people; absent if unknown. */
  limits?: readonly SlurmLimit[];
  /** Missing prerequisites of logins into jobs, with the hosts that lack them. */
  jobLogins?: readonly string[];
  /** The hosts that are furthest behind, at most 50. */
  waiting?: readonly WaitingHost[];
  /** Hosts on which people cannot have their account, with the reason. */
  blocked?: readonly BlockedPerson[];
  /** The numbers that a directory has for people without one. */
  numbers?: readonly DirectoryNumber[];
  /** The cluster's state has drifted from the manifest in force; applying that again repairs it. */
  drifted?: true;
}

export type AccountReport = Pick<
  ManifestAccount,
  'userId' | 'shell' | 'loginState' | 'keySetGeneration' | 'keyFingerprints'
>;

/** How long a cluster's report counts as recent, in milliseconds (contract, "Observation freshness"). */
export const observationFreshnessMs = 120_000;

export interface Member {
  userId: string;
  username: string;
  role: Role;
  permissions: readonly string[];
  shell: string;
  keySetGeneration: number;
  keyFingerprints: readonly string[];
  goodKeys?: readonly string[];
}

export interface AccessListUser {
  userId: string;
  username: string;
  accessMode: 'use' | 'admin';
  desiredLoginState: 'ready' | 'waiting_for_key';
  keySetGeneration: number;
  keyFingerprints: readonly string[];
  shell: string;
}

/** The list of one cluster and its generation. A withdrawn list is empty. */
export interface AccessList {
  clusterId: string;
  generation: number;
  desiredGeneration: number;
  isWithdrawn: boolean;
  /** RFC 3339. */
  updatedAt: string;
}

/**
 * A member's entry: everyone who holds `clusters.ssh` in any way has one, with or without a key. Lapsed keys are left out,
 * but the account stays while the person has any key: removing an account ends its jobs, and mere passing of time must not.
 */
export function accessListUser(member: Member): AccessListUser | undefined {
  const held = effectivePermissions(member.role, member.permissions);
  if (!held.has('clusters.ssh')) return undefined;
  const { userId, username, keySetGeneration, keyFingerprints, shell } = member;
  return {
    userId,
    username,
    accessMode: held.has('clusters.ssh.admin') ? 'admin' : 'use',
    desiredLoginState: keyFingerprints.length > 0 ? 'ready' : 'waiting_for_key',
    keySetGeneration,
    keyFingerprints: member.goodKeys ?? keyFingerprints,
    shell,
  };
}

/** Compares an entry with the required one; undefined: no entry. */
export function isSameEntry(a: AccessListUser | undefined, b: AccessListUser | undefined): boolean {
  if (!a || !b) return a === b;
  return (
    a.username === b.username &&
    a.accessMode === b.accessMode &&
    a.desiredLoginState === b.desiredLoginState &&
    a.keySetGeneration === b.keySetGeneration &&
    a.shell === b.shell &&
    a.keyFingerprints.length === b.keyFingerprints.length &&
    a.keyFingerprints.every((fingerprint, index) => fingerprint === b.keyFingerprints[index])
  );
}

/** A digest of a list, its users sorted by ID; two lists are equal exactly when their digests are. */
export function accessListHash(users: readonly Omit<AccessListUser, 'keyFingerprints'>[]): string {
  const hash = createHash('sha256');
  for (const user of users) {
    hash.update(
      `${user.userId}\0${user.username}\0${user.accessMode}\0${user.desiredLoginState}\0${user.keySetGeneration}\0${user.shell}\n`,
    );
  }
  return `sha256:${hash.digest('hex')}`;
}

/** The contract also has `rejected`, which is never used: Platform accepts every list. */
export type AccessListState = 'pending' | 'accepted' | 'converged' | 'stale' | 'failed';

/** The progress of a list's delivery to a cluster. Times in ms since 1970. */
export interface Delivery {
  generation: number;
  observation:
    | { observedAt: number; manifestGeneration: number; failure: string | null; waiting: readonly unknown[] }
    | undefined;
  now: number;
}

export function accessListState(delivery: Delivery): AccessListState {
  const { observation } = delivery;
  if (!observation) return 'accepted';
  if (!isRecent(observation.observedAt, delivery.now)) return 'stale';
  if (observation.failure !== null) return 'failed';
  return isEverywhere(delivery) ? 'converged' : 'accepted';
}

/** True if the list is in force on every host; on a host with an older list, removed people may still have processes. */
function isEverywhere({ observation, generation }: Delivery): boolean {
  return (observation?.manifestGeneration ?? -1) >= generation && observation?.waiting.length === 0;
}

/** The state in the cluster's own last report of the list; null before the first. */
export function observationState(delivery: Delivery): 'pending' | 'converged' | 'failed' | null {
  const { observation } = delivery;
  if (!observation) return null;
  if (observation.failure !== null) return 'failed';
  return isEverywhere(delivery) ? 'converged' : 'pending';
}

/** True while a report of `observedAt` is recent enough to rely on. */
export function isRecent(observedAt: number, now: number): boolean {
  return now - observedAt <= observationFreshnessMs;
}
