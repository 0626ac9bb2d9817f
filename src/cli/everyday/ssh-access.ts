/** Whether the caller can log in to a cluster now, and a sentence on what is missing (contract, "SSH access object"). */

import { isReadinessObstacle, readinessAdvice } from '../../domain/access-decision.ts';
import type { PlatformReader } from '../net/api.ts';
import type { Platform } from '../net/operations.ts';
import type { Cluster } from './cluster.ts';

export type SshAccess = Platform['SshAccess'];

export function readSshAccess(
  platform: PlatformReader,
  { id, organization }: Pick<Cluster, 'id' | 'organization'>,
): Promise<SshAccess> {
  const query = { organizationId: organization.id };
  return platform.get('/clusters/{clusterId}/ssh-access', { path: { clusterId: id }, query });
}

/** What is missing, and what to do about it; the cluster is called `name`. */
export function describeMissing({ reason, lapsed }: SshAccess, name: string): string {
  if (lapsed !== undefined) return `${name}: ${lapsed}`;
  return isReadinessObstacle(reason)
    ? readinessAdvice[reason](name)
    : `${name} does not let you in yet: ${reason}.`;
}

/** Whether it comes by itself, soon. */
export function isOnItsWay({ reason, lapsed }: SshAccess): boolean {
  if (lapsed !== undefined) return false;
  return reason === 'access_not_projected' || reason === 'projection_pending';
}
