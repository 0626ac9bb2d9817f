/**
 * The web console: the pages, and the server that stands behind them for the browser ("backend for the frontend", RFC
 * 10017). Owns the sign-in of a browser, its session, the live stream and the files of the pages. Decides nothing: a
 * page reads and writes through the two APIs, whose applications are handed in and called in this process with the
 * person's own token. The token never reaches the browser, which holds a cookie and nothing else.
 *
 *     GET  /…                       the page, for every address of it; its files in /assets    assets.ts, kept-files.ts
 *     GET  /download, …             the clients that people are offered                        ../clients, handed in
 *     GET  /sign-in, /in            → the issuer → GET /sign-in/callback → the page            sign-in.ts
 *     POST /sign-out                ends the session; answers where the issuer ends its own    sign-in.ts
 *     GET  /session, /sessions      who is signed in, and with which browsers                  session-routes.ts
 *     ANY  /api/business/…, /api/platform/…    the APIs                                        routes.ts
 *     GET  /events                  what changed, as it happens                                events.ts
 *
 * The pages themselves are in app, which is built for browsers and imported by nothing here.
 */
import type { RequestListener } from 'node:http';
import { createEvents } from './events.ts';
import { createIssuerClient, type IssuerClientOptions } from './issuer-client.ts';
import { createRoutes, type RoutesOptions } from './routes.ts';
import { createSessions } from './sessions.ts';

export interface ConsoleOptions extends Omit<RoutesOptions, 'issuer' | 'sessions' | 'events'> {
  issuer: Omit<IssuerClientOptions, 'redirectUri' | 'signedOutUri'>;
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
  });
  const secure = url.startsWith('https:');
  const sessions = createSessions({ store, issuer, authenticate, secure, log, now });
  const events = createEvents({ store, sessions, log, now });
  const handle = createRoutes({ ...options, issuer, sessions, events });
  return {
    handle,
    async stop() {
      events.stop();
      sessions.stop();
    },
  };
}
