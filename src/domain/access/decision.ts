/**
 * Decides whether a person may log in to a cluster over SSH, and which obstacle prevents it. `ssh-access`, the gateway's
 * logins and the recheck of open sessions all use this decision (contract, "SSH access object" and "SSH gateway
 * behaviour").
 */
import type { Hop } from '../slurm/hop.ts';
import { type AccessPolicy, dayMs, periodText, type SignInWindow, signInAdvice } from './lapse.ts';
import { observationFreshnessMs } from './manifest.ts';
import { closureOf, effectivePermissions, endText, type GrantedPermission, type Role } from './permission.ts';
import { plainKeyType, securityKeyType } from './ssh-key.ts';

export interface LoginNode {
  host: string;
  port: number;
  hostKey: string;
  /** The host that it is reached through. */
  via?: Hop;
  /** Whether the person's account there has the shell that they chose. Absent: no, or unknown. */
  hasShell?: boolean;
}

/** A snapshot of the facts about one person on one cluster, all of one moment. */
export interface AccessFacts {
  clusterState: string;
  /** Whether the cluster has accounts at all; a Kubernetes-only cluster has none. */
  takesAccessList: boolean;
  /** The login name in the cluster's organization; undefined while the person has none. */
  username: string | undefined;
  /** Whether the person is a member now; false if the person or the organization is out of service. */
  isMember: boolean;
  role: Role;
  permissions: readonly string[];
  /** The end of the SSH access that role and permissions give; null: no end. */
  accessEndsAt: string | null;
  /** The person's permissions there that have ended. */
  ended: readonly GrantedPermission[];
  activeKeys: readonly string[];
  /** Keys, of any age, whose type is not accepted from this person (`isFitKey`). */
  unfitKeys: readonly string[];
  lapsedKeys: readonly string[];
  /** The lifetime of the sign-in; undefined: it does not lapse. */
  signIn: SignInWindow | undefined;
  /** The installation's policy for keys and sign-ins. */
  policy: AccessPolicy;
  /** Whether the access list contains the person. */
  isListed: boolean;
  /** The cluster's last confirmed state of this person; undefined if it has none. */
  confirmed: { loginState: 'ready' | 'waiting_for_key'; keyFingerprints: readonly string[] } | undefined;
  /** The login nodes for this person, the best first; `up`: it accepts new logins. */
  loginNodes: readonly (LoginNode & { up: boolean })[];
  /** How long ago the cluster last reported, in ms; undefined before the first report. */
  observedMsAgo: number | undefined;
  failure: string | null;
}

/**
 * An open session: it stays on its login node and survives a gap in the cluster's reports. The session's own
 * connection shows whether that node still runs; management probes do not decide it.
 */
interface OpenSession {
  loginNode: Pick<LoginNode, 'host' | 'port'>;
  /** How long access counts as confirmed after the last report, in ms. */
  graceMs: number;
}

export interface AccessQuestion {
  fingerprint?: string | undefined;
  open?: OpenSession | undefined;
}

export type ReadinessReason =
  | 'ready'
  | 'no_keys'
  | 'access_not_projected'
  | 'projection_pending'
  | 'gateway_unavailable'
  | 'observation_stale'
  | 'cluster_inactive'
  | 'named_user_required';

export type AccessDecision =
  | { allowed: true; loginNode: LoginNode }
  | {
      allowed: false;
      obstacle: Obstacle;
      /** The reason code in `ssh-access`; undefined for an obstacle without one. */
      readiness: Exclude<ReadinessReason, 'ready'> | undefined;
      message: string;
    };

/** Each obstacle with its `ssh-access` reason code, if it has one, and the sentence for the person. */
const obstacles = {
  key_revoked: {
    wire: 'no_keys',
    message: () => 'This key was revoked. Register another one and use that.',
  },
  access_removed: {
    wire: undefined,
    message: (_: AccessFacts, open?: OpenSession) =>
      `${open ? 'Your SSH access to this cluster was removed.' : 'You have no SSH access to this cluster.'} Ask an owner of your organization.`,
  },
  access_ended: {
    wire: undefined,
    message: (facts: AccessFacts) =>
      `Your SSH access to this cluster ended on ${endText(endedAt(facts) ?? '')}. Ask for more time: andromeda access request clusters.ssh`,
  },
  // The reason codes of `ssh-access` are a closed list in the contract.
  sign_in_lapsed: {
    wire: 'access_not_projected',
    message: ({ policy, signIn }: AccessFacts) =>
      `You have not signed in for ${periodText(signIn?.ms ?? 0)}, so your access has lapsed. Sign in ${signInAdvice(policy)}, and it comes back at once.`,
  },
  key_lapsed: {
    wire: 'no_keys',
    message: ({ policy }: AccessFacts) =>
      `This key has lapsed (no_keys): keys are good for ${periodText((policy.keyMaxDays ?? 0) * dayMs)}. Register another one with \`andromeda keys add\`, and use that.`,
  },
  security_key_off: {
    wire: 'no_keys',
    message: () =>
      'Security keys are not accepted here (no_keys). Make another key with `ssh-keygen -t ed25519`, register it with `andromeda keys add FILE`, and use that.',
  },
  security_key_required: {
    wire: 'no_keys',
    message: () =>
      'You hold staff keys, and staff log in with a security key only (no_keys). Make one with `ssh-keygen -t ed25519-sk`, register it with `andromeda keys add FILE`, and use that.',
  },
  cluster_inactive: {
    wire: 'cluster_inactive',
    message: ({ clusterState }: AccessFacts) =>
      `This cluster is ${clusterState} (cluster_inactive); logins open when it is active.`,
  },
  named_user_required: {
    wire: 'named_user_required',
    message: () =>
      'You have no username in this organization (named_user_required). Ask an owner or admin of it for one.',
  },
  no_keys: {
    wire: 'no_keys',
    message: () => 'You have no active SSH key (no_keys). Register one and use that.',
  },
  access_not_projected: {
    wire: 'access_not_projected',
    message: () =>
      "Your access is not on the cluster's list yet (access_not_projected). Try again in a few seconds.",
  },
  no_login_nodes: {
    wire: 'gateway_unavailable',
    message: () =>
      'This cluster runs Kubernetes only and has no SSH logins (gateway_unavailable). Use kubectl with its kubeconfig.',
  },
  gateway_unavailable: {
    wire: 'gateway_unavailable',
    message: () =>
      'No login node of this cluster answers at the moment (gateway_unavailable). Try again in a minute.',
  },
  observation_stale: {
    wire: 'observation_stale',
    message: () =>
      'Your access cannot be confirmed: the cluster has not reported lately (observation_stale). Wait for its next report.',
  },
  projection_failed: {
    wire: 'projection_pending',
    message: () =>
      'A fault keeps the cluster from applying your access (projection_pending). Please tell your administrator.',
  },
  projection_pending: {
    wire: 'projection_pending',
    message: () =>
      'The cluster has not applied your access yet (projection_pending). Try again in a few seconds.',
  },
} as const satisfies Record<
  string,
  {
    wire: Exclude<ReadinessReason, 'ready'> | undefined;
    message(facts: AccessFacts, open?: OpenSession): string;
  }
>;

export type Obstacle = keyof typeof obstacles;

/** True for an obstacle of time or key type, which no reason code of `ssh-access` explains. */
export function isExplained(obstacle: Obstacle): boolean {
  return obstacle === 'sign_in_lapsed' || obstacle === 'key_lapsed' || obstacle.startsWith('security_key_');
}

/** Checks that keys of this type are accepted from the person, whatever else applies. */
export function isFitKey(
  type: string,
  { isStaff, policy }: { isStaff: boolean; policy: AccessPolicy },
): boolean {
  if (type === securityKeyType) return policy.securityKeys === true;
  return type === plainKeyType && !(isStaff && policy.requireSecurityKeys === 'staff');
}

/**
 * Allows only access that the cluster confirmed in every respect; an open session stays while that is so. Another
 * person's pending change is no obstacle, nor is the person's other key that waits for the cluster.
 */
export function decideAccess(facts: AccessFacts, question: AccessQuestion): AccessDecision {
  const found = findObstacle(facts, question);
  if (typeof found !== 'string') return { allowed: true, loginNode: found };
  const { wire, message } = obstacles[found];
  return { allowed: false, obstacle: found, readiness: wire, message: message(facts, question.open) };
}

/** The first obstacle, in the order in which a person would have to remove them; else the login node. */
function findObstacle(facts: AccessFacts, question: AccessQuestion): Obstacle | LoginNode {
  const { activeKeys, confirmed } = facts;
  const { fingerprint } = question;
  // Checked first: deactivating a person also revokes their keys, and registering another key would not help.
  if (!mayUseSsh(facts)) return endedAt(facts) === undefined ? 'access_removed' : 'access_ended';
  const keyFault = findKeyFault(facts, fingerprint);
  if (keyFault === 'key_revoked') return keyFault;
  if (isSignInOver(facts) && (!question.open || facts.policy.endOpenSessions)) return 'sign_in_lapsed';
  if (keyFault !== undefined && fingerprint !== undefined) return keyFault;
  if (facts.clusterState !== 'active') return 'cluster_inactive';
  if (facts.username === undefined) return 'named_user_required';
  if (keyFault !== undefined) return keyFault;
  if (!facts.takesAccessList) return 'no_login_nodes';
  if (!facts.isListed) return 'access_not_projected';
  const loginNode = loginNodeFor(facts, question.open);
  if (!loginNode) return 'gateway_unavailable';
  if (!hasRecentObservation(facts, question)) return 'observation_stale';
  const asked = fingerprint === undefined ? activeKeys : [fingerprint];
  if (confirmed?.loginState === 'ready' && asked.every((key) => confirmed.keyFingerprints.includes(key))) {
    return loginNode;
  }
  return facts.failure === null ? 'projection_pending' : 'projection_failed';
}

/** True if the last sign-in is too old. */
export function isSignInOver({ signIn }: Pick<AccessFacts, 'signIn'>): boolean {
  return signIn !== undefined && signIn.leftMs <= 0;
}

/** The fault of the given key, or of all keys if none is given; undefined if the key, or one of them, is accepted. */
function findKeyFault(facts: AccessFacts, fingerprint: string | undefined): Obstacle | undefined {
  const { activeKeys, unfitKeys, lapsedKeys, policy } = facts;
  const has = (keys: readonly string[]) =>
    fingerprint === undefined ? keys.length > 0 : keys.includes(fingerprint);
  if (has(activeKeys)) return undefined;
  if (has(unfitKeys)) return policy.securityKeys ? 'security_key_required' : 'security_key_off';
  if (has(lapsedKeys)) return 'key_lapsed';
  return fingerprint === undefined ? 'no_keys' : 'key_revoked';
}

function mayUseSsh({ isMember, role, permissions }: AccessFacts): boolean {
  return isMember && effectivePermissions(role, permissions).has('clusters.ssh');
}

function endedAt({ isMember, ended }: AccessFacts): string | undefined {
  if (!isMember) return undefined;
  const ends = ended.flatMap(({ key, expiresAt }) =>
    closureOf([key]).has('clusters.ssh') ? (expiresAt ?? []) : [],
  );
  return ends.sort().at(-1);
}

function hasRecentObservation({ observedMsAgo }: AccessFacts, { open }: AccessQuestion): boolean {
  const freshMs = Math.max(observationFreshnessMs, open?.graceMs ?? 0);
  return observedMsAgo !== undefined && observedMsAgo <= freshMs;
}

/** The open session's login node, even if it accepts no new logins; else the first that does. */
function loginNodeFor({ loginNodes }: AccessFacts, open: OpenSession | undefined): LoginNode | undefined {
  const own = loginNodes.find(
    ({ host, port }) => host === open?.loginNode.host && port === open.loginNode.port,
  );
  const chosen = own ?? loginNodes.find(({ up }) => up);
  if (!chosen) return undefined;
  const { up: _, ...node } = chosen;
  return node;
}

/** The client's text for each reason, with the command to type; `name` is the cluster's. */
export const readinessAdvice: Record<Exclude<ReadinessReason, 'ready'>, (name: string) => string> = {
  no_keys: () => 'You have no SSH key registered; `andromeda keys add` registers one.',
  access_not_projected: (name) =>
    `${name} has not been told of you yet; \`andromeda wait key --cluster ${name}\` ends when it has your key.`,
  projection_pending: (name) =>
    `${name} has not applied the latest changes yet; \`andromeda wait key --cluster ${name}\` ends when it has.`,
  gateway_unavailable: (name) =>
    `${name} does not answer over SSH: it may be restarting, or have no Slurm; try again, or ask its operator.`,
  observation_stale: (name) =>
    `${name} has not reported for minutes, and nobody is let in until it does; its operator has to look.`,
  cluster_inactive: (name) => `${name} is not in service; \`andromeda clusters show ${name}\` says more.`,
  named_user_required: (name) =>
    `You have no username in the organization of ${name}; an owner or admin of it has to give you one.`,
};

/** Checks that this version knows the `ssh-access` reason code. */
export function isReadinessObstacle(reason: string): reason is keyof typeof readinessAdvice {
  return Object.hasOwn(readinessAdvice, reason);
}
