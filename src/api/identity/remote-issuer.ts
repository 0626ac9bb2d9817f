/** An external issuer (`identity.issuer`): its keys and its userinfo endpoint (OpenID Connect Discovery 1.0). */
import { setTimeout as sleep } from 'node:timers/promises';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { createRemoteJWKSet, errors, type JWTVerifyGetKey } from 'jose';
import { DomainError, SignInRefusal } from '../../domain/error.ts';
import { cutText } from '../../domain/text.ts';
import { isSafeUrl } from '../../lib/source-address.ts';

interface Metadata {
  issuer: string;
  jwks_uri: string;
  userinfo_endpoint?: string;
  scopes_supported?: unknown;
}

export interface RemoteIssuer {
  keys: JWTVerifyGetKey;
  userinfo(token: string, subject: string): Promise<Record<string, unknown>>;
  offersOffline(): Promise<boolean>;
  /** Fetches the issuer's metadata at the start, so that a configuration error is logged before the first sign-in. */
  warm(): Promise<void>;
}

const timeoutMs = 5_000;

let usualAuthorities: string[] | undefined;

/** Makes this process trust the issuer's certificate authority (PEM), in place of the former one; as NODE_EXTRA_CA_CERTS does. */
export function trustAuthority(ca: string | undefined): void {
  if (ca === undefined && usualAuthorities === undefined) return;
  usualAuthorities ??= getCACertificates('default');
  setDefaultCACertificates(ca === undefined ? usualAuthorities : [...usualAuthorities, ca]);
}

/**
 * The issuer at `url`. Nothing is fetched before the first use; keys are cached for ten minutes, and fetched again
 * for an unknown key ID. Both functions throw `integration_unavailable` if the issuer is down.
 */
export function createRemoteIssuer(url: string): RemoteIssuer {
  let metadata: Promise<Metadata> | undefined;
  let cached: ReturnType<typeof createRemoteJWKSet> | undefined;

  function discover(): Promise<Metadata> {
    metadata ??= fetchMetadata(url).catch((error: unknown) => {
      metadata = undefined;
      throw error;
    });
    return metadata;
  }

  const keySet = createSharedFetch(async () => {
    // The shared fetch decides when to fetch, not jose: within jose's own cool-down, a new key would be refused.
    const cooldownDuration = Number.POSITIVE_INFINITY;
    const { jwks_uri } = await discover();
    cached ??= createRemoteJWKSet(requireSafe(jwks_uri), { timeoutDuration: timeoutMs, cooldownDuration });
    await cached.reload();
    return cached;
  });

  return {
    async keys(header, token) {
      const known = cached?.fresh ? cached : await keySet.current();
      try {
        return await known(header, token);
      } catch (error) {
        if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
        return (await keySet.next())(header, token);
      }
    },
    warm: async () => void (await discover()),
    offersOffline: async () => [(await discover()).scopes_supported].flat().includes('offline_access'),
    async userinfo(token, subject) {
      const { userinfo_endpoint } = await discover();
      if (userinfo_endpoint === undefined) return {};
      const claims = await fetchJson(userinfo_endpoint, { authorization: `Bearer ${token}` });
      // Claims about another subject must not be used (OpenID Connect Core 1.0, 5.3.2).
      return claims?.['sub'] === subject ? claims : {};
    },
  };
}

/** The least time between two fetches, regardless of how many tokens with unknown key IDs arrive. */
const fetchEveryMs = 1_000;

interface SharedFetch<T> {
  /** The result of the current fetch, or of the next if none is running. */
  current(): Promise<T>;
  /** The result of a fetch that begins after this call. */
  next(): Promise<T>;
}

/** A fetch that concurrent callers share, begun at most once per `fetchEveryMs`. */
function createSharedFetch<T>(fetchOnce: () => Promise<T>): SharedFetch<T> {
  let running: Promise<T> | undefined;
  let waiting: Promise<T> | undefined;
  let startedAt = Number.NEGATIVE_INFINITY;
  async function begin(): Promise<T> {
    await sleep(Math.max(0, startedAt + fetchEveryMs - performance.now()));
    startedAt = performance.now();
    waiting = undefined;
    const mine = fetchOnce().finally(() => {
      if (running === mine) running = undefined;
    });
    running = mine;
    return mine;
  }
  function next(): Promise<T> {
    waiting ??= begin();
    return waiting;
  }
  return { next, current: () => running ?? next() };
}

async function fetchMetadata(url: string): Promise<Metadata> {
  const body = await fetchJson(`${url.replace(/\/$/, '')}/.well-known/openid-configuration`, {});
  if (body['issuer'] !== url || typeof body['jwks_uri'] !== 'string') {
    const found = cutText(String(body['issuer']), 200);
    throw new DomainError(
      'integration_unavailable',
      `The issuer at ${url} says that it is ${found}. identity.issuer has to be the same, to the letter.`,
    );
  }
  return body as unknown as Metadata;
}

/** Throws `integration_unavailable` for a URL over which keys or tokens would cross a network unencrypted. */
function requireSafe(url: string): URL {
  const parsed = new URL(url);
  if (isSafeUrl(parsed)) return parsed;
  throw new DomainError(
    'integration_unavailable',
    `The identity provider names ${url}, which is plain http.`,
  );
}

/** Throws `unauthorized` if the issuer rejects the token that was sent, else `integration_unavailable`. */
async function fetchJson(url: string, headers: Record<string, string>): Promise<Record<string, unknown>> {
  try {
    const response = await fetch(requireSafe(url), {
      headers,
      redirect: 'error',
      signal: AbortSignal.timeout(timeoutMs),
    });
    const refused = 'authorization' in headers ? refusals[response.status] : undefined;
    if (refused) throw new SignInRefusal(...refused);
    if (!response.ok) throw new Error(`status ${response.status}`);
    return (await response.json()) as Record<string, unknown>;
  } catch (error) {
    if (error instanceof DomainError) throw error;
    const message = 'The identity provider cannot be reached at the moment.';
    throw new DomainError('integration_unavailable', message, { cause: error });
  }
}

/** The meaning of userinfo's status for the token (RFC 6750, 3.1). */
const refusals: Record<number, ConstructorParameters<typeof SignInRefusal> | undefined> = {
  // The issuer has ended the sign-in; or it is Microsoft Entra ID, whose userinfo is another service and rejects every token of ours.
  401: [
    'no_address',
    'The access token has no verified email address, and userinfo of the identity provider does not take it. Ask your operator to set `identity.trustEmail`, or sign in again.',
  ],
  403: [
    'scope',
    'The identity provider gives no email address for this access token: a scope is missing. Sign in again.',
  ],
};
