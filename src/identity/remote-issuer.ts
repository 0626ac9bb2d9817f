/** An issuer elsewhere (`identity.issuer`): its keys and its userinfo endpoint (OpenID Connect Discovery 1.0). */
import { createRemoteJWKSet, type JWTVerifyGetKey } from 'jose';
import { DomainError } from '../domain/error.ts';

interface Metadata {
  issuer: string;
  jwks_uri: string;
  userinfo_endpoint?: string;
}

export interface RemoteIssuer {
  keys: JWTVerifyGetKey;
  userinfo(token: string): Promise<Record<string, unknown>>;
}

const timeoutMs = 5_000;

/**
 * The issuer at `url`. Nothing is fetched until something is needed; the keys are kept, and fetched again for a key
 * ID they do not have, at most twice a minute. Both throw `integration_unavailable` when the issuer is down.
 */
export function createRemoteIssuer(url: string): RemoteIssuer {
  let metadata: Promise<Metadata> | undefined;
  let keySet: JWTVerifyGetKey | undefined;

  function discover(): Promise<Metadata> {
    metadata ??= fetchMetadata(url).catch((error: unknown) => {
      metadata = undefined;
      throw error;
    });
    return metadata;
  }

  return {
    async keys(header, token) {
      keySet ??= createRemoteJWKSet(new URL((await discover()).jwks_uri), {
        timeoutDuration: timeoutMs,
        cooldownDuration: 30_000,
      });
      return keySet(header, token);
    },
    async userinfo(token) {
      const { userinfo_endpoint } = await discover();
      if (userinfo_endpoint === undefined) return {};
      return fetchJson(userinfo_endpoint, { authorization: `Bearer ${token}` });
    },
  };
}

async function fetchMetadata(url: string): Promise<Metadata> {
  const body = await fetchJson(`${url.replace(/\/$/, '')}/.well-known/openid-configuration`, {});
  if (body['issuer'] !== url || typeof body['jwks_uri'] !== 'string') {
    throw new DomainError('integration_unavailable', `The issuer ${url} describes itself as another one.`);
  }
  return body as unknown as Metadata;
}

async function fetchJson(url: string, headers: Record<string, string>): Promise<Record<string, unknown>> {
  try {
    const response = await fetch(url, {
      headers,
      redirect: 'error',
      signal: AbortSignal.timeout(timeoutMs),
    });
    if (!response.ok) throw new Error(`status ${response.status}`);
    return (await response.json()) as Record<string, unknown>;
  } catch (error) {
    throw new DomainError(
      'integration_unavailable',
      'The identity provider cannot be reached at the moment.',
      {
        cause: error,
      },
    );
  }
}
