/** Whether the caller can log in to a cluster now, and in words what is missing (contract, "SSH access object"). */
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
  const sentences: Record<string, string> = {
    no_keys: 'You have no SSH key registered; `andromeda keys add` registers one.',
    access_not_projected: `${name} has not been told of you yet; \`andromeda wait key --cluster ${name}\` ends when it has your key.`,
    projection_pending: `${name} has not applied the latest changes yet; \`andromeda wait key --cluster ${name}\` ends when it has.`,
    gateway_unavailable: `${name} has no login node that answers: it may be restarting, or have no Slurm; try again, or ask its operator.`,
    observation_stale: `${name} has not reported for minutes, and nobody is let in until it does; its operator has to look.`,
    cluster_inactive: `${name} is not in service; \`andromeda clusters show ${name}\` says more.`,
    named_user_required: `You have no username in the organization of ${name}; an owner or admin of it has to give you one.`,
  };
  return sentences[reason] ?? `${name} does not let you in yet: ${reason}.`;
}

/** Whether it comes by itself, soon. */
export function isOnItsWay({ reason }: SshAccess): boolean {
  return reason === 'access_not_projected' || reason === 'projection_pending';
}
