/**
 * Who asks. Owns the way from a bearer token to a person: the token is verified against the issuer's keys and kept,
 * verified, until it expires, so that a repeated request costs no signature check. Decides nothing about permissions.
 *
 * Flow: Authorization header → token (cached or verified: token.ts) → person (known, bound or made: person.ts).
 */
import type { JWTVerifyGetKey } from 'jose';
import { DomainError } from '../domain/error.ts';
import { findIdentity } from '../store/identities.ts';
import type { Store } from '../store/index.ts';
import { findPerson, requireActive } from './person.ts';
import { type TokenRules, verifyToken } from './token.ts';

export interface AuthenticatorOptions {
  store: Store;
  rules: TokenRules;
  keys: JWTVerifyGetKey;
  /** Fetches the issuer's userinfo for a token that says nothing of a verified email. */
  userinfo(token: string): Promise<Record<string, unknown>>;
  /** What was signed in to before this moment (ms since 1970) is over; undefined when there is no such. */
  signInsSince?(userId: string): Promise<number | undefined>;
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

interface Known {
  subject: string;
  issuedAt: number;
  expiresAt: number;
  /** Undefined for a service account. */
  userId: string | undefined;
  /** How many changes of the person there had been when the token was last found good. */
  changes: number;
}

const mostTokens = 10_000;

export function createAuthenticator(options: AuthenticatorOptions): Authenticate {
  /** By the whole header: what is verified once is found again without being looked into. */
  const known = new Map<string, Known>();

  async function learn(authorization: string | undefined): Promise<Known> {
    const [, token] = /^Bearer +([\w.~+/-]+=*) *$/i.exec(authorization ?? '') ?? [];
    if (authorization === undefined || token === undefined) {
      throw new DomainError('unauthorized', 'Send an access token: sign in with `andromeda auth login`.');
    }
    const verified = await verifyToken(token, options.rules, options.keys, options.now());
    const userId = verified.isServiceAccount ? undefined : await findPerson(options, verified, token);
    const { subject, issuedAt, expiresAt } = verified;
    const entry = { subject, issuedAt, expiresAt, userId, changes: changes.get(userId ?? '') ?? 0 };
    if (userId !== undefined) await requireSignIn(userId, issuedAt);
    // A Map keeps the order of insertion, so the first key is the oldest.
    if (known.size >= mostTokens) known.delete(known.keys().next().value ?? '');
    known.set(authorization, entry);
    return entry;
  }

  /** How often each person has changed since the start: a change may be the end of their account or their sign-ins. */
  const changes = new Map<string, number>();
  options.store.onChange((some) => {
    for (const change of some) {
      if ('userId' in change) changes.set(change.userId, (changes.get(change.userId) ?? 0) + 1);
    }
  });

  async function requireSignIn(userId: string, issuedAt: number): Promise<void> {
    const since = await options.signInsSince?.(userId);
    // Tokens tell their second, not their millisecond.
    if (since === undefined || issuedAt + 1000 > since) return;
    throw new DomainError('unauthorized', 'The password was changed since; sign in again.');
  }

  /** The identity may have been deactivated, or bound to another account, since the token was found good. */
  async function requireAccount(userId: string, { subject, issuedAt }: Known): Promise<void> {
    await requireSignIn(userId, issuedAt);
    const bound = await findIdentity(options.store.read, options.rules.issuer, subject);
    if (bound?.userId !== userId) {
      throw new DomainError(
        'unauthorized',
        'This sign-in is not bound to the account any more. Sign in again.',
      );
    }
    requireActive(bound);
  }

  return async (authorization, serviceAccountRefusal) => {
    let entry = known.get(authorization ?? '');
    if (entry && entry.expiresAt <= options.now()) {
      known.delete(authorization ?? '');
      throw new DomainError('unauthorized', 'The access token has expired.');
    }
    entry ??= await learn(authorization);
    if (entry.userId === undefined) {
      throw new DomainError(
        serviceAccountRefusal,
        'Service accounts cannot use this service; sign in as a person.',
      );
    }
    const latest = changes.get(entry.userId) ?? 0;
    if (entry.changes !== latest) {
      await requireAccount(entry.userId, entry);
      entry.changes = latest;
    }
    return entry.userId;
  };
}
