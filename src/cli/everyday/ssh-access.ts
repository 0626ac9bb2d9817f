/** Whether the caller can log in to a cluster now, and in words what is missing (contract, "SSH access object"). */
import { isReadinessObstacle, readinessAdvice } from '../../domain/access-decision.ts';
import { at, type PlatformReader, query } from '../net/api.ts';
import type { Cluster } from './cluster.ts';

export interface SshAccess {
  hostname: string;
  port: number;
  username: string;
  host_key: string;
  ready: boolean;
  reason: string;
  ssh_key_set_generation: number;
  key_fingerprints: string[];
  shell: string;
  observation_current: boolean;
}

export function readSshAccess(
  platform: PlatformReader,
  { id, organization }: Pick<Cluster, 'id' | 'organization'>,
): Promise<SshAccess> {
  return platform.get<SshAccess>(at`/clusters/${id}/ssh-access` + query({ organizationId: organization.id }));
}

/** What is missing, and what to do about it; the cluster is called `name`. */
export function describeMissing({ reason }: SshAccess, name: string): string {
  return isReadinessObstacle(reason)
    ? readinessAdvice[reason](name)
    : `${name} does not let you in yet: ${reason}.`;
}

/** Whether it comes by itself, soon. */
export function isOnItsWay({ reason }: SshAccess): boolean {
  return reason === 'access_not_projected' || reason === 'projection_pending';
}
