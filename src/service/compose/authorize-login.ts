/** A part of the composition root: what the gateway asks at each login, and again for as long as a session lives. */
import { decideAccess } from '../../domain/access/decision.ts';
import { type AccessPolicy, periodText, type SignInWindow, signInAdvice } from '../../domain/access/lapse.ts';
import { parseLoginName } from '../../domain/access/ssh-session.ts';
import type { Attempt, Authorize, Decision } from '../../gateway/ssh/decision.ts';
import { findLogin, findPersonOnCluster } from '../../store/access/access-facts.ts';
import type { Store } from '../../store/engine/index.ts';

const unknown: Decision = {
  allowed: false,
  reason: 'unknown',
  message: 'Permission denied.',
  disclose: false,
};

export interface AuthorizeDeps {
  store: Store;
  /** How long after a cluster's last report access still counts as confirmed for an open session. */
  graceMs: number;
}

/** Decides about a login name and a proven key. Only the owner of a registered key learns the reason of a refusal. */
export function createAuthorize({ store, graceMs }: AuthorizeDeps): Authorize {
  return async function authorizeLogin({ loginName, fingerprint }: Attempt, openOn) {
    const parsed = parseLoginName(loginName);
    const login = parsed && (await findLogin(store.read, { ...parsed, fingerprint }));
    const person = login && (await findPersonOnCluster(store, parsed.clusterId, login.userId));
    if (!person) return unknown;
    const { clusterId, username, job } = parsed;
    const subject = { clusterId, ...login };
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

/** What a session that ends for want of a sign-in says before. */
function lapseOf({ ms, leftMs }: SignInWindow, policy: AccessPolicy) {
  const text = `you last signed in nearly ${periodText(ms)} ago. Sign in ${signInAdvice(policy)}, and it goes on.`;
  return { leftMs, text };
}
