/**
 * The web console: its pages, and their server ("backend for the frontend", RFC 10017). The server owns the sign-in of a
 * browser, its session, the live stream and the files of the pages. It authorizes nothing: a page reads and writes through
 * the two APIs, whose applications are passed in and called in this process with the person's own token. The token never
 * reaches the browser, which holds only a cookie.
 *
 *     GET  /…                       the page, at each of its addresses; its files in /assets   files.ts
 *     GET  /download, …             the client programs that people download                   ../clients, passed in
 *     GET  /sign-in, /in            → the issuer → GET /sign-in/callback → the page            sign-in.ts
 *     POST /sign-out                ends the session; answers with the issuer's sign-out page  sign-in.ts
 *     GET  /session, /sessions      the person, and the browsers they are signed in with       index.ts
 *     ANY  /api/business/…, /api/platform/…    the APIs                                        index.ts
 *     GET  /events                  changes, as they happen                                    events.ts
 *
 * The pages are in app, which is built for browsers; no file of the server imports it.
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
import { createSignInRoutes, type SignInOptions, signOut } from './sign-in.ts';

export interface ConsoleOptions extends Omit<RoutesOptions, 'issuer' | 'sessions' | 'events'> {
  issuer: Omit<IssuerClientOptions, 'redirectUri' | 'signedOutUri' | 'now'>;
  /** Resolves to the ID of the person whose token an Authorization header carries. Throws `unauthorized`. */
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
  // The client disconnected while the tokens were renewed.
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
    if (method === 'POST' && path === '/sign-out') return signOut(options, request, response, address);
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
      // The cookie is kept: by the time this answer arrives, the browser may have that of a newer session.
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
