/** The lab file: an installation described as data. */

import { foldEmail } from './email.ts';
import { DomainError } from './error.ts';
import { isWiderRole } from './grant.ts';
import { isUuid } from './id.ts';
import { checkKubernetesSettings, type KubernetesSettings } from './kubernetes-settings.ts';
import { isPermissionKey, type PermissionKey, type Role } from './permission.ts';
import type { SimulatedSettings } from './simulated.ts';
import { checkSlurmSettings, type SlurmSettings } from './slurm-settings.ts';
import type { StaffKey } from './staff.ts';
import { isTime } from './time.ts';
import { isUsername } from './username.ts';

export interface LabUser {
  email: string;
  name?: string;
  staff?: StaffKey[];
}

export interface LabMember {
  email: string;
  role: Role;
  username?: string;
  permissions?: PermissionKey[];
}

export interface LabOrganization {
  slug: string;
  name: string;
  autoJoinDomains?: string[];
  members?: LabMember[];
}

export interface LabCluster {
  name: string;
  id?: string;
  organization: string;
  site?: { id: string; name: string };
  scheduler?: 'sunk' | 'kubernetes';
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
  /** The role may give more than the relation. */
  allowWiderRole?: boolean;
  expiresAt?: string;
}

export interface Lab {
  users?: LabUser[];
  organizations?: LabOrganization[];
  clusters?: LabCluster[];
  grants?: LabGrant[];
}

/**
 * Throws `invalid_request` with the first thing in a lab that cannot be, beyond the shape of the file. What it means
 * for an installation is for `planLab` to say.
 */
export function checkLab(lab: Lab): void {
  const users = new Set<string>();
  for (const user of lab.users ?? []) once(users, foldEmail(user.email), 'user');
  const slugs = new Set<string>();
  const domains = new Set<string>();
  for (const organization of lab.organizations ?? []) {
    once(slugs, organization.slug, 'organization');
    for (const domain of organization.autoJoinDomains ?? []) {
      once(domains, foldEmail(domain), 'autoJoinDomains entry');
    }
    const emails = new Set<string>();
    const usernames = new Set<string>();
    for (const member of organization.members ?? []) {
      once(emails, foldEmail(member.email), `member of ${organization.slug}`);
      if (member.username !== undefined) {
        if (!isUsername(member.username)) {
          throw invalid(
            `"${member.username}" cannot be a username: 1 to 32 characters, a lowercase letter first, then lowercase letters, digits, _ or -, and not an account that systems have for themselves.`,
          );
        }
        once(usernames, member.username, `username in ${organization.slug}`);
      }
      const unknown = member.permissions?.find((permission) => !isPermissionKey(permission));
      if (unknown) throw invalid(`${unknown} is not a permission.`);
    }
  }
  const names = new Set<string>();
  const ids = new Set<string>();
  for (const cluster of lab.clusters ?? []) {
    once(names, cluster.name, 'cluster');
    if (cluster.id !== undefined) {
      if (!isUuid(cluster.id)) throw invalid(`Cluster ${cluster.name}: the id ${cluster.id} is not a UUID.`);
      once(ids, cluster.id.toLowerCase(), 'cluster id');
    }
    checkDriver(cluster);
    const types = cluster.simulated?.storage?.types ?? [];
    if (types.includes('nfs') && types.length > 1) {
      throw invalid(`Cluster ${cluster.name}: NFS storage excludes Ceph and WEKA.`);
    }
  }
  const grants = new Set<string>();
  for (const grant of lab.grants ?? []) {
    const { user, cluster, relation, namespace, roleId } = grant;
    const where = namespace === undefined ? cluster : `${cluster}/${namespace}`;
    once(grants, `${foldEmail(user)} ${relation} on ${where}${roleId ? ` as ${roleId}` : ''}`, 'grant');
    if (!grant.allowWiderRole && isWiderRole(grant)) {
      throw invalid(
        `The grant to ${user} is ${relation}, and its roleId ${roleId} gives more than that. Give the relation that is meant, or set allowWiderRole: true.`,
      );
    }
    if (grant.expiresAt !== undefined && !isTime(grant.expiresAt)) {
      throw invalid(
        `A grant's expiresAt is "${grant.expiresAt}", which is not a time such as 2030-01-01T00:00:00Z.`,
      );
    }
  }
}

/** A cluster is simulated, or real. Throws `invalid_request`. */
export function checkDriver({ name, scheduler, simulated, slurm, kubernetes }: LabCluster): void {
  if (!simulated && !slurm && !kubernetes) {
    throw invalid(`Cluster ${name} needs a section that says what it is: simulated, slurm, kubernetes.`);
  }
  if (simulated && (slurm || kubernetes)) {
    throw invalid(`Cluster ${name} is simulated, or has slurm and kubernetes sections, not both.`);
  }
  if (slurm) {
    if (scheduler === 'kubernetes') {
      throw invalid(`Cluster ${name} has a slurm section, so that its scheduler is sunk.`);
    }
    checkSlurmSettings(name, slurm);
  }
  if (kubernetes) {
    if (scheduler === 'sunk' && !slurm) {
      throw invalid(`Cluster ${name} has the scheduler sunk, which needs a slurm section.`);
    }
    checkKubernetesSettings(name, kubernetes);
  }
}

function once(seen: Set<string>, value: string, what: string): void {
  if (seen.has(value)) throw invalid(`The ${what} ${value} is there twice.`);
  seen.add(value);
}

function invalid(message: string): DomainError {
  return new DomainError('invalid_request', message);
}
