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

const obstacles: Record<Reason, (name: string) => Obstacle> = {
  no_keys: () => ({
    sentence: 'You have no SSH key registered.',
    advice: 'Register a key.',
    kind: 'warn',
  }),
  access_not_projected: (name) => ({
    sentence: `${name} does not have your account yet.`,
    advice: 'This usually takes a few seconds.',
    kind: 'busy',
  }),
  projection_pending: (name) => ({
    sentence: `${name} has not applied the latest change yet.`,
    advice: 'If it takes more than a few minutes, ask your operator.',
    kind: 'busy',
  }),
  gateway_unavailable: (name) => ({
    sentence: `${name} does not answer over SSH.`,
    advice:
      'It may be restarting. If this continues, ask your operator. On a cluster with Kubernetes only, use kubectl.',
    kind: 'bad',
  }),
  observation_stale: (name) => ({
    sentence: `${name} has not reported for several minutes. Logins are closed until it does.`,
    advice: 'Ask your operator.',
    kind: 'bad',
  }),
  cluster_inactive: (name) => ({
    sentence: `${name} is not in service.`,
    advice: 'Logins start when it is.',
    kind: 'warn',
  }),
  named_user_required: () => ({
    sentence: 'You have no user name in this organization.',
    advice: 'Ask an owner or admin of it for one.',
    kind: 'warn',
  }),
};

/** Undefined where nothing stands in the way. */
export function obstacleOf(access: SshAccess, name: string): Obstacle | undefined {
  return access.reason === 'ready' ? undefined : obstacles[access.reason](name);
}
