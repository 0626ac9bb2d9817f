/**
 * Authentication. Owns the way from a bearer token to a person: the token is verified against the issuer's keys and cached,
 * verified, until it expires or the issuer's key set changes, so that a repeated request costs no signature check. Decides nothing
 * about permissions.
 *
 * Flow: Authorization header → token (cached or verified: token.ts) → person (known, bound or made: person.ts).
 */
import type { JWTPayload, JWTVerifyGetKey } from 'jose';
import { signInMs } from '../../domain/access/lapse.ts';
import { DomainError, unauthorized } from '../../domain/error.ts';
import { hears, type Store } from '../../store/engine/index.ts';
import { findIdentity } from '../../store/people/identities.ts';
import { findLeastSignInHours, recordSignIn } from '../../store/people/people.ts';
import type { TakeGroups } from './groups.ts';
import { findPerson, requireActive } from './person.ts';
import {
  clockToleranceMs,
  issuedAt,
  signedInAt,
  type TokenRules,
  type VerifiedToken,
  verifyToken,
} from './token.ts';

export interface AuthenticatorOptions {
  store: Store;
  rules: TokenRules;
  keys: JWTVerifyGetKey;
  /** Fetches the issuer's userinfo for a token without a verified email. */
  userinfo(token: string): Promise<Record<string, unknown>>;
  /** Whether the person has ended the sign-in of a token with these claims; left out: it ends with the token only. */
  isSignInOver?: ((userId: string, claims: JWTPayload) => Promise<boolean>) | undefined;
  /** Access lapses without a sign-in, and the issuer does not say when people signed in. */
  onNoSignInTime?(): void;
  /** Takes over the groups that a token says; left out: none are. */
  takeGroups?: TakeGroups | undefined;
  /** What was kept of this identity, if its person was erased. */
  markIdentity(issuer: string, subject: string): string;
  now(): number;
}

/**
 * The person behind an Authorization header: their user ID. Throws `unauthorized`; `integration_unavailable` when
 * the issuer is needed and cannot be reached; for a service account `serviceAccountRefusal` (contract,
 * "Authentication": Business says 401, Platform 403).
 */
export type Authenticate = (
  authorization: string | undefined,
  serviceAccountRefusal: 'unauthorized' | 'forbidden',
) => Promise<string>;

interface CachedToken extends Pick<VerifiedToken, 'subject' | 'expiresAt' | 'claims' | 'isKeyInForce'> {
  /** Undefined for a service account. */
  userId: string | undefined;
  /** How many changes of the person there had been when the account was last checked; undefined before that. */
  changes: number | undefined;
  /** When that was, by the monotonic clock. */
  checkedAt: number;
}

const mostTokens = 10_000;
/** Where other servers change people as well, a notice of that can be late: no account counts for longer unchecked. */
const recheckMs = 5_000;

export function createAuthenticator(options: AuthenticatorOptions): Authenticate {
  /** By the whole Authorization header, so that a repeated request costs no parsing. */
  const cache = new Map<string, CachedToken>();

  async function verify(authorization: string | undefined): Promise<CachedToken> {
    const [, token] = /^Bearer +([\w.~+/-]+=*) *$/i.exec(authorization ?? '') ?? [];
    if (authorization === undefined || token === undefined) {
      throw unauthorized('Send an access token: sign in with `andromeda auth login`.');
    }
    const verified = await verifyToken(token, options.rules, options.keys, options.now());
    const userId = verified.isServiceAccount ? undefined : await findPerson(options, verified, token);
    const { subject, expiresAt, claims, isKeyInForce } = verified;
    if (userId !== undefined) await noteSignIn(options, userId, claims);
    const isTaken = userId === undefined || (await options.takeGroups?.(userId, claims, token)) !== false;
    const entry = { subject, expiresAt, claims, isKeyInForce, userId, changes: undefined, checkedAt: 0 };
    if (!isTaken) return entry;
    // A Map keeps the order of insertion, so the first key is the oldest.
    if (cache.size >= mostTokens) cache.delete(cache.keys().next().value ?? '');
    cache.set(authorization, entry);
    return entry;
  }

  const changesOf = countChanges(options.store);
  return async (authorization, serviceAccountRefusal) => {
    const kept = cache.get(authorization ?? '');
    if (kept && kept.expiresAt + clockToleranceMs <= options.now()) {
      cache.delete(authorization ?? '');
      throw unauthorized('The access token has expired.');
    }
    const entry = kept && (await kept.isKeyInForce()) ? kept : await verify(authorization);
    if (entry.userId === undefined) {
      throw new DomainError(
        serviceAccountRefusal,
        'Service accounts cannot use this service; sign in as a person.',
      );
    }
    const latest = changesOf(entry.userId);
    const isOld = performance.now() - entry.checkedAt >= recheckMs;
    if (entry.changes !== latest || isOld) {
      const checkedAt = performance.now();
      await requireAccount(options, entry.userId, entry);
      Object.assign(entry, { changes: latest, checkedAt });
    }
    return entry.userId;
  };
}

/**
 * How often a person has changed since the start, on whichever server: a change may be the end of their account or their
 * sign-ins.
 */
function countChanges(store: Store): (userId: string) => number {
  const changes = new Map<string, number>();
  let ofAll = 0;
  store.onChange(hears.tokens, (some) => {
    for (const change of some) {
      if (change.kind === 'everything') ofAll += 1;
      else changes.set(change.userId, (changes.get(change.userId) ?? 0) + 1);
    }
  });
  return (userId) => ofAll + (changes.get(userId) ?? 0);
}

/** Since the token was issued, the sign-in may be over, and the identity deactivated or bound to another account. */
async function requireAccount(
  { isSignInOver, store, rules }: AuthenticatorOptions,
  userId: string,
  { subject, claims }: CachedToken,
): Promise<void> {
  if (await isSignInOver?.(userId, claims)) {
    throw unauthorized('The password was changed since; sign in again.');
  }
  const bound = await findIdentity(store.read, rules.issuer, subject);
  if (bound?.userId !== userId) {
    throw unauthorized('This sign-in is not bound to the account any more. Sign in again.');
  }
  requireActive(bound);
}

/**
 * Where access lapses without a sign-in, only the person's own counts, so that no refresh in the background keeps access
 * alive. A disk that takes no writes at the moment is no reason to refuse a token that is right; the next one is noted.
 */
async function noteSignIn(
  { store, now, onNoSignInTime }: AuthenticatorOptions,
  userId: string,
  claims: JWTPayload,
): Promise<void> {
  let at = signedInAt(claims, now());
  if (at === undefined) {
    const { policy } = store.lapses;
    if (signInMs(policy, await findLeastSignInHours(store.read)) !== undefined) return onNoSignInTime?.();
    at = issuedAt(claims, now());
  }
  await recordSignIn(store, userId, at).catch((error: unknown) => {
    if (!(error instanceof DomainError && error.code === 'service_unavailable')) throw error;
  });
}
