/**
 * UserInfo (OpenID Connect Core 1.0, section 5.3) for the JWT access tokens of both APIs: oidc-provider answers there
 * only for opaque ones.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createLocalJWKSet, errors, type JSONWebKeySet, jwtVerify } from 'jose';
import { sendJson } from '../../../lib/send-json.ts';
import type { Reader } from '../../../store/engine/index.ts';
import { clockToleranceMs } from '../token.ts';
import { claimsOf, findSignedIn, generationClaim } from './accounts.ts';

export type UserInfo = (req: IncomingMessage, res: ServerResponse) => Promise<boolean>;

/** Answers requests that bring a JWT of ours; resolves to false where the library has to. */
export function createUserInfo({
  reader,
  jwks,
  issuer,
  audience,
}: {
  reader: Reader;
  jwks: JSONWebKeySet;
  issuer: string;
  audience: string;
}): UserInfo {
  const keys = createLocalJWKSet(jwks);
  return async (req, res) => {
    const [, token] = /^bearer ([\w-]+\.[\w-]+\.[\w-]+)$/i.exec(req.headers.authorization ?? '') ?? [];
    if (token === undefined) return false;
    const clockTolerance = clockToleranceMs / 1000;
    const expected = { issuer, audience, typ: 'at+jwt', clockTolerance };
    const claims = await jwtVerify(token, keys, expected).then(
      ({ payload }) => payload,
      (error) => {
        if (error instanceof errors.JOSEError) return undefined;
        throw error;
      },
    );
    const account = claims?.sub && (await findSignedIn(reader, claims.sub, generationClaim(claims)));
    if (account) sendJson(res, 200, claimsOf(account));
    else {
      const error = { error: 'invalid_token', error_description: 'the access token is invalid or expired' };
      sendJson(res, 401, error, { 'WWW-Authenticate': 'Bearer error="invalid_token"' });
    }
    return true;
  };
}
