/** The session: who is signed in to one environment, and the tokens that prove it. Tokens are never printed. */

import { visibleName } from '../../domain/visible-text.ts';
import { failure } from '../exit.ts';
import { isObject } from '../net/request.ts';
import { isSafeUrl } from '../net/url.ts';

export interface SignedInUser {
  name: string;
  email: string;
}

export interface Session {
  platformUrl: string;
  businessUrl: string;
  issuer: string;
  clientId: string;
  accessToken: string;
  /** Absent when the issuer gave none, or has refused it. */
  refreshToken?: string;
  /** When the access token expires, RFC 3339; absent when the issuer gave no expiry. */
  expiresAt?: string;
  scope?: string;
  /** What the tokens were asked for (RFC 8707); absent in sessions of earlier versions. */
  resource?: string;
  user?: SignedInUser;
}

/** A session belongs to a profile and an environment: no other environment may ever see its token. */
export interface SessionKey {
  profile: string;
  platformUrl: string;
}

/**
 * Where sessions are stored. `put` and `delete` may be called again with the same arguments. Writers hold the
 * profile's lock (`exclusively`), since a refresh is a read, a request and a write that belong together.
 */
export interface SessionStore {
  get(key: SessionKey): Promise<Session | undefined>;
  /** Whether there is one, without asking the credential store. */
  has(key: SessionKey): Promise<boolean>;
  put(profile: string, session: Session): Promise<void>;
  delete(key: SessionKey): Promise<void>;
}

/** Which environment a profile is bound to: the one of its last `auth login --url`. */
export interface Bindings {
  find(profile: string): Promise<string | undefined>;
  bind(profile: string, platformUrl: string): Promise<void>;
}

/** Whether the access token has less than 30 seconds left, too little to start a request with. */
export function needsRefresh(session: Session, now: number): boolean {
  return session.expiresAt !== undefined && Date.parse(session.expiresAt) - now < 30_000;
}

/**
 * The headers that carry the session's token to `url`. Refuses every address that is not the environment's
 * own: a token sent elsewhere is a token given away.
 */
export function authorization(session: Session, url: URL): [string, string] {
  const own = [session.platformUrl, session.businessUrl].some((base) => new URL(base).origin === url.origin);
  if (!own || !isSafeUrl(url))
    throw failure(`The session does not belong to ${url.origin}; nothing was sent.`);
  return ['Authorization', `Bearer ${session.accessToken}`];
}

/** A person as one reads it: `Ada <ada@physics.example>`. */
export function nameOf({ name, email }: SignedInUser): string {
  const address = visibleName(email, 254); // as long as an address may be
  return name ? `${visibleName(name)} <${address}>` : address;
}

/** A session from what was stored, or undefined when it is not one. */
export function parseSession(value: unknown): Session | undefined {
  if (!isObject(value)) return undefined;
  const {
    platformUrl,
    businessUrl,
    issuer,
    clientId,
    accessToken,
    refreshToken,
    expiresAt,
    scope,
    resource,
    user,
  } = value;
  for (const url of [platformUrl, businessUrl, issuer])
    if (typeof url !== 'string' || !URL.canParse(url)) return undefined;
  if (typeof clientId !== 'string' || typeof accessToken !== 'string') return undefined;
  return {
    platformUrl: String(platformUrl),
    businessUrl: String(businessUrl),
    issuer: String(issuer),
    clientId,
    accessToken,
    ...(typeof refreshToken === 'string' && { refreshToken }),
    ...(typeof expiresAt === 'string' && { expiresAt }),
    ...(typeof scope === 'string' && { scope }),
    ...(typeof resource === 'string' && { resource }),
    ...(isUser(user) && { user: { name: user.name, email: user.email } }),
  };
}

function isUser(value: unknown): value is SignedInUser {
  return isObject(value) && typeof value.name === 'string' && typeof value.email === 'string';
}
