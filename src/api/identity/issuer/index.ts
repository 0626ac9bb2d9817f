/**
 * The embedded OpenID issuer, for installations without one: people with an email and a password sign their
 * terminals in by the device flow (RFC 8628).
 *
 * Owns: the OpenID endpoints (oidc-provider behind a list of allowed routes), the pages, the signing keys, the check
 * of passwords. Must not: decide permissions, create accounts, listen (`app.ts` passes requests in), or be needed if
 * `identity.issuer` names another issuer; other folders know it only by its URL and tokens.
 *
 *     POST /device/auth            the terminal gets a device code and a user code       library
 *     GET  /device?user_code=…     the person signs in, then approves                    device/pages.ts
 *     POST /token                  the terminal polls (provider.ts), later refreshes     library
 *     POST /token/revocation       the terminal signs out                                library
 *     GET  /auth                   a browser signs in to the web console                 authorization.ts
 *     GET  /session/end            it signs out                                          authorization.ts
 *     GET  /me                     UserInfo                                              index.ts, library
 *
 * Access tokens are JWTs (RFC 9068) for one audience, both APIs; refresh tokens are opaque, good for one use
 * (adapter.ts), and stored hashed. What must survive a restart is in the store or in the keys (keys.ts);
 * throttling is in memory, on purpose, and in the store where several servers have to count together.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTPayload, jwtVerify } from 'jose';
import { DomainError, invalidState } from '../../../domain/error.ts';
import { type Clock, clockToleranceMs, createClock } from '../../../lib/clock.ts';
import { createLimits, createRateLimiter, type Limits } from '../../../lib/limits.ts';
import type { Logger } from '../../../lib/log.ts';
import { hasHungUp, sendJson } from '../../../lib/response.ts';
import { createTrustedProxies, sourceNetwork, type TrustedProxies } from '../../../lib/source-address.ts';
import type { Reader, Store } from '../../../store/engine/index.ts';
import { type FactorPolicy, relyingPartyOf, SecondFactors } from './account/second-factor.ts';
import { claimsOf, findSignedIn, generationClaim } from './accounts.ts';
import { createBrowsers, createKnownBrowsers } from './browser.ts';
import { consoleAddresses, consoleClientId, type IssuerClient, issuerClients } from './clients.ts';
import { sign } from './cookie.ts';
import { createDevicePages, type DevicePages } from './device/pages.ts';
import { type IssuerKeys, publicKeys } from './keys.ts';
import {
  messagePage,
  mostBodyBytes,
  pinToIssuer,
  redirect,
  remoteAddress,
  sendPage,
  sendUnavailable,
} from './pages.ts';
import { createSignIn } from './sign-in.ts';

export interface IssuerOptions {
  /** The issuer identifier, an origin such as `http://127.0.0.1:8082`. */
  url: string;
  store: Store;
  keys: IssuerKeys;
  audience: string;
  cliClientId: string;
  kubernetesClientId?: string;
  consoleUrl?: string;
  /** The URLs of the APIs that access tokens are for, which a client may name as `resource` (RFC 8707). */
  resources?: readonly string[];
  /** The people who need a second factor; none if absent. */
  secondFactor?: FactorPolicy;
  proxies?: TrustedProxies;
  /** Rate limits for passwords and codes; limits of this process alone if absent. */
  limits?: Limits | undefined;
  log: Logger;
  /** The clock of browser sessions and rate limits. Tokens and codes use the library's `Date.now`. */
  clock?: Clock;
}

export interface Issuer {
  handle(req: IncomingMessage, res: ServerResponse): void;
  readonly jwks: JSONWebKeySet;
  /** Replaces the signing keys. The key that protects cookies stays. */
  useKeys(keys: IssuerKeys): void;
  console: { clientId: string; secret: string };
  /** The secret for setting a password, and the link with it; the same command gets the same ones. */
  passwordLink(userId: string, command: string): { token: string; url: string };
  /** Whether the password has changed since the sign-in that an access token with these claims is from. */
  isSignInOver(userId: string, claims: JWTPayload): Promise<boolean>;
  /** Loads modules that the first request would otherwise wait for. */
  warm(): Promise<void>;
}

/** Makes the issuer, which then takes requests. Throws `invalid_state` for an unusable URL. */
export async function createIssuer(options: IssuerOptions): Promise<Issuer> {
  const { store, log, consoleUrl } = options;
  const url = parseIssuerUrl(options.url);
  let { keys } = options;
  // Issuer and console each derive it, in this process or in another with the same keys: it is neither configured nor sent.
  const consoleSecret = sign(keys.cookie, 'client secret', consoleClientId);
  const web = consoleUrl && { secret: consoleSecret, ...consoleAddresses(consoleUrl) };
  const clients = issuerClients(options.cliClientId, options.kubernetesClientId, web || undefined);
  const openWith = createOpener(options, { url, clients, cookieKey: keys.cookie });
  // Lazy: the library takes a quarter of a second to load, which only sign-ins should wait for.
  let opened: Promise<RequestListener> | undefined;
  const open = () => {
    opened ??= openWith(keys);
    return opened;
  };

  return {
    handle(req, res) {
      open()
        .then(async (handler) => {
          if (await hasHungUp(res)) res.destroy();
          else handler(req, res);
        })
        .catch((error) => {
          log.error('issuer.failed', { error });
          res.destroy();
        });
    },
    get jwks() {
      return publicKeys(keys);
    },
    useKeys(next) {
      keys = { ...next, cookie: keys.cookie };
      opened = undefined;
    },
    console: { clientId: consoleClientId, secret: consoleSecret },
    passwordLink(userId, command) {
      const token = sign(keys.cookie, 'password link', `${userId} ${command}`);
      return { token, url: `${url.origin}/link?token=${token}` };
    },
    async isSignInOver(userId, claims) {
      const account = await findSignedIn(store.read, userId);
      return account !== undefined && account.passwordGeneration !== generationClaim(claims);
    },
    warm: async () => void (await open()),
  };
}

/** Makes the request handler for a set of keys; limits and caches are shared between all sets. */
function createOpener(
  options: IssuerOptions,
  { url, clients, cookieKey }: { url: URL; clients: IssuerClient[]; cookieKey: string },
): (keys: IssuerKeys) => Promise<RequestListener> {
  const { store, audience, log, resources = [] } = options;
  const { clock: { now, uptime } = createClock({}), proxies = createTrustedProxies([]) } = options;
  const secure = url.protocol === 'https:';
  const limits = options.limits ?? createLimits(uptime);
  const ownSecret = (purpose: string) => Buffer.from(sign(cookieKey, 'secret', purpose), 'base64url');
  const factors = new SecondFactors({
    ...{ store, limits, now, policy: options.secondFactor ?? 'none', party: relyingPartyOf(url) },
    secret: ownSecret('second factors'),
  });
  const stepSecret = ownSecret('second steps');
  const browsers = createBrowsers({ store, factors, key: cookieKey, secure, now });
  const knownBrowsers = createKnownBrowsers({ key: cookieKey, secure });
  const signIn = createSignIn(store.read, limits);
  return async (keys) => {
    const { createProvider } = await import('./provider.ts');
    const jwks = publicKeys(keys);
    const shared = { store, clients, limits, log, now, uptime };
    const provider = createProvider({ ...shared, url, keys, audience, resources });
    const pages = { provider, issuer: url, jwks, browsers, knownBrowsers, signIn, factors, stepSecret };
    const devicePages = createDevicePages({ ...shared, ...pages });
    const userInfo = createUserInfo({ reader: store.read, jwks, issuer: url.origin, audience });
    const library = provider.callback();
    return createRequestHandler({ url, proxies, devicePages, userInfo, library, log, uptime });
  };
}

function parseIssuerUrl(text: string): URL {
  const url = URL.parse(text);
  if (url && /^https?:$/.test(url.protocol) && text.replace(/\/$/, '') === url.origin) return url;
  throw invalidState(
    `identity.embedded.url is "${text}"; it must be http(s)://host or http(s)://host:port, without a path.`,
  );
}

/** Routes of the library that are allowed. Any other is answered with 404: the library has pages that we do not want. */
const libraryRoutes = new Set([
  'GET /.well-known/openid-configuration',
  'GET /.well-known/oauth-authorization-server',
  'GET /jwks',
  // No client may use it; the library answers with an error, on our page.
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

function createRequestHandler(options: RequestHandlerOptions): RequestListener {
  const { url: issuer, proxies, devicePages, userInfo, library, log, uptime } = options;
  // Each device code is a write to disk that anyone can trigger.
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

/** Programs call the library's routes, browsers all others. */
function isPage({ method, url = '' }: IncomingMessage): boolean {
  const [path] = url.split('?');
  return path === '/auth' || !libraryRoutes.has(`${method} ${path}`);
}

const notFound = messagePage('There is nothing here', 'The address is not one of the pages of this service.');

type UserInfo = (req: IncomingMessage, res: ServerResponse) => Promise<boolean>;

/**
 * UserInfo (OpenID Connect Core 1.0, section 5.3) for the JWT access tokens of both APIs; oidc-provider answers only
 * for opaque ones. Resolves to false if the library has to answer.
 */
function createUserInfo({
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
