/** What to type, and what stands in the way, in words. */
import type { ClusterItem, SshAccess } from './reads.ts';

/** A name that ssh takes as an alias; of any other the ID. */
export function aliasOf({ id, spec }: ClusterItem): string {
  return `andromeda-${/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/.test(spec.name) ? spec.name : id}`;
}

/** A line for a terminal. */
export function sshLine({ id }: ClusterItem, { hostname, port, username }: SshAccess): string {
  return `ssh ${port === 22 ? '' : `-p ${port} `}${id}.${username}@${hostname}`;
}

/** A block for ~/.ssh/config. */
export function sshBlock(cluster: ClusterItem, { hostname, port, username }: SshAccess): string {
  const lines = [`HostName ${hostname}`, `Port ${port}`, `User ${cluster.id}.${username}`];
  return [`Host ${aliasOf(cluster)}`, ...lines.map((line) => `    ${line}`)].join('\n');
}

/** A line for ~/.ssh/known_hosts. */
export function knownHost({ hostname, port, host_key: key }: SshAccess): string {
  return `${port === 22 ? hostname : `[${hostname}]:${port}`} ${key}`;
}

interface Obstacle {
  sentence: string;
  /** The one thing to do. */
  advice: string;
  kind: 'busy' | 'warn' | 'bad';
}

type Reason = Exclude<SshAccess['reason'], 'ready'>;

/** `NAME` stands for the cluster's. */
const obstacles: Record<Reason, [Obstacle['kind'], sentence: string, advice: string]> = {
  no_keys: ['warn', 'You have no SSH key registered.', 'Register a key.'],
  access_not_projected: ['busy', 'NAME does not have your account yet.', 'This usually takes a few seconds.'],
  projection_pending: [
    'busy',
    'NAME has not applied the latest change yet.',
    'If it takes more than a few minutes, ask your operator.',
  ],
  gateway_unavailable: [
    'bad',
    'NAME does not answer over SSH.',
    'It may be restarting. If this continues, ask your operator. On a cluster with Kubernetes only, use kubectl.',
  ],
  observation_stale: [
    'bad',
    'NAME has not reported for several minutes. Logins are closed until it does.',
    'Ask your operator.',
  ],
  cluster_inactive: ['warn', 'NAME is not in service.', 'Logins start when it is.'],
  named_user_required: [
    'warn',
    'You have no user name in this organization.',
    'Ask an owner or admin of it for one.',
  ],
};

/** Undefined where nothing stands in the way. */
export function obstacleOf(access: SshAccess, name: string): Obstacle | undefined {
  if (access.reason === 'ready') return undefined;
  const [kind, sentence, advice] = obstacles[access.reason];
  return { kind, sentence: sentence.replace('NAME', () => name), advice };
}
