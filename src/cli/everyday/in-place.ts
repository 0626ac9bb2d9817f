/** What "in place" means for a key, a permission and a cluster: each look is a function of what the APIs say now. */
import { effectivePermissions, type Role } from '../../domain/permission.ts';
import type { ClusterOptions } from './clusters.ts';
import type { SshAccess } from './ssh-access.ts';
import { describeCondition } from './words.ts';

/** The caller's keys and shell as they should be. */
export interface Wanted {
  generation: number;
  shell: string;
}

/**
 * What a cluster still lacks of the caller's keys and shell; undefined when it has them (contract, "Confirming a key
 * or shell change reached a cluster").
 */
export function lackOfKeys(access: SshAccess, { generation, shell }: Wanted): string | undefined {
  if (!access.observation_current) return 'it has not reported the newest list';
  if (access.ssh_key_set_generation !== generation)
    return `it has version ${access.ssh_key_set_generation} of your keys, not ${generation}`;
  return access.shell === shell ? undefined : 'it has not set your login shell';
}

export interface AccessList {
  state: string;
  users: { user_id: string; access_mode: string }[];
}

/** What a member may do, as the API says it. */
export interface Held {
  user_id: string;
  role: string;
  permissions: readonly string[];
}

/** What a Slurm cluster still lacks of a member's permissions; undefined when it has them. No list: none was made. */
export function lackOfPermission(list: AccessList | undefined, held: Held): string | undefined {
  const keys = effectivePermissions(held.role as Role, held.permissions);
  const wanted = keys.has('clusters.ssh.admin') ? 'admin' : keys.has('clusters.ssh') ? 'use' : undefined;
  const listed = list?.users.find(({ user_id: id }) => id === held.user_id)?.access_mode;
  if (listed !== wanted) return 'its access list is being made anew';
  if (!list) return undefined;
  return list.state === 'converged' ? undefined : `its access list is ${list.state}`;
}

/** What a cluster still lacks to be of use; undefined when it lacks nothing. */
export function lackOfCluster(lifecycleState: string, options: ClusterOptions): string | undefined {
  if (lifecycleState !== 'active') return `it is ${lifecycleState}`;
  if (options.state !== 'available') return 'it has not reported';
  const { ready } = options.scheduler;
  if (ready?.status === 'True') return undefined;
  const why = describeCondition(ready);
  return why === undefined ? 'it has not said whether its scheduler is ready' : `scheduler ready: ${why}`;
}
