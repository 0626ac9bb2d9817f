/** Which request goes where. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { DomainError } from '../domain/error.ts';
import type { Logger } from '../lib/log.ts';
import { createRateLimit } from '../lib/rate-limit.ts';
import { clientAddress, sourceNetwork, type TrustedProxies } from '../lib/source-address.ts';
import type { Store } from '../store/index.ts';
import { callApi } from './api-calls.ts';
import { type Files, sendFile } from './assets.ts';
import type { Events } from './events.ts';
import { requireOwnPage, sendError, sendJson, setPageHeaders } from './headers.ts';
import type { IssuerClient } from './issuer-client.ts';
import { answerSession } from './session-routes.ts';
import type { Sessions } from './sessions.ts';
import { createSignInRoutes } from './sign-in.ts';

export interface RoutesOptions {
  url: string;
  store: Store;
  apis: { business: RequestListener; platform: RequestListener };
  issuer: IssuerClient;
  sessions: Sessions;
  events: Events;
  files: Files;
  proxies: TrustedProxies;
  log: Logger;
  now(): number;
}

export function createRoutes(options: RoutesOptions): RequestListener {
  const { apis, sessions, events, files, proxies, log, now } = options;
  const signIn = createSignInRoutes(options);
  // Each asks the issuer something.
  const signIns = createRateLimit({ burst: 60, everyMs: 1000 }, now);

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = URL.parse(request.url ?? '/', 'http://console.invalid');
    if (!url) throw new DomainError('invalid_request', 'This address cannot be read.');
    const { pathname: path } = url;
    const { method } = request;
    const address = clientAddress(proxies, request);
    if (path.startsWith('/api/')) return callApi({ sessions, apis }, request, response);
    setPageHeaders(response);
    if (path.startsWith('/sign-in')) {
      const source = sourceNetwork(address);
      if (signIns.waitMs(source) > 0) {
        response.setHeader('Retry-After', '60');
        throw new DomainError('service_unavailable', 'Too many sign-ins from this address. Wait a minute.');
      }
      signIns.use(source);
    }
    if (method === 'POST' && path === '/sign-out') return signIn.signOut(request, response, address);
    if (path === '/session' || path === '/sessions' || path.startsWith('/sessions/')) {
      return answerSession(options, request, response, path);
    }
    if (method !== 'GET' && method !== 'HEAD') {
      throw new DomainError('not_found', 'There is no such address here, or it does not take this method.');
    }
    if (path === '/sign-in') return signIn.begin(response, url);
    if (path === '/sign-in/callback') return signIn.finish(request, response, url, address);
    if (path === '/healthz') return sendJson(response, 200, { status: 'ok' });
    if (path === '/events') {
      requireOwnPage(request);
      return events.open(await sessions.of(request), response);
    }
    return sendFile(files, request, response, path);
  }

  return (request, response) => {
    handle(request, response).catch((error: unknown) => {
      if (request.destroyed && !request.complete) return response.destroy();
      const isOver = error instanceof DomainError && error.code === 'unauthorized';
      const path = (request.url ?? '').split('?')[0] ?? '';
      if (sendError(response, error, isOver ? [sessions.removal()] : [])) {
        log.error('console.request.failed', { path, error });
      }
    });
  };
}
