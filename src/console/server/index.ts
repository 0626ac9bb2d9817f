/**
 * The web console: the pages, and the server that stands behind them for the browser ("backend for the frontend", RFC
 * 10017). Owns the sign-in of a browser, its session, the live stream and the files of the pages. Decides nothing: a
 * page reads and writes through the two APIs, whose applications are handed in and called in this process with the
 * person's own token. The token never reaches the browser, which holds a cookie and nothing else.
 *
 *     GET  /…                       the page, for every address of it; its files in /assets    files.ts
 *     GET  /download, …             the clients that people are offered                        ../clients, handed in
 *     GET  /sign-in, /in            → the issuer → GET /sign-in/callback → the page            sign-in.ts
 *     POST /sign-out                ends the session; answers where the issuer ends its own    sign-in.ts
 *     GET  /session, /sessions      who is signed in, and with which browsers                  index.ts
 *     ANY  /api/business/…, /api/platform/…    the APIs                                        index.ts
 *     GET  /events                  what changed, as it happens                                events.ts
 *
 * The pages themselves are in app, which is built for browsers and imported by nothing here.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { DomainError } from '../../domain/error.ts';
import { sendJson } from '../../lib/response.ts';
import { clientAddress, type TrustedProxies } from '../../lib/source-address.ts';
import type { Store } from '../../store/engine/index.ts';
import { toTime } from '../../store/engine/time.ts';
import {
  deleteConsoleSession,
  deleteOtherConsoleSessions,
  listConsoleSessions,
} from '../../store/people/console-sessions.ts';
import { createEvents, type Events } from './events.ts';
import { type Files, sendFile } from './files.ts';
import { requireOwnPage, sendError, setPageHeaders } from './headers.ts';
import { createIssuerClient, type IssuerClientOptions } from './issuer-client.ts';
import { createSessions, isOver, type Sessions } from './sessions.ts';
import { createSignInRoutes, type SignInOptions } from './sign-in.ts';

export interface ConsoleOptions extends Omit<RoutesOptions, 'issuer' | 'sessions' | 'events'> {
  issuer: Omit<IssuerClientOptions, 'redirectUri' | 'signedOutUri' | 'now'>;
  /** The person whom an Authorization header is; throws `unauthorized`. */
  authenticate(authorization: string): Promise<string>;
}

export interface Console {
  handle: RequestListener;
  stop(): Promise<void>;
}

export function createConsole(options: ConsoleOptions): Console {
  const { url, store, authenticate, log, now } = options;
  const issuer = createIssuerClient({
    ...options.issuer,
    redirectUri: `${url}/sign-in/callback`,
    signedOutUri: `${url}/signed-out`,
    now,
  });
  const secure = url.startsWith('https:');
  const sessions = createSessions({ store, issuer, authenticate, secure, log, now });
  const events = createEvents({ store, sessions, log, now });
  const handle = createRoutes({ ...options, issuer, sessions, events });
  return {
    handle,
    async stop() {
      events.stop();
    },
  };
}

const notHere = /^\/(docs|openapi\.json|healthz|readyz|\.well-known)(\/|$)/;

async function callApi(
  { sessions, apis }: Pick<RoutesOptions, 'sessions' | 'apis'>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  requireOwnPage(request);
  const [, name, path = ''] = /^\/api\/(business|platform)(\/[^?#]*)/.exec(request.url ?? '') ?? [];
  if ((name !== 'business' && name !== 'platform') || notHere.test(path)) {
    throw new DomainError('not_found', 'There is no such address here.');
  }
  const { authorization } = await sessions.of(request);
  // Gone while its tokens were renewed.
  if (request.destroyed && !request.complete) return void response.destroy();
  request.url = (request.url ?? '').slice(`/api/${name}`.length);
  request.headers.authorization = authorization;
  delete request.headers.cookie;
  apis[name](request, response);
}

interface RoutesOptions extends SignInOptions {
  store: Store;
  apis: { business: RequestListener; platform: RequestListener };
  events: Events;
  files: Files;
  downloads: { owns(path: string): boolean; handle: RequestListener };
  proxies: TrustedProxies;
}

/** What holds a stream or leads to the issuer. */
const onlyGet = new Set(['/in', '/sign-in', '/sign-in/callback', '/events']);

function createRoutes(options: RoutesOptions): RequestListener {
  const { sessions, events, downloads, proxies, log } = options;
  const signIn = createSignInRoutes(options);

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = URL.parse(request.url ?? '/', 'http://console.invalid');
    if (!url) throw new DomainError('invalid_request', 'This address cannot be read.');
    const { pathname: path } = url;
    const { method } = request;
    const address = clientAddress(proxies, request);
    setPageHeaders(response);
    if (path.startsWith('/api/')) return callApi(options, request, response);
    if (method === 'POST' && path === '/sign-out') return signIn.signOut(request, response, address);
    if (path === '/session' || path === '/sessions' || path.startsWith('/sessions/')) {
      return answerSession(options, request, response, path);
    }
    if (downloads.owns(path)) return downloads.handle(request, response);
    if (method !== 'GET' && method !== 'HEAD') {
      throw new DomainError('not_found', 'There is no such address here, or it does not take this method.');
    }
    if (method === 'HEAD' && onlyGet.has(path)) {
      // HEAD would begin a sign-in or a stream that no client continues.
      response.writeHead(405, { Allow: 'GET' }).end();
      return;
    }
    if (path === '/sign-in' || path === '/in') return signIn.begin(request, response, url, address);
    if (path === '/sign-in/callback') return signIn.finish(request, response, url, address);
    if (path === '/healthz') return sendJson(response, 200, { status: 'ok' });
    if (path === '/events') {
      requireOwnPage(request);
      return events.open(await sessions.of(request), response);
    }
    return sendFile(options.files, request, response, path);
  }

  return (request, response) => {
    handle(request, response).catch((error: unknown) => {
      if (request.destroyed && !request.complete) return response.destroy();
      const path = (request.url ?? '').split('?')[0] ?? '';
      // The cookie stays: by the time that this answer arrives, it may be that of a newer session.
      if (sendError(response, error)) {
        log.error('console.request.failed', { path, error });
      }
    });
  };
}

/** Answers `GET /session`, `GET /sessions`, `POST /sessions/end-others` and `POST /sessions/ID/end`. */
async function answerSession(
  deps: { store: Store; sessions: Sessions; now(): number },
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
): Promise<void> {
  requireOwnPage(request);
  const { store, sessions, now } = deps;
  const { id, userId } = await sessions.of(request);
  const asked = `${request.method} ${path}`;
  if (asked === 'GET /session') return sendJson(response, 200, { userId });
  if (asked === 'GET /sessions') {
    const open = (await listConsoleSessions(store.read, userId)).filter((one) => !isOver(one, now()));
    const shown = open.map((one) => ({
      id: one.id,
      current: one.id === id,
      address: one.address,
      program: one.program,
      signedInAt: toTime(one.createdAt),
      usedAt: toTime(one.seenAt),
    }));
    return sendJson(response, 200, { sessions: shown });
  }
  if (asked === 'POST /sessions/end-others') {
    const ended = await store.write((tx) => deleteOtherConsoleSessions(tx, userId, id));
    return sendJson(response, 200, { ended });
  }
  const [, other] = /^POST \/sessions\/([\w-]{43})\/end$/.exec(asked) ?? [];
  if (other === undefined) throw new DomainError('not_found', 'There is no such address here.');
  if (!(await store.write((tx) => deleteConsoleSession(tx, other, userId)))) {
    throw new DomainError('not_found', 'You have no such session.');
  }
  sendJson(response, 200, { ended: 1 });
}
