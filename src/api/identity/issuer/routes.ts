/** Which request goes where. What is not listed does not exist: the library has pages that we do not want. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { createLocalJWKSet, errors, type JSONWebKeySet, jwtVerify } from 'jose';
import { DomainError } from '../../../domain/error.ts';
import { clockToleranceMs } from '../../../lib/clock.ts';
import { createRateLimiter } from '../../../lib/limits.ts';
import type { Logger } from '../../../lib/log.ts';
import { sendJson } from '../../../lib/response.ts';
import { sourceNetwork, type TrustedProxies } from '../../../lib/source-address.ts';
import type { Reader } from '../../../store/engine/index.ts';
import { claimsOf, findSignedIn, generationClaim } from './accounts.ts';
import type { DevicePages } from './device/pages.ts';
import {
  messagePage,
  mostBodyBytes,
  pinToIssuer,
  redirect,
  remoteAddress,
  sendPage,
  sendUnavailable,
} from './pages.ts';

const libraryRoutes = new Set([
  'GET /.well-known/openid-configuration',
  'GET /.well-known/oauth-authorization-server',
  'GET /jwks',
  // No client may use it; the library answers so, on our page.
  'GET /auth',
  'POST /device/auth',
  'POST /token',
  'POST /token/revocation',
  'GET /me',
  'POST /me',
]);

interface RequestHandlerOptions {
  url: URL;
  proxies: TrustedProxies;
  devicePages: DevicePages;
  userInfo: UserInfo;
  library: RequestListener;
  log: Logger;
  uptime: () => number;
}

export function createRequestHandler(options: RequestHandlerOptions): RequestListener {
  const { url: issuer, proxies, devicePages, userInfo, library, log, uptime } = options;
  // Every device code is a write to disk that anybody can ask for.
  const deviceCodes = createRateLimiter({ burst: 60, everyMs: 1000 }, uptime);
  const allDeviceCodes = createRateLimiter({ burst: 3000, everyMs: 20 }, uptime);
  const mayStartDevice = (source: string) => {
    if (deviceCodes.waitMs(source) > 0 || allDeviceCodes.waitMs('') > 0) return false;
    deviceCodes.use(source);
    allDeviceCodes.use('');
    return true;
  };

  async function handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
    pinToIssuer(req, issuer, proxies);
    const url = URL.parse(req.url ?? '/', issuer.origin);
    if (!url || url.origin !== issuer.origin) return sendPage(res, 400, notFound);
    if (Number(req.headers['content-length'] ?? 0) > mostBodyBytes) {
      const error = { error: 'invalid_request', error_description: 'the request body is too large' };
      return sendJson(res, 413, error, { Connection: 'close' });
    }
    if ((url.pathname === '/' || url.pathname === '/device/') && req.method === 'GET') {
      return redirect(res, '/device');
    }
    if (await devicePages(req, res, url)) return;
    if (url.pathname === '/me' && (await userInfo(req, res))) return;
    if (!libraryRoutes.has(`${req.method === 'HEAD' ? 'GET' : req.method} ${url.pathname}`)) {
      return sendPage(res, 404, notFound);
    }
    if (url.pathname === '/device/auth' && !mayStartDevice(sourceNetwork(remoteAddress(req)))) {
      const error_description = 'too many sign-ins were started from here; wait a minute';
      const error = { error: 'temporarily_unavailable', error_description };
      return sendJson(res, 429, error, { 'Retry-After': '60' });
    }
    res.setHeader('X-Content-Type-Options', 'nosniff');
    res.setHeader('Referrer-Policy', 'no-referrer');
    library(req, res);
  }

  return (req, res) => {
    handle(req, res).catch((error) => answerFault(req, res, error, log));
  };
}

function answerFault(req: IncomingMessage, res: ServerResponse, error: unknown, log: Logger): void {
  const hasHungUp = req.destroyed && !req.complete;
  if (!hasHungUp) log.error('issuer.request.failed', { error });
  if (hasHungUp || res.headersSent) {
    res.destroy();
  } else if (error instanceof DomainError && error.code === 'service_unavailable') {
    sendUnavailable(res, error.message, isPage(req) ? 'page' : 'json');
  } else {
    const message = 'This is our fault, and it is in the log. Try again in a moment.';
    sendPage(res, 500, messagePage('Something went wrong', message));
  }
}

/** Programs ask for the library's routes, and people with a browser for all others. */
function isPage({ method, url = '' }: IncomingMessage): boolean {
  const [path] = url.split('?');
  return path === '/auth' || !libraryRoutes.has(`${method} ${path}`);
}

const notFound = messagePage('There is nothing here', 'The address is not one of the pages of this service.');

type UserInfo = (req: IncomingMessage, res: ServerResponse) => Promise<boolean>;

/**
 * UserInfo (OpenID Connect Core 1.0, section 5.3) for the JWT access tokens of both APIs: oidc-provider answers there
 * only for opaque ones. Resolves to false where the library has to answer.
 */
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
