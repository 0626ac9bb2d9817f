/** Headers of the console's responses, and the headers that it requires of a request from a page. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { errorReply } from '../../api/http/errors.ts';
import { DomainError } from '../../domain/error.ts';
import { sendJson } from '../../lib/response.ts';

/** Allows files and calls of this origin only: no inline code, no markup made by scripts, no frame around a page. */
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

/** Only our own pages send this header: a form or a link on another site cannot. */
const ownHeader = 'x-andromeda-console';

/**
 * Throws `forbidden` for a request that no page of ours sent. Browsers send the site that a request comes from, and no
 * script can change that (Fetch Metadata); browsers that do not send it are too old.
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

/** Answers as the APIs do. Returns whether to log the error. */
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
