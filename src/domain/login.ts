/** The decision whether a key opens a session on a cluster (contract, "SSH gateway behaviour"). */
import { observationFreshnessMs } from './access-list.ts';
import { isUuid } from './id.ts';
import { effectivePermissions, type Role } from './permission.ts';

/** `<cluster-id>.<username>` taken apart; undefined when it is not of that form. */
export function parseLoginName(loginName: string): { clusterId: string; username: string } | undefined {
  const clusterId = loginName.slice(0, 36);
  const username = loginName.slice(37);
  if (!isUuid(clusterId) || loginName.charAt(36) !== '.' || !/^[a-z][a-z0-9_-]{0,31}$/.test(username)) {
    return undefined;
  }
  return { clusterId: clusterId.toLowerCase(), username };
}

/** A login node that answers. */
export interface LoginNode {
  host: string;
  port: number;
  hostKey: string;
}

/** What the store knows of a login name and a key, read in one go. Times in ms since 1970. */
export interface LoginFacts {
  clusterId: string;
  clusterState: string;
  /** Whether people have accounts there at all: on a Kubernetes-only cluster they do not. */
  takesAccessList: boolean;
  userId: string;
  username: string;
  /** Whether they belong to the cluster's organization now, and neither is out of service. */
  member: boolean;
  role: Role;
  permissions: readonly string[];
  shell: string;
  key: { id: string; fingerprint: string; active: boolean };
  /** Whether the list that Platform accepted last has them in it. */
  inManifest: boolean;
  /** What the cluster confirmed of this person; undefined when it does not know them. */
  confirmed: { loginState: 'ready' | 'waiting_for_key'; keyFingerprints: readonly string[] } | undefined;
  /** Those that this person may use, the best first. */
  loginNodes: readonly LoginNode[];
  observedAt: number | undefined;
  failure: string | null;
}

export interface Route {
  clusterId: string;
  userId: string;
  username: string;
  keyId: string;
  shell: string;
  loginNode: LoginNode;
}

/** Whose key was refused, and where: for the records. */
export type Subject = Pick<Route, 'clusterId' | 'userId' | 'keyId'>;

export type LoginDecision =
  | { allowed: true; route: Route }
  /** `disclose`: the key is this person's own, so the message may be told to whoever proved to hold it. */
  | { allowed: false; reason: string; message: string; disclose: boolean; subject?: Subject };

/** A session that is open: it stays on its login node, and outlives a gap in the cluster's reports. */
export interface OpenSession {
  loginNode: Pick<LoginNode, 'host' | 'port'>;
  /** How long after the last report access still counts as confirmed. */
  graceMs: number;
}

/**
 * Lets in only what is confirmed on every count, and with `open` keeps in what still is. `facts` is undefined when the
 * key is not that person's.
 */
export function decideLogin(facts: LoginFacts | undefined, now: number, open?: OpenSession): LoginDecision {
  if (!facts) return { allowed: false, reason: 'unknown', message: 'Permission denied.', disclose: false };
  const { clusterId, userId, username, shell } = facts;
  const subject: Subject = { clusterId, userId, keyId: facts.key.id };
  const obstacle = findObstacle(facts, now, open);
  if (obstacle) {
    const [reason, message] = obstacle;
    return { allowed: false, reason, message, disclose: true, subject };
  }
  const loginNode =
    facts.loginNodes.find(
      ({ host, port }) => host === open?.loginNode.host && port === open.loginNode.port,
    ) ?? facts.loginNodes[0];
  if (!loginNode) {
    const message =
      'No login node of this cluster answers at the moment (gateway_unavailable). Try again in a minute.';
    return { allowed: false, reason: 'gateway_unavailable', message, disclose: true, subject };
  }
  return { allowed: true, route: { ...subject, username, shell, loginNode } };
}

/** The first thing that stands in the way, and what to do about it or wait for. The names are those of `ssh-access`. */
function findObstacle(
  facts: LoginFacts,
  now: number,
  open: OpenSession | undefined,
): readonly [reason: string, message: string] | undefined {
  const { key, confirmed, observedAt, clusterState } = facts;
  if (!key.active) return ['key_revoked', 'This key was revoked. Register another one and use that.'];
  if (!facts.member || !effectivePermissions(facts.role, facts.permissions).has('clusters.ssh')) {
    const what = open
      ? 'Your SSH access to this cluster was removed.'
      : 'You have no SSH access to this cluster.';
    return ['access_removed', `${what} Ask an owner of your organization.`];
  }
  if (clusterState !== 'active') {
    return [
      'cluster_inactive',
      `This cluster is ${clusterState} (cluster_inactive); logins open when it is active.`,
    ];
  }
  if (!facts.takesAccessList) {
    return [
      'gateway_unavailable',
      'This cluster runs Kubernetes only and has no SSH logins (gateway_unavailable). Use kubectl with its kubeconfig.',
    ];
  }
  const freshMs = Math.max(observationFreshnessMs, open?.graceMs ?? 0);
  if (observedAt === undefined || now - observedAt > freshMs) {
    return [
      'observation_stale',
      'Your access cannot be confirmed: the cluster has not reported lately (observation_stale). Wait for its next report.',
    ];
  }
  if (confirmed?.loginState === 'ready' && confirmed.keyFingerprints.includes(key.fingerprint))
    return undefined;
  if (facts.failure !== null) {
    return [
      'projection_pending',
      'A fault keeps the cluster from applying your access (projection_pending). Please tell your administrator.',
    ];
  }
  return facts.inManifest
    ? [
        'projection_pending',
        'The cluster has not applied your access yet (projection_pending). Try again in a few seconds.',
      ]
    : [
        'access_not_projected',
        "Your access is not on the cluster's list yet (access_not_projected). Try again in a few seconds.",
      ];
}
