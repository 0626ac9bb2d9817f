/** Requests to our own pages, and answers of them, every one with the same headers. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { KoaContextWithOIDC } from 'oidc-provider';
import { styleHash } from '../../../lib/pages.ts';
import { sendJson } from '../../../lib/response.ts';
import { clientAddress, type TrustedProxies } from '../../../lib/source-address.ts';
import { messagePage } from './pages.ts';

/** No script (but for passkeys), no frame, nothing from other origins, forms to this origin only; no caching, no referrer. */
export const pageHeaders = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': `default-src 'none'; style-src '${styleHash}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
  'Cache-Control': 'no-store',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
};

export function sendPage(
  res: ServerResponse,
  status: number,
  page: string,
  headers: Record<string, string> = {},
): void {
  res.writeHead(status, { ...pageHeaders, ...headers, 'Content-Length': Buffer.byteLength(page) });
  res.end(page);
}

export const retryHeaders = { 'Retry-After': '1' };

/** Answers 503: the service cannot answer at the moment, through no fault of the caller. */
export function sendUnavailable(res: ServerResponse, message: string, as: 'page' | 'json'): void {
  const error = { error: 'temporarily_unavailable', error_description: message };
  if (as === 'json') sendJson(res, 503, error, retryHeaders);
  else sendPage(res, 503, messagePage('Try again in a moment', message), retryHeaders);
}

/** To another page of ours, with GET. `location` is a path. */
export function redirect(
  res: ServerResponse,
  location: string,
  headers: Record<string, string | string[]> = {},
): void {
  const { 'Content-Type': _none, ...rest } = pageHeaders;
  res.writeHead(303, { ...rest, ...headers, Location: location, 'Content-Length': 0 });
  res.end();
}

export const mostBodyBytes = 16 * 1024;

const addresses = new WeakMap<IncomingMessage, string>();

/** The address that a request came from, as it was when `pinToIssuer` saw it. */
export function remoteAddress(req: IncomingMessage): string {
  return addresses.get(req) ?? '';
}

/**
 * Makes a request look as if it came straight to the issuer's own URL, whatever the caller or a proxy wrote: the
 * library builds every address that it hands out from these headers.
 */
export function pinToIssuer(req: IncomingMessage, issuer: URL, proxies: TrustedProxies): void {
  addresses.set(req, clientAddress(proxies, req));
  req.headers.host = issuer.host;
  delete req.headers['x-forwarded-for'];
  delete req.headers.forwarded;
  delete req.headers['x-forwarded-host'];
  // Read only when the library is configured for a proxy that does TLS (`provider.proxy`).
  req.headers['x-forwarded-proto'] = issuer.protocol.replace(':', '');
}

/** The fields of a posted form, or undefined when it is no form or larger than `mostBodyBytes`. */
export async function readForm(req: IncomingMessage): Promise<URLSearchParams | undefined> {
  const type = req.headers['content-type'] ?? '';
  if (!/^application\/x-www-form-urlencoded\s*(;|$)/i.test(type)) return undefined;
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of req) {
    size += chunk.length;
    if (size > mostBodyBytes) return undefined;
    chunks.push(chunk);
  }
  return new URLSearchParams(Buffer.concat(chunks).toString('utf8'));
}

export type Cors = ReturnType<typeof createCors>;

const steps = new Set(['/.well-known/openid-configuration', '/device/auth', '/token']);

/**
 * Which pages of other origins may read the issuer's answers: only the /docs pages of both APIs, for signing in. Their
 * requests need no preflight, so none is answered; and they carry no cookie, so they cannot use a browser's session.
 */
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
