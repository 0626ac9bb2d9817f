/**
 * The web console: the pages, and the server that stands behind them for the browser ("backend for the frontend", RFC
 * 10017). Owns the sign-in of a browser, its session, the live stream and the files of the pages. Decides nothing: a
 * page reads and writes through the two APIs, whose applications are handed in and called in this process with the
 * person's own token. The token never reaches the browser, which holds a cookie and nothing else.
 *
 *     GET  /…                       the page, for every address of it; its files in /assets    assets.ts, kept-files.ts
 *     GET  /download, …             the clients that people are offered                        ../clients, handed in
 *     GET  /sign-in                 → the issuer → GET /sign-in/callback → the page            sign-in.ts
 *     POST /sign-out                ends the session; answers where the issuer ends its own    sign-in.ts
 *     GET  /session, /sessions      who is signed in, and with which browsers                  session-routes.ts
 *     ANY  /api/business/…, /api/platform/…    the APIs                                        routes.ts
 *     GET  /events                  what changed, as it happens                                events.ts
 *
 * The pages themselves are in app, which is built for browsers and imported by nothing here.
 */
import type { RequestListener } from 'node:http';
import type { Logger } from '../../lib/log.ts';
import type { ConsoleFile } from '../../lib/packaging.ts';
import type { TrustedProxies } from '../../lib/source-address.ts';
import type { Store } from '../../store/engine/index.ts';
import { createEvents } from './events.ts';
import { createIssuerClient, type IssuerClientOptions } from './issuer-client.ts';
import type { KeptFiles } from './kept-files.ts';
import { createRoutes } from './routes.ts';
import { createSessions } from './sessions.ts';

export interface ConsoleOptions {
  /** What browsers call it by: an origin. */
  url: string;
  store: Store;
  /** The two APIs, as their own listeners have them. */
  apis: { business: RequestListener; platform: RequestListener };
  issuer: Omit<IssuerClientOptions, 'redirectUri' | 'signedOutUri'>;
  /** The person whom an Authorization header is; throws `unauthorized`. */
  authenticate(authorization: string): Promise<string>;
  /** What browsers load. */
  files(): Promise<ReadonlyMap<string, ConsoleFile>>;
  /** The files of other servers' pages; undefined where there can be none. */
  keptFiles: KeptFiles | undefined;
  /** The clients that people are offered: which addresses, and what answers. */
  downloads: { owns(path: string): boolean; handle: RequestListener };
  proxies: TrustedProxies;
  /** What servers share that take back a browser which another of them sent to the issuer. */
  consoleSecret?: Buffer | undefined;
  log: Logger;
  now(): number;
  uptime(): number;
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
  const sessions = createSessions({
    store,
    issuer,
    authenticate,
    secure: url.startsWith('https:'),
    log,
    now,
  });
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
