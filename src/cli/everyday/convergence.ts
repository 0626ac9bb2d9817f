/** What "in place" means for a key, a permission and a cluster: pure functions of what the APIs return. */

import { effectivePermissions } from '../../domain/permission.ts';
import type { Business, Platform } from '../net/operations.ts';
import { describeCondition } from './describe.ts';

/** The caller's keys and shell as they should be. */
export interface Wanted {
  generation: number;
  shell: string;
}

/**
 * What a cluster still lacks of the caller's keys and shell; undefined when it has them (contract, "Confirming a key
 * or shell change reached a cluster").
 */
export function lackOfKeys(access: Platform['SshAccess'], { generation, shell }: Wanted): string | undefined {
  if (!access.observation_current) return 'it has not reported the newest list';
  if (access.ssh_key_set_generation !== generation)
    return `it has version ${access.ssh_key_set_generation} of your keys, not ${generation}`;
  return access.shell === shell ? undefined : 'it has not set your login shell';
}

/** The part of an access list that shows whether it was applied. */
export interface Applied extends Pick<Business['AccessList'], 'state'> {
  users: readonly Pick<Business['AccessListUser'], 'user_id' | 'access_mode'>[];
}

/** What a Slurm cluster still lacks of a member's permissions; undefined when it has them. No list: none was made. */
export function lackOfPermission(
  list: Applied | undefined,
  held: Pick<Business['MemberPermissions'], 'user_id' | 'role' | 'permissions'>,
): string | undefined {
  const keys = effectivePermissions(held.role, held.permissions);
  const wanted = keys.has('clusters.ssh.admin') ? 'admin' : keys.has('clusters.ssh') ? 'use' : undefined;
  const listed = list?.users.find(({ user_id: id }) => id === held.user_id)?.access_mode;
  if (listed !== wanted) return 'its access list is being made anew';
  if (!list) return undefined;
  return list.state === 'converged' ? undefined : `its access list is ${list.state}`;
}

/** What a cluster still lacks to be of use; undefined when it lacks nothing. */
export function lackOfCluster(
  lifecycleState: string,
  options: Platform['ClusterOptions'],
): string | undefined {
  if (lifecycleState !== 'active') return `it is ${lifecycleState}`;
  if (options.state !== 'available') return 'it has not reported';
  const { ready } = options.scheduler;
  if (ready?.status === 'True') return undefined;
  const why = describeCondition(ready);
  return why === undefined ? 'it has not said whether its scheduler is ready' : `scheduler ready: ${why}`;
}
