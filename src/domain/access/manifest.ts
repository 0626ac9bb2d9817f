/**
 * The access list, whom the Slurm clusters of an organization must know (contract, "Cluster access list"); the manifest, which is
 * what a driver is asked to make true of it; and what drivers report back. Each entry follows from the present truth about one
 * person alone.
 */
import { createHash } from 'node:crypto';
import type { SlurmConfiguration } from '../slurm/configuration.ts';
import { effectivePermissions, type Role } from './permission.ts';

/** An access list as Platform accepted it: names frozen, numbers allocated; and the configuration that goes with it. */
export interface Manifest {
  clusterId: string;
  /** 0 where there is no list, as on a Kubernetes-only cluster. */
  generation: number;
  /** The cluster's desired configuration version that this list goes with. */
  desiredGeneration: number;
  /** 0 while no Slurm configuration was ever written. */
  schedulerGeneration: number;
  slurmConfiguration: SlurmConfiguration;
  /** When it was last put, by a request that changed nothing too: one that was refused is tried again then. */
  configurationPutAt?: string;
  /** The version of the organization's list that the accounts are; one list serves all its clusters. 0: no list. */
  listVersion: number;
  accounts: readonly ManifestAccount[];
}

export interface ManifestAccount {
  userId: string;
  username: string;
  uid: number;
  gid: number;
  home: string;
  shell: string;
  loginState: 'ready' | 'waiting_for_key';
  /** With `clusters.ssh.admin`. */
  isAdmin?: true;
  keySetGeneration: number;
  keyFingerprints: readonly string[];
}

export interface LoginNodeReport {
  name: string;
  host: string;
  port: number;
  /** `ssh-ed25519 AAAA…`: the gateway connects to nothing that shows another key. */
  hostKey: string;
  up: boolean;
  /** It did not answer, once: it is up until it does not the next time either. Worth asking again soon. */
  missed?: true;
  /** Where everyone has their own: whose it is. Left out: everyone's. */
  username?: string;
  /** Shells that people have chosen and that it lacks: accounts there have another. Left out: not known. */
  missingShells?: readonly string[];
}

/** Whether everyone uses the same login nodes, or each person has their own (contract, "Login modes"). */
export type LoginMode = 'Shared' | 'PerUser';

export function loginModeOf({
  loginMode,
  loginNodes,
}: Pick<SlurmReport, 'loginMode' | 'loginNodes'>): LoginMode {
  return loginMode ?? (loginNodes.some(({ username }) => username !== undefined) ? 'PerUser' : 'Shared');
}

/** The login nodes that `username` may use, in the order in which the cluster names them. */
export function loginNodesFor(
  report: Pick<SlurmReport, 'loginMode' | 'loginNodes'>,
  username: string,
): LoginNodeReport[] {
  const isPerUser = loginModeOf(report) === 'PerUser';
  return report.loginNodes.filter((node) => node.username === (isPerUser ? username : undefined));
}

/** A machine as Slurm or Kubernetes names it and sees it. What is not known is left out. */
export interface MachineReport {
  name: string;
  ready: boolean;
  /** In the scheduler's own words, such as `idle` or `Ready`. */
  phase: string;
  gpuModel?: string;
  gpuCount?: number;
  /** GPUs that jobs or pods hold. Left out: not known, which is not the same as none. */
  gpusInUse?: number;
  /** Why it takes no work, in the words of who or what said so. */
  reason?: string;
  cpuCores?: number;
  memoryGib?: number;
  /** InfiniBand link speed, such as `400 Gb/sec`. */
  ibSpeed?: string;
}

export interface RunningJob {
  /** As `squeue` prints it: of an array `4711_3`, of a heterogeneous job `4711+1`. */
  id: string;
  user: string;
  name: string;
  machines: string[];
  /** All that it holds; left out for none. */
  gpus?: number;
  /** RFC 3339: since when it runs, and when its time is up; left out where that is not known, or not limited. */
  startedAt?: string;
  endsAt?: string;
}

export interface PendingJob extends Pick<RunningJob, 'id' | 'user' | 'name' | 'gpus'> {
  /** Slurm's word for why, such as `Resources`. */
  reason: string;
  /** RFC 3339: when Slurm expects that it starts; left out where it does not say. */
  startsAt?: string;
}

/** A value that an association has of its own, in Slurm's terms: `GrpTRES`, `gres/gpu=16`. */
export interface SlurmLimit {
  /** Left out: the account. */
  user?: string;
  name: string;
  value: string;
  /** What the lab file has, where another was set by hand, which stays. */
  wanted?: string;
}

export interface GpuDay {
  /** Such as `2026-11-26`. */
  day: string;
  /** Seconds, times GPUs, by login name. */
  seconds: Record<string, number>;
}

export interface ConditionReport {
  status: 'True' | 'False' | 'Unknown';
  /** The configuration it is about; left out: the one that is in force there. */
  observedGeneration?: number;
  /** One word, such as `ControllerDown`. */
  reason?: string;
  /** In words, what must be mended. */
  message?: string;
  /** RFC 3339. Left out by a driver that does not know: then it is the report that first had this status. */
  lastTransitionTime?: string;
}

export interface SchedulerReport {
  /** What is set up there; null: nothing. */
  configured: 'sunk' | 'kubernetes' | null;
  ready?: ConditionReport;
}

/** Left out of what is there: what could not be asked for. */
export interface StorageReport {
  ceph?: boolean;
  weka?: boolean;
  nfs?: boolean;
  quotaBytes?: number;
  /** What the cluster's shared volume asked for: neither the quota nor what was bought. */
  sharedVolumeBytes?: number;
  /** Of Ceph or NFS. */
  ready?: ConditionReport;
}

/** The Kubernetes API of a cluster, and the versions there. */
export interface KubernetesReport {
  /** `https://…`, as kubectl reaches it. */
  server: string;
  /** PEM; left out when the server's certificate is one that everyone trusts. */
  certificateAuthority?: string;
  /** What its certificate names, where that is not in `server`. */
  tlsServerName?: string;
  ready: boolean;
  /** The version that the control plane runs, and so the one that its nodes are to run. */
  version?: string;
  /** The oldest version that a node runs. */
  kubeletVersion?: string;
}

export interface GpuPod {
  namespace: string;
  name: string;
  machine: string;
  gpus: number;
}

/** What either side of a cluster says of itself, all of it, each time it is asked. What it cannot tell is left out. */
export interface SideReport {
  /** The configuration that is in force there, 0 before the first. */
  desiredGeneration: number;
  controlPlaneReady: boolean;
  scheduler?: SchedulerReport;
  storage?: StorageReport;
  /** Slurm's side has one where Slurm runs on Kubernetes and that is not a side of its own. */
  kubernetes?: KubernetesReport;
  /** Left out: which there are could not be asked for. */
  machines?: readonly MachineReport[] | undefined;
  /** Kubernetes: who holds GPUs, those that hold the most first; left out where that is not known. */
  pods?: readonly GpuPod[];
  /** In words, what must be mended there by a person; null when nothing must. */
  failure: string | null;
}

/** What the Kubernetes side says. Its configuration is the one with which it was asked: there is nothing to be taken over. */
export type KubernetesSideReport = Omit<SideReport, 'desiredGeneration'>;

/** A host that has not confirmed the newest list: of people who were on it before, processes may go on there. */
export interface WaitingHost {
  /** The Slurm node, or the address that it is managed by. */
  host: string;
  /** What it has; left out where that is none, or not known. */
  generation?: number;
  listVersion?: number;
  message: string;
  /** RFC 3339. Left out by a driver: then it is the report that first named it. */
  since?: string;
}

/** What the Slurm side says. Its `failure` is what stands in the way of the manifest. */
export interface SlurmReport extends SideReport {
  /** The manifest that is in force there, 0 before the first. */
  manifestGeneration: number;
  /** Left out: Slurm did not say which jobs run. */
  runningJobs?: readonly RunningJob[];
  /** Those that wait, the first to start first. */
  pendingJobs?: readonly PendingJob[];
  /** How many more run and wait than are named. */
  moreJobs?: { running: number; pending: number };
  /** Whether Slurm shows people only their own (`PrivateData`); left out where it is not known. */
  jobsArePrivate?: boolean;
  /** Whether it shows people only their own GPU time (`PrivateData`); left out where it is not known. */
  usageIsPrivate?: boolean;
  /** Days of GPU time as Slurm's accounting has them, where some were read; left out where it has no accounting. */
  gpuDays?: readonly GpuDay[];
  /** Left out: as the login nodes show. */
  loginMode?: LoginMode;
  loginNodes: readonly LoginNodeReport[];
  /**
   * The version of the organization's list that its accounts are of, from the manifest in force. 0, or left out: of
   * none, so that only those named in `accounts` are there.
   */
  listVersion?: number;
  /**
   * The accounts of which the cluster says something of its own, in place of what that version says of them; one that
   * should be there and is not has no keys and waits for one.
   */
  accounts: readonly AccountReport[];
  /** Who did not answer: the controller, so that this is no observation of the cluster, or no host, so that it is none at all. */
  silent?: 'controller' | 'all';
  /** Values of the Slurm account and of its people that are set there; left out where they are not known. */
  limits?: readonly SlurmLimit[];
  /** What is missing for logins into jobs, and on which hosts. */
  jobLogins?: readonly string[];
  /** Those that are furthest behind; 50 at most. */
  waiting?: readonly WaitingHost[];
  /** Something there is not as the manifest in force says, and applying that again mends it. */
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

/** The list of one cluster, and how far its delivery has come. A withdrawn one is empty. */
export interface AccessList {
  clusterId: string;
  generation: number;
  desiredGeneration: number;
  isWithdrawn: boolean;
  /** RFC 3339. */
  updatedAt: string;
}

/**
 * A member's entry: everyone who holds `clusters.ssh` by any path has one, with or without a key. Keys that lapsed are left
 * out, and the account stays for as long as there are any: that it goes ends jobs, which the passing of time must not.
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

/** Whether a person's entry stands as it should; undefined: they have, or should have, none. */
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

/** A digest of a list, its users by ID; two lists are the same list exactly when their digests are equal. */
export function accessListHash(users: readonly Omit<AccessListUser, 'keyFingerprints'>[]): string {
  const hash = createHash('sha256');
  for (const user of users) {
    hash.update(
      `${user.userId}\0${user.username}\0${user.accessMode}\0${user.desiredLoginState}\0${user.keySetGeneration}\0${user.shell}\n`,
    );
  }
  return `sha256:${hash.digest('hex')}`;
}

/** The contract has `rejected` as well: Platform takes every list. */
export type AccessListState = 'pending' | 'accepted' | 'converged' | 'stale' | 'failed';

/** How far the delivery of a list has come. Times in milliseconds since 1970. */
export interface Delivery {
  generation: number;
  observation:
    | { observedAt: number; manifestGeneration: number; failure: string | null; waiting: readonly unknown[] }
    | undefined;
  now: number;
}

export function accessListState(delivery: Delivery): AccessListState {
  const { generation, observation } = delivery;
  if (!observation) return 'accepted';
  if (!isRecent(observation.observedAt, delivery.now)) return 'stale';
  if (observation.failure !== null) return 'failed';
  return isEverywhere(observation, generation) ? 'converged' : 'accepted';
}

/** Whether people can rely on the list, and no host has an older one: who is not on it any more may have processes there. */
function isEverywhere(
  { manifestGeneration, waiting }: NonNullable<Delivery['observation']>,
  generation: number,
): boolean {
  return manifestGeneration >= generation && waiting.length === 0;
}

/** What the cluster itself last reported of the list; null when it never reported. */
export function observationState(delivery: Delivery): 'pending' | 'converged' | 'failed' | null {
  const { observation } = delivery;
  if (!observation) return null;
  if (observation.failure !== null) return 'failed';
  return isEverywhere(observation, delivery.generation) ? 'converged' : 'pending';
}

/** Whether a report made at `observedAt` still counts. */
export function isRecent(observedAt: number, now: number): boolean {
  return now - observedAt <= observationFreshnessMs;
}
