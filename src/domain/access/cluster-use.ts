/**
 * The state of a person's SSH and kubectl use of a cluster: ready or not, the reason, and who has to act next. The
 * console, `andromeda access` and `andromeda doctor` show it; admission itself is decided in `decision.ts`.
 */
import type { Access } from '../kubernetes/bindings.ts';
import { type AccessFacts, decideAccess, isSignInOver, type Obstacle } from './decision.ts';
import { dayMs, periodText } from './lapse.ts';
import { closureOf, effectivePermissions, endText, hiddenFault, type PermissionKey } from './permission.ts';
import { type AccessRequest, requestState } from './request.ts';

/** Each reason, with its state and who has to act next. A `ready` use may still have a change pending. */
const reasons = {
  ready: { state: 'ready' },
  not_offered: { state: 'none' },
  no_permission: { state: 'missing', next: 'you' },
  permission_requested: { state: 'missing', next: 'manager' },
  permission_removed: { state: 'missing', next: 'you' },
  permission_ended: { state: 'missing', next: 'you' },
  no_keys: { state: 'missing', next: 'you' },
  key_lapsed: { state: 'missing', next: 'you' },
  sign_in_lapsed: { state: 'missing', next: 'you' },
  named_user_required: { state: 'missing', next: 'manager' },
  cluster_inactive: { state: 'missing', next: 'operator' },
  no_kubernetes_login: { state: 'missing', next: 'operator' },
  applying: { state: 'pending', next: 'service' },
  restarting: { state: 'pending', next: 'service' },
  late: { state: 'failed', next: 'operator' },
  fault: { state: 'failed', next: 'operator' },
  not_answering: { state: 'failed', next: 'operator' },
  not_reporting: { state: 'failed', next: 'operator' },
} as const;

type UseReason = keyof typeof reasons;

export interface Use {
  state: (typeof reasons)[UseReason]['state'];
  reason: UseReason;
  /** True if the person holds the required permission and the cluster offers the use. */
  granted: boolean;
  /** `manager`: an owner or admin of the organization; absent if there is nothing to do. */
  next?: 'you' | 'manager' | 'operator' | 'service';
  message: string;
}

export interface UseContext {
  name: string;
  lifecycle: string;
  /** Whether the person may read the operators' text of a cluster fault. */
  seesFaults: boolean;
  fault: string | undefined;
  /** The last change that the cluster has to apply, and the current time, in ms since 1970. */
  changedAt: number;
  now: number;
  /** Why the person lacks the required permission. */
  absence: Absence;
}

/** The usual time for a change to reach a cluster; a longer delay needs a person's attention. */
export const usualMs = 300_000;

/** The reasons that mean a missing permission, or a use that the cluster does not offer. */
const ungranted: ReadonlySet<UseReason> = new Set([
  ...(['not_offered', 'no_permission', 'permission_requested'] as const),
  ...(['permission_removed', 'permission_ended'] as const),
]);

function useOf(reason: UseReason, message: string): Use {
  return { reason, ...reasons[reason], granted: !ungranted.has(reason), message };
}

/** Adds the operators' text of the fault, if the person may read it. */
function failedUse(reason: UseReason, text: string, { seesFaults, fault }: UseContext): Use {
  return useOf(reason, seesFaults && fault ? `${text}: ${fault}` : `${text}. ${hiddenFault}`);
}

/** The state of a change on its way to the cluster: faulty, applying, or late after the usual time. */
function pendingUse(what: string, to: UseContext): Use {
  const { name, fault, changedAt, now } = to;
  if (fault !== undefined)
    return failedUse('fault', `A fault on ${name} keeps ${what} from being applied`, to);
  if (now - changedAt <= usualMs)
    return useOf('applying', `Sending ${what} to ${name}, which takes some seconds.`);
  return useOf(
    'late',
    `${name} has not confirmed ${what} since ${textOf(changedAt)}, which takes seconds otherwise. Tell your administrator.`,
  );
}

function inactiveUse({ name, lifecycle }: UseContext): Use {
  return useOf('cluster_inactive', `${name} is ${lifecycle}; it can be used when it is active.`);
}

function silentUse(on: UseContext, observedMsAgo: number | undefined): Use {
  const { name, changedAt, now } = on;
  if (observedMsAgo === undefined && now - changedAt <= usualMs)
    return useOf('applying', `Waiting for the first report of ${name}.`);
  const since = observedMsAgo === undefined ? 'yet' : `since ${textOf(now - observedMsAgo)}`;
  return failedUse('not_reporting', `${name} has not reported ${since}, so your access is not confirmed`, on);
}

function lapsedUse({ signIn }: AccessFacts): Use {
  const period = periodText(signIn?.ms ?? 0);
  return useOf('sign_in_lapsed', `You have not signed in for ${period}, so your access has lapsed.`);
}

export interface SshUseFacts {
  access: AccessFacts;
  /** Why the gateway serves no cluster; undefined while it works. */
  gatewayFault: string | undefined;
  /** The last change of the list of accounts, by anyone, in ms since 1970: it may restart login nodes. */
  listChangedAt: number;
}

export function sshUse({ access: facts, gatewayFault, listChangedAt }: SshUseFacts, on: UseContext): Use {
  const { name } = on;
  if (!facts.takesAccessList) return useOf('not_offered', `${name} has no SSH: it runs Kubernetes only.`);
  const decision = decideAccess(facts, {});
  if (decision.allowed || worksWithOneKey(facts)) {
    // The fault is the installation's: seeing the cluster does not entitle to read it.
    if (gatewayFault !== undefined)
      return failedUse('fault', 'The SSH gateway does not serve', { ...on, seesFaults: false });
    if (decision.allowed) return useOf('ready', 'You can log in over SSH.');
    const newest = pendingUse('your newest key', on);
    return useOf('ready', `You can log in over SSH, with the keys that are there. ${newest.message}`);
  }
  if (decision.obstacle === 'gateway_unavailable') return unansweredUse(on, listChangedAt);
  return sshUseBehind(decision.obstacle, facts, on);
}

function worksWithOneKey(facts: AccessFacts): boolean {
  return facts.activeKeys.some((fingerprint) => decideAccess(facts, { fingerprint }).allowed);
}

function sshUseBehind(
  obstacle: Exclude<Obstacle, 'gateway_unavailable'>,
  facts: AccessFacts,
  on: UseContext,
): Use {
  switch (obstacle) {
    case 'access_removed':
    case 'access_ended':
      return absentUse('SSH', 'clusters.ssh', on);
    case 'sign_in_lapsed':
      return lapsedUse(facts);
    case 'key_revoked':
    case 'no_keys':
      return useOf('no_keys', 'You have no SSH key registered.');
    case 'key_lapsed':
      return useOf(
        'key_lapsed',
        `Your SSH keys have lapsed: they are good for ${periodText((facts.policy.keyMaxDays ?? 0) * dayMs)}. Register another one.`,
      );
    case 'security_key_off':
      return useOf('no_keys', 'Security keys are not accepted here. Register a key of another type.');
    case 'security_key_required':
      return useOf(
        'no_keys',
        'You hold staff keys, so only a security key lets you in (ssh-keygen -t ed25519-sk). Register one.',
      );
    case 'cluster_inactive':
      return inactiveUse(on);
    case 'named_user_required':
      return useOf('named_user_required', 'You have no user name in this organization.');
    case 'no_login_nodes':
      return useOf('not_offered', `${on.name} has no SSH: it runs Kubernetes only.`);
    case 'observation_stale':
      return silentUse(on, facts.observedMsAgo);
    case 'access_not_projected':
    case 'projection_pending':
    case 'projection_failed':
      return pendingUse('your account and keys', on);
  }
}

/** Login nodes restart when accounts are added or removed, so they may be down for a short while. */
function unansweredUse(on: UseContext, listChangedAt: number): Use {
  const { name, fault, changedAt, now } = on;
  if (fault !== undefined) return failedUse('fault', `No login node of ${name} answers`, on);
  if (now - Math.max(changedAt, listChangedAt) <= usualMs)
    return useOf('restarting', `The login nodes of ${name} restart with the new list of accounts.`);
  return useOf('not_answering', `No login node of ${name} answers. Tell your administrator.`);
}

export interface KubernetesUseFacts {
  hasGrant: boolean;
  access: Access;
  /** The Kubernetes API's readiness in the last recent report; undefined without one. */
  isReady: boolean | undefined;
  observedMsAgo: number | undefined;
  offersLogin: boolean;
}

/** The state of kubectl use; without `kubernetes` facts, the cluster offers no Kubernetes. */
export function kubernetesUse(
  facts: AccessFacts,
  kubernetes: KubernetesUseFacts | undefined,
  on: UseContext,
): Use {
  const { name } = on;
  if (!kubernetes) return useOf('not_offered', `${name} has Slurm only, and no Kubernetes to use.`);
  const { hasGrant, access, isReady, observedMsAgo, offersLogin } = kubernetes;
  const isAdmitted =
    facts.isMember && effectivePermissions(facts.role, facts.permissions).has('clusters.kubernetes');
  if (!isAdmitted && !hasGrant) return absentUse('Kubernetes', 'clusters.kubernetes', on);
  if (isSignInOver(facts)) return lapsedUse(facts);
  if (on.lifecycle !== 'active') return inactiveUse(on);
  if (!offersLogin)
    return useOf('no_kubernetes_login', 'This installation has no sign-in for kubectl set up yet.');
  if (isReady === undefined) return silentUse(on, observedMsAgo);
  if (!isReady) return failedUse('not_answering', `The Kubernetes API of ${name} does not answer`, on);
  if (access.state === 'applied') return useOf('ready', 'You can use kubectl.');
  return pendingUse('your Kubernetes permissions', on);
}

/** Why a person lacks a permission: it was never given, or was requested, removed or ended at a time. */
export interface Absence {
  reason: Extract<UseReason, 'no_permission' | `permission_${string}`>;
  /** RFC 3339: the time of the request, the approval or the end. */
  at?: string;
}

/** `requests` are the person's own requests in the organization. */
export function absenceOf(
  gate: PermissionKey,
  { ended }: Pick<AccessFacts, 'ended'>,
  requests: readonly AccessRequest[],
  now: number,
): Absence {
  const opens = (keys: readonly string[]) => closureOf(keys).has(gate);
  const own = requests.filter(({ permissions }) => opens(permissions));
  const open = own.find((one) => requestState(one, now) === 'open');
  if (open) return { reason: 'permission_requested', at: open.createdAt };
  const approved = own
    .filter(({ state }) => state === 'approved')
    .toSorted((a, b) => ((a.decidedAt ?? '') < (b.decidedAt ?? '') ? 1 : -1))[0];
  if (approved?.decidedAt && (approved.expiresAt === null || Date.parse(approved.expiresAt) > now))
    return { reason: 'permission_removed', at: approved.decidedAt };
  const ends = ended.flatMap(({ key, expiresAt }) => (opens([key]) ? (expiresAt ?? []) : []));
  const last = [...ends, approved?.expiresAt ?? []].flat().sort().at(-1);
  return last === undefined ? { reason: 'no_permission' } : { reason: 'permission_ended', at: last };
}

function absentUse(side: 'SSH' | 'Kubernetes', gate: PermissionKey, { name, absence }: UseContext): Use {
  const { reason, at = '' } = absence;
  const texts: Record<Absence['reason'], string> = {
    no_permission: `You have no ${side} access to ${name}: it takes the permission ${gate}.`,
    permission_requested: `You asked for ${side} access on ${endText(at)}. An owner or admin decides.`,
    permission_removed: `Your ${side} access was approved on ${endText(at)} and has been taken away again.`,
    permission_ended: `Your ${side} access ended on ${endText(at)}.`,
  };
  return useOf(reason, texts[reason]);
}

function textOf(ms: number): string {
  return endText(new Date(ms).toISOString());
}
