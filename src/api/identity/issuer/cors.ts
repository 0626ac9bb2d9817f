/**
 * Which pages of other origins may read the issuer's answers: only the /docs pages of both APIs, for signing in. Their
 * requests need no preflight, so none is answered; and they carry no cookie, so they cannot use a browser's session.
 */
import type { IncomingMessage } from 'node:http';
import type { KoaContextWithOIDC } from 'oidc-provider';

export type Cors = ReturnType<typeof createCors>;

const steps = new Set(['/.well-known/openid-configuration', '/device/auth', '/token']);

/** `origins` are those whose pages may sign people in. */
export function createCors(origins: readonly string[]) {
  const allowed = new Set(origins);
  const allows = (origin: string | undefined) => origin !== undefined && allowed.has(origin);
  return {
    allows,
    /** For an answer of our own to a step of the sign-in. */
    headers({ headers: { origin } }: IncomingMessage): Record<string, string> {
      const vary = { Vary: 'Origin' };
      return origin !== undefined && allows(origin)
        ? { ...vary, 'Access-Control-Allow-Origin': origin }
        : vary;
    },
    /** Around the library, which opens discovery, keys and early errors to every page. */
    async middleware(ctx: KoaContextWithOIDC, next: () => Promise<unknown>): Promise<void> {
      await next();
      if (!steps.has(ctx.path) || !allows(ctx.get('Origin'))) ctx.remove('Access-Control-Allow-Origin');
    },
  };
}
