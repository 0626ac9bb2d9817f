/** Answers of our own pages: every one with the same headers. */
import type { ServerResponse } from 'node:http';
import { styleHash } from '../../../lib/pages/style.ts';
import { sendJson } from '../../../lib/send-json.ts';
import { messagePage } from './pages.ts';

/** No script (but for passkeys), no frame, nothing from other origins, forms to this origin only; no caching, no referrer. */
export const pageHeaders = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': `default-src 'none'; style-src '${styleHash}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
  'Cache-Control': 'no-store',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
};

export function sendPage(
  res: ServerResponse,
  status: number,
  page: string,
  headers: Record<string, string> = {},
): void {
  res.writeHead(status, { ...pageHeaders, ...headers, 'Content-Length': Buffer.byteLength(page) });
  res.end(page);
}

/** When programs retry, in seconds. */
export const retryHeaders = { 'Retry-After': '1' };

/** Answers 503: the service cannot answer at the moment, through no fault of the caller. */
export function sendUnavailable(res: ServerResponse, message: string, as: 'page' | 'json'): void {
  const error = { error: 'temporarily_unavailable', error_description: message };
  if (as === 'json') sendJson(res, 503, error, retryHeaders);
  else sendPage(res, 503, messagePage('Try again in a moment', message), retryHeaders);
}

/** To another page of ours, with GET. `location` is a path. */
export function redirect(
  res: ServerResponse,
  location: string,
  headers: Record<string, string | string[]> = {},
): void {
  const { 'Content-Type': _none, ...rest } = pageHeaders;
  res.writeHead(303, { ...rest, ...headers, Location: location, 'Content-Length': 0 });
  res.end();
}
