/** Which request goes where. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { DomainError } from '../../domain/error.ts';
import { sendJson } from '../../lib/send-json.ts';
import { clientAddress, type TrustedProxies } from '../../lib/source-address.ts';
import type { Store } from '../../store/engine/index.ts';
import { type Files, sendFile } from './assets.ts';
import type { Events } from './events.ts';
import { requireOwnPage, sendError, setPageHeaders } from './headers.ts';
import type { KeptFiles } from './kept-files.ts';
import { answerSession } from './session-routes.ts';
import { createSignInRoutes, type SignInOptions } from './sign-in.ts';

/** Pages and facts of the API's own listener, which are no operations. */
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

export interface RoutesOptions extends SignInOptions {
  store: Store;
  /** The two APIs, as their own listeners have them. */
  apis: { business: RequestListener; platform: RequestListener };
  events: Events;
  /** What browsers load. */
  files: Files;
  /** The files of other servers' pages; undefined where there can be none. */
  keptFiles: KeptFiles | undefined;
  /** The clients that people are offered: which addresses, and what answers. */
  downloads: { owns(path: string): boolean; handle: RequestListener };
  proxies: TrustedProxies;
}

/** What holds a stream or leads to the issuer. */
const onlyGet = new Set(['/in', '/sign-in', '/sign-in/callback', '/events']);

export function createRoutes(options: RoutesOptions): RequestListener {
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
    return sendFile(options, request, response, path);
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
