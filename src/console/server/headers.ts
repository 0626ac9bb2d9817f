/** What every answer of the console carries, and what a browser must send to be answered at all. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { errorReply } from '../../api/http/errors.ts';
import { DomainError } from '../../domain/error.ts';
import { sendJson } from '../../lib/response.ts';

/** Files and calls of this origin only; no inline code, no markup made by scripts, in no frame. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const pageHeaders = {
  'Content-Security-Policy': policy,
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Permissions-Policy': 'camera=(), geolocation=(), microphone=(), usb=()',
};

/** The header that only our own pages send: a form or a link on another site cannot. */
const ownHeader = 'x-andromeda-console';

/**
 * Throws `forbidden` for what did not come from one of our pages. A browser says where a request comes from, and no script
 * can change that (Fetch Metadata); one that does not say so is too old.
 */
export function requireOwnPage(request: IncomingMessage): void {
  const { headers } = request;
  if (headers[ownHeader] !== undefined && headers['sec-fetch-site'] === 'same-origin') return;
  throw new DomainError(
    'forbidden',
    'This request did not come from a page of the console. Use a current browser.',
  );
}

export function setPageHeaders(response: ServerResponse): void {
  for (const [name, value] of Object.entries(pageHeaders)) response.setHeader(name, value);
}

export function redirect(response: ServerResponse, location: string, cookies: string[] = []): void {
  response.writeHead(303, {
    Location: location,
    'Cache-Control': 'no-store',
    'Content-Length': 0,
    'Set-Cookie': cookies,
  });
  response.end();
}

/** As the APIs refuse. Returns whether the log should have the error. */
export function sendError(response: ServerResponse, error: unknown): boolean {
  const { status, headers, body, unexpected } = errorReply(error);
  if (response.headersSent) {
    response.destroy();
    return unexpected;
  }
  const { 'Retry-After': later } = headers;
  if (later !== undefined) response.setHeader('Retry-After', later);
  sendJson(response, status, body);
  return unexpected;
}
