/** A request to one of the issuer's pages, and the context that its pages share. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { JSONWebKeySet } from 'jose';
import type { default as Provider } from 'oidc-provider';
import type { Limits } from '../../../lib/limits.ts';
import type { Logger } from '../../../lib/log.ts';
import type { Store } from '../../../store/engine/index.ts';
import type { SecondFactors } from './account/second-factor.ts';
import type { Browser, Browsers, KnownBrowser, KnownBrowsers } from './browser.ts';
import type { IssuerClient } from './clients.ts';
import type { SignIn } from './sign-in.ts';

export interface PagesContext {
  store: Store;
  provider: Provider;
  clients: readonly IssuerClient[];
  issuer: URL;
  jwks: JSONWebKeySet;
  browsers: Browsers;
  knownBrowsers: KnownBrowsers;
  signIn: SignIn;
  factors: SecondFactors;
  stepSecret: Buffer;
  limits: Limits;
  log: Logger;
  now: () => number;
  uptime: () => number;
}

export interface Exchange {
  req: IncomingMessage;
  res: ServerResponse;
  url: URL;
  browser: Browser;
  known: KnownBrowser | undefined;
  address: string;
}

export function plural(count: number, unit: string): string {
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
}
