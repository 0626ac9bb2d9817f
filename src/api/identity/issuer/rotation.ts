/**
 * Rotation of refresh tokens: each is good for one use, and its use makes a successor (RFC 9700, 4.14.2). The answer with
 * the successor can be lost, with the connection or with a killed process, and the client then has nothing but the used
 * token. So a successor is derived from its token with the issuer's key: the same token gives the same successor, and
 * nothing that could be stolen has to be stored for that. A used token answers again for `repeatSeconds`, and only while its
 * successor has not been used. After that its use ends the session: the token may be stolen.
 */
import type { KoaContextWithOIDC, default as Provider } from 'oidc-provider';
import { sign } from './cookie.ts';

/** As long as a client may need to get through again: PostgreSQL's standby may take a minute to be promoted. */
export const repeatSeconds = 120;

export type Rotation = ReturnType<typeof createRotation>;

/** The rotation of an issuer. `key` is secret: with it, new tokens can be computed from old ones. */
export function createRotation(key: string, request: () => KoaContextWithOIDC | undefined) {
  return {
    successorOf: (refreshToken: string) => sign(key, 'refresh token', refreshToken),
    /** The refresh token that the request under way uses; undefined when it uses none. */
    current: () => request()?.oidc.entities.RotatedRefreshToken?.jti,
  };
}

/** The library's own, which its types leave out. */
interface MakesIds {
  generateTokenId(): string;
}

/** Lets the library name a successor as `rotation` does; the first token of a session stays random. */
export function nameSuccessors({ RefreshToken }: Provider, { current, successorOf }: Rotation): void {
  const tokens: MakesIds = RefreshToken.prototype as unknown as MakesIds;
  const { generateTokenId } = tokens;
  tokens.generateTokenId = function () {
    const used = current();
    return used === undefined ? generateTokenId.call(this) : successorOf(used);
  };
}
