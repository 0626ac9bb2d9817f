/** A part of the composition root: the SSH gateway, with its reads of the store and its records in the audit trail. */
import { listenError } from '../../api/http/listen.ts';
import { decideAccess } from '../../domain/access/decision.ts';
import { type AccessPolicy, periodText, type SignInWindow, signInAdvice } from '../../domain/access/lapse.ts';
import { parseLoginName } from '../../domain/access/ssh-session.ts';
import { allKeys } from '../../domain/key-rotation.ts';
import type { Gateways } from '../../gateway/process/gateways.ts';
import { openGateways } from '../../gateway/process/index.ts';
import type { Attempt, Authorize, Decision } from '../../gateway/ssh/decision.ts';
import type { GatewayKeys } from '../../gateway/ssh/index.ts';
import { defaultLimits } from '../../gateway/ssh/limits.ts';
import { findLogin } from '../../store/access/access-facts.ts';
import { closeLostSessions } from '../../store/audit/open-sessions.ts';
import type { Store } from '../../store/engine/index.ts';
import type { Config } from '../config/index.ts';
import type { Parts } from './parts.ts';
import type { Peers } from './peers/peers.ts';
import type { ServiceKeys } from './service-keys.ts';
import type { SessionRecords } from './session-records.ts';

type GatewayDeps = Pick<Parts, 'store' | 'log'> & {
  gatewayKeys: GatewayKeys;
  peers: Pick<Peers, 'forOthers'>;
  records: SessionRecords;
  /** Left out: decides from the store. */
  authorize?: Authorize;
  /** The build of the program that processes run, where it is not this one's. */
  build?: string | undefined;
};

/** Finds the gateway that still runs from before, or begins to start one. It takes no logins before `startGateway`. */
export function openGateway(config: Config, deps: GatewayDeps): Promise<Gateways> {
  const { store, peers, records, log } = deps;
  const { listen, limits, processes, account, securityKeys, proxyProtocol } = config.gateway;
  const graceMs = limits.confirmGraceMs ?? defaultLimits.confirmGraceMs;
  return openGateways({
    dataDir: config.dataDir,
    processes,
    account,
    settings: {
      listen,
      ...deps.gatewayKeys,
      securityKeys,
      limits,
      trustedProxies: config.trustedProxies,
      proxyProtocol: proxyProtocol ?? 'optional',
      hasOthers: peers.forOthers(() => true) ?? false,
      debug: config.log.level === 'debug',
    },
    record: records.record,
    authorize: deps.authorize ?? createAuthorize({ store, graceMs }),
    log,
    build: deps.build,
  });
}

/** The gateway's keys among those that are valid now. */
export function gatewayKeys(keys: Pick<ServiceKeys, 'of'>): GatewayKeys {
  const texts = (kind: 'host' | 'client') => allKeys(keys.of(kind)).map(({ privateKey }) => privateKey);
  return { hostKeys: texts('host'), clientKeys: texts('client') };
}

/**
 * Closes the records of sessions that no process has any more, then lets the gateway serve. Throws
 * `service_unavailable` with a sentence when its address is not available.
 */
export async function startGateway(
  gateway: Gateways,
  { config, store, log, now }: Pick<Parts, 'config' | 'store' | 'log' | 'now'>,
): Promise<void> {
  const { listen } = config.gateway;
  const lost = await closeLostSessions(store, new Date(now()).toISOString(), gateway.held);
  if (lost > 0) log.info('gateway.sessions.lost', { sessions: lost });
  await gateway.start().catch((error: NodeJS.ErrnoException) => {
    throw listenError(error, { name: 'SSH gateway', ...listen });
  });
}

const unknown: Decision = {
  allowed: false,
  reason: 'unknown',
  message: 'Permission denied.',
  disclose: false,
};

interface AuthorizeDeps {
  store: Store;
  /** How long after a cluster's last report access still counts as confirmed for an open session. */
  graceMs: number;
}

/** Decides about a login name and a proven key. Only the owner of a registered key learns the reason of a refusal. */
export function createAuthorize({ store, graceMs }: AuthorizeDeps): Authorize {
  return async function authorizeLogin({ loginName, fingerprint }: Attempt, openOn) {
    const parsed = parseLoginName(loginName);
    const person = parsed && (await findLogin(store, { ...parsed, fingerprint }));
    if (!person) return unknown;
    const { clusterId, username, job } = parsed;
    const { userId, keyId } = person;
    const subject = { clusterId, userId, keyId };
    const open = openOn && { loginNode: openOn, graceMs };
    const decision = decideAccess(person.facts, { fingerprint, open });
    const { policy, signIn } = person.facts;
    if (!decision.allowed) {
      const { obstacle: reason, message } = decision;
      const untilSignIn = reason === 'sign_in_lapsed' && !open;
      return {
        allowed: false,
        reason,
        message,
        disclose: true,
        subject,
        ...(untilSignIn && { untilSignIn }),
      };
    }
    return {
      allowed: true,
      route: {
        ...subject,
        username,
        shell: person.shell,
        loginNode: decision.loginNode,
        ...(job && { job }),
        ...(signIn && policy.endOpenSessions && { lapse: lapseOf(signIn, policy) }),
      },
    };
  };
}

/** The warning of a session that will end for want of a sign-in. */
function lapseOf({ ms, leftMs }: SignInWindow, policy: AccessPolicy) {
  const text = `you last signed in nearly ${periodText(ms)} ago. Sign in ${signInAdvice(policy)}, and it goes on.`;
  return { leftMs, text };
}
