/** The lab file: an installation described as data. */
import { isWiderRole } from '../access/grant.ts';
import type { LoginMode, MachineReport, PendingJob, RunningJob } from '../access/manifest.ts';
import { parseSshPublicKey } from '../access/ssh-key.ts';
import { DomainError, invalidRequest } from '../error.ts';
import { isUuid } from '../id.ts';
import { checkKubernetesSettings, type KubernetesSettings } from '../kubernetes/settings.ts';
import { foldEmail, type StaffKey } from '../people/person.ts';
import { checkDirect } from '../slurm/direct.ts';
import { checkSlurmSettings, type SlurmSettings } from '../slurm/settings.ts';
import { isTime } from '../units.ts';
import { LabError, type LabMember, type LabPath, memberCheck, once } from './lab-member.ts';

export interface LabUser {
  email: string;
  name?: string;
  staff?: StaffKey[];
}

/** A team. Without members, everyone in the organization is in it. */
export interface LabGroup {
  name: string;
  /** Absent: allocated. */
  gid?: number;
  members?: string[];
}

export interface LabOrganization {
  slug: string;
  name: string;
  autoJoinDomains?: string[];
  /** A shorter limit than the installation's. */
  maxHoursWithoutSignIn?: number;
  members?: LabMember[];
  groups?: LabGroup[];
}

export interface ClusterLink {
  name: string;
  url: string;
}

export interface LabCluster {
  name: string;
  id?: string;
  organization: string;
  site?: { id: string; name: string };
  scheduler?: 'sunk' | 'kubernetes';
  /** The number of nodes reserved for the organization; 0 ends the reservation. */
  reservedNodes?: number;
  /** Links to web pages about the cluster, such as utilisation dashboards. */
  links?: ClusterLink[];
  simulated?: SimulatedSettings;
  slurm?: SlurmSettings;
  kubernetes?: KubernetesSettings;
}

export interface LabGrant {
  user: string;
  cluster: string;
  relation: 'kubernetes.viewer' | 'kubernetes.developer' | 'kubernetes.admin';
  namespace?: string;
  roleId?: string;
  /** Permits a role that gives more than the relation. */
  allowWiderRole?: boolean;
  expiresAt?: string;
}

export interface Lab {
  users?: LabUser[];
  organizations?: LabOrganization[];
  clusters?: LabCluster[];
  grants?: LabGrant[];
}

/** As people write it: `slurm` is the usual name of the scheduler `sunk`. */
export type WrittenCluster = Omit<LabCluster, 'scheduler'> & {
  scheduler?: LabCluster['scheduler'] | 'slurm';
};
export type WrittenLab = Omit<Lab, 'clusters'> & { clusters?: WrittenCluster[] };

export function clusterOf({ scheduler, ...cluster }: WrittenCluster): LabCluster {
  return { ...cluster, ...(scheduler && { scheduler: scheduler === 'slurm' ? 'sunk' : scheduler }) };
}

/**
 * Throws a `LabError` for the first invalid setting of a lab whose shape is valid already. `planLab` checks it
 * against the installation.
 */
export function checkLab({ clusters, ...others }: WrittenLab): Lab {
  const lab: Lab = { ...others, ...(clusters && { clusters: clusters.map(clusterOf) }) };
  const [users, slugs, domains] = [new Set<string>(), new Set<string>(), new Set<string>()];
  for (const [index, user] of (lab.users ?? []).entries())
    once(users, foldEmail(user.email), 'user', ['users', index]);
  for (const [index, organization] of (lab.organizations ?? []).entries()) {
    const at = ['organizations', index];
    once(slugs, organization.slug, 'organization', at);
    for (const domain of organization.autoJoinDomains ?? [])
      once(domains, foldEmail(domain), 'autoJoinDomains entry', [...at, 'autoJoinDomains']);
    checkMembers(organization, at);
    checkGroups(organization, at);
  }
  const [names, ids] = [new Set<string>(), new Set<string>()];
  for (const [index, cluster] of (lab.clusters ?? []).entries()) {
    const at = ['clusters', index];
    const { name, id } = cluster;
    once(names, name, 'cluster', at);
    if (id !== undefined) {
      if (!isUuid(id)) throw new LabError(`Cluster ${name}: the id ${id} is not a UUID.`, [...at, 'id']);
      once(ids, id.toLowerCase(), 'cluster id', [...at, 'id']);
    }
    checkClusterAt(cluster, at);
  }
  const grants = new Set<string>();
  for (const [index, grant] of (lab.grants ?? []).entries()) checkGrant(grant, grants, ['grants', index]);
  return lab;
}

function checkMembers({ slug, members = [] }: LabOrganization, at: LabPath): void {
  const check = memberCheck(slug);
  for (const [index, member] of members.entries()) {
    const here = [...at, 'members', index];
    const keys = (member.keys ?? []).map((line) => keyOf(line, member.email, [...here, 'keys']).fingerprint);
    check(member, keys, here);
  }
}

function keyOf(line: string, email: string, at: LabPath) {
  try {
    return parseSshPublicKey(line);
  } catch (error) {
    throw new LabError(`A key of ${email}: ${(error as Error).message}`, at);
  }
}

function checkGroups({ slug, groups = [] }: LabOrganization, at: LabPath): void {
  const [names, gids] = [new Set<string>(), new Set<string>()];
  for (const [index, { name, gid }] of groups.entries()) {
    const here = [...at, 'groups', index];
    once(names, name, `group of ${slug}`, here);
    if (gid !== undefined) once(gids, `${gid}`, `gid in ${slug}`, here);
  }
}

function checkClusterAt(cluster: LabCluster, at: LabPath): void {
  try {
    checkDriver(cluster);
    const types = cluster.simulated?.storage?.types ?? [];
    if (types.includes('nfs') && types.length > 1)
      throw invalidRequest(`Cluster ${cluster.name}: NFS storage excludes Ceph and WEKA.`);
  } catch (error) {
    throw error instanceof DomainError ? new LabError(error.message, at) : error;
  }
}

function checkGrant(grant: LabGrant, seen: Set<string>, at: LabPath): void {
  const { user, relation, roleId, expiresAt } = grant;
  once(seen, grantName(grant), 'grant', at);
  if (!grant.allowWiderRole && isWiderRole(grant))
    throw new LabError(
      `The grant to ${user} is ${relation}, and its roleId ${roleId} gives more than that. Give the relation that is meant, or set allowWiderRole: true.`,
      at,
    );
  if (expiresAt !== undefined && !isTime(expiresAt))
    throw new LabError(
      `A grant's expiresAt is "${expiresAt}", which is not a time such as 2030-01-01T00:00:00Z.`,
      [...at, 'expiresAt'],
    );
}

/** The identity of a grant: everything but its end, which alone can differ. */
export function grantName({ user, relation, cluster, namespace, roleId }: LabGrant): string {
  const where = namespace === undefined ? cluster : `${cluster}/${namespace}`;
  return `${foldEmail(user)} ${relation} on ${where}${roleId === undefined ? '' : ` as ${roleId}`}`;
}

/** Checks that a cluster is either simulated or real. Throws `invalid_request`. */
export function checkDriver({ name, scheduler, simulated, slurm, kubernetes }: LabCluster): void {
  if (!simulated && !slurm && !kubernetes) {
    throw invalidRequest(
      `Cluster ${name} needs a section that says what it is: simulated, slurm, kubernetes.`,
    );
  }
  if (simulated && (slurm || kubernetes)) {
    throw invalidRequest(`Cluster ${name} is simulated, or has slurm and kubernetes sections, not both.`);
  }
  if (slurm) {
    if (scheduler === 'kubernetes') {
      throw invalidRequest(`Cluster ${name} has a slurm section, so that its scheduler is slurm.`);
    }
    checkSlurmSettings(name, slurm);
    if (slurm.direct) checkDirect(name, slurm.direct);
  }
  if (kubernetes) {
    if (scheduler === 'sunk' && !slurm) {
      throw invalidRequest(`Cluster ${name} has the scheduler slurm, which needs a slurm section.`);
    }
    checkKubernetesSettings(name, kubernetes);
  }
}

export interface Fault {
  reason: string;
  message: string;
}

/** The default request of the shared volume of a Slurm cluster's nodes: 100 GiB. */
export const defaultSharedVolumeBytes = 100 * 2 ** 30;

/** The lab file's `simulated` section: a cluster that this service only simulates, and its simulated faults. */
export interface SimulatedSettings {
  computeNodes: number;
  gpusPerNode: number;
  applyMs?: number;
  /** The delay between the first start and a working control plane. */
  provisionMs?: number;
  runningJobs?: RunningJob[];
  pendingJobs?: PendingJob[];
  /** Jobs that were running restart after a restart of the cluster. */
  requeue?: boolean;
  machine?: Pick<MachineReport, 'gpuModel' | 'cpuCores' | 'memoryGib' | 'ibSpeed'>;
  /** The number of compute nodes, the last ones, that take no work. */
  nodesDown?: number;
  /** The number of the remaining nodes, the last ones, that are drained, and the reason. */
  nodesDrained?: number;
  drainReason?: string;
  /** GPUs held by jobs other than `runningJobs`, on the first nodes that take work. */
  gpusInUse?: number;
  /** `PerUser`: the cluster reports a login node for each account, all of them the same machine. */
  loginMode?: LoginMode;
  /** The cluster does not answer: the driver applies nothing and gets no report. */
  silent?: boolean;
  /** The message of a simulated fault that keeps it from applying anything. */
  failure?: string;
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
    /** The request of the shared volume of a Slurm cluster's nodes. */
    sharedVolumeBytes?: number;
    fault?: Fault;
  };
}
