/** A request to one of our pages, and what the pages have in common. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Browser } from './browser.ts';
import type { KnownBrowser } from './known-browser.ts';

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
