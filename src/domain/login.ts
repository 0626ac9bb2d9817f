/** The decision whether a key opens a session on a cluster (contract, "SSH gateway behaviour"). */
import { isRecent } from './access-list.ts';
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

/** What the store knows of a login name and a key, read in one go. Times in ms since 1970. */
export interface LoginFacts {
  clusterId: string;
  clusterState: string;
  userId: string;
  username: string;
  role: Role;
  permissions: readonly string[];
  shell: string;
  key: { id: string; fingerprint: string; active: boolean };
  /** What the cluster confirmed of this person; undefined when it does not know them. */
  confirmed: { loginState: 'ready' | 'waiting_for_key'; keyFingerprints: readonly string[] } | undefined;
  loginNode: { host: string; port: number; hostKey: string } | undefined;
  observedAt: number | undefined;
  failure: string | null;
}

export interface Route {
  clusterId: string;
  userId: string;
  username: string;
  keyId: string;
  shell: string;
  loginNode: { host: string; port: number; hostKey: string };
}

export type LoginDecision =
  | { allowed: true; route: Route }
  /** `disclose`: the key is this person's own, so the message may be told to whoever proved to hold it. */
  | { allowed: false; reason: string; message: string; disclose: boolean };

/** Lets in only what is confirmed on every count. `facts` is undefined when the key is not that person's. */
export function decideLogin(facts: LoginFacts | undefined, now: number): LoginDecision {
  if (!facts) return { allowed: false, reason: 'unknown', message: 'Permission denied.', disclose: false };
  const deny = (reason: string, message: string): LoginDecision => ({
    allowed: false,
    reason,
    message,
    disclose: true,
  });
  if (!facts.key.active)
    return deny('key_revoked', 'This key was revoked. Register another one and use that.');
  if (!effectivePermissions(facts.role, facts.permissions).has('clusters.ssh')) {
    return deny(
      'access_removed',
      'You have no SSH access to this cluster. Ask an owner of your organization.',
    );
  }
  if (facts.clusterState !== 'active') {
    return deny('cluster_inactive', `This cluster is ${facts.clusterState}; logins open when it is active.`);
  }
  if (facts.observedAt === undefined || !isRecent(facts.observedAt, now)) {
    return deny(
      'observation_stale',
      'The cluster has not reported lately, so your access cannot be confirmed. Try again shortly.',
    );
  }
  const { confirmed } = facts;
  if (
    !confirmed ||
    confirmed.loginState !== 'ready' ||
    !confirmed.keyFingerprints.includes(facts.key.fingerprint)
  ) {
    return deny(
      'projection_pending',
      'The cluster has not applied your access yet. Try again in a few seconds.',
    );
  }
  if (!facts.loginNode) {
    return deny(
      'gateway_unavailable',
      'No login node of this cluster answers at the moment. Try again shortly.',
    );
  }
  const { clusterId, userId, username, shell, loginNode } = facts;
  return { allowed: true, route: { clusterId, userId, username, keyId: facts.key.id, shell, loginNode } };
}
