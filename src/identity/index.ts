/**
 * Who asks. Owns the way from a bearer token to a person: the token is verified against the issuer's keys and kept,
 * verified, until it expires, so that a repeated request costs no signature check. Decides nothing about permissions.
 *
 * Flow: Authorization header → token (cached or verified: token.ts) → person (known, bound or made: person.ts).
 */
import type { JWTVerifyGetKey } from 'jose';
import { DomainError } from '../domain/error.ts';
import type { Store } from '../store/index.ts';
import { findUser } from '../store/users.ts';
import { findPerson } from './person.ts';
import { type TokenRules, verifyToken } from './token.ts';

export interface AuthenticatorOptions {
  store: Store;
  rules: TokenRules;
  keys: JWTVerifyGetKey;
  /** Fetches the issuer's userinfo for a token that says nothing of a verified email. */
  userinfo(token: string): Promise<Record<string, unknown>>;
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
  expiresAt: number;
  /** Undefined for a service account. */
  userId: string | undefined;
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
    const entry = { expiresAt: verified.expiresAt, userId };
    // A Map keeps the order of insertion, so the first key is the oldest.
    if (known.size >= mostTokens) known.delete(known.keys().next().value ?? '');
    known.set(authorization, entry);
    return entry;
  }

  /** People who changed since their tokens were last seen: the change may be the end of their account. */
  const changed = new Set<string>();
  options.store.onChange((changes) => {
    for (const change of changes) if ('userId' in change) changed.add(change.userId);
  });

  async function requireAccount(userId: string): Promise<void> {
    const user = await findUser(options.store.read, userId);
    if (user?.lifecycle_state !== 'active') {
      throw new DomainError('unauthorized', 'This account is deactivated. Ask your operator.');
    }
    changed.delete(userId);
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
    if (changed.has(entry.userId)) await requireAccount(entry.userId);
    return entry.userId;
  };
}
