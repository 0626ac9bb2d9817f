/**
 * One HTTP request, on node:http. Not fetch: fetch refuses a body with GET and some ports, decodes bodies
 * that should reach stdout byte for byte, and rewrites headers. Redirects are never followed.
 */
import type { IncomingMessage } from 'node:http';
import { CliError } from '../exit.ts';
import { describeTransport } from './transport-error.ts';

export interface HttpRequest {
  method: string;
  url: URL;
  headers?: readonly (readonly [string, string])[];
  body?: Buffer | undefined;
  /** How long to wait for the response headers, and for each next piece of the body. */
  timeoutMs?: number;
  signal?: AbortSignal | undefined;
}

/** Sends the request and resolves when the response headers are there; the body is the caller's to read. */
export async function send(wanted: HttpRequest): Promise<IncomingMessage> {
  const { method, url, headers = [], body, timeoutMs = 30_000, signal } = wanted;
  // Loading TLS takes as long as starting Node, so only where it is spoken.
  const http = await (url.protocol === 'https:' ? import('node:https') : import('node:http'));
  return new Promise((resolve, reject) => {
    const request = http.request(url, { method, ...(signal && { signal }) });
    const timer = setTimeout(() => request.destroy(slow(url, timeoutMs)), timeoutMs);
    request.on('response', (response) => {
      clearTimeout(timer);
      watchBody(response, () => slow(url, timeoutMs), timeoutMs);
      resolve(response);
    });
    request.on('error', (error) => {
      clearTimeout(timer);
      reject(signal?.aborted ? signal.reason : describeTransport(error, url.origin));
    });
    for (const [name, value] of headers) request.appendHeader(name, value);
    if (body) request.setHeader('Content-Length', body.length);
    request.end(body);
  });
}

/** Ends a body of which nothing arrives any more; a slow reader on this side does not count. */
function watchBody(response: IncomingMessage, error: () => Error, timeoutMs: number): void {
  const { socket } = response;
  let before = socket.bytesRead;
  const timer = setInterval(() => {
    if (socket.bytesRead === before && response.readableLength === 0) response.destroy(error());
    before = socket.bytesRead;
  }, timeoutMs);
  response.once('close', () => clearInterval(timer));
}

function slow({ origin }: URL, timeoutMs: number): CliError {
  return new CliError('unreachable', `${origin} did not answer within ${timeoutMs / 1000} seconds.`);
}

/** The body as text, at most `limit` bytes of it. */
export async function readText(response: IncomingMessage, limit: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  // Leaving the loop early destroys the response, and with it the connection.
  for await (const chunk of response) {
    chunks.push(chunk);
    size += chunk.length;
    if (size >= limit) break;
  }
  return Buffer.concat(chunks).subarray(0, limit).toString('utf8');
}

/** GETs a JSON object of at most 1 MiB; the status is the caller's to judge, `body` is undefined if unreadable. */
export async function getJson(request: Omit<HttpRequest, 'method'>) {
  const accept = ['Accept', 'application/json'] as const;
  const response = await send({ ...request, method: 'GET', headers: [accept, ...(request.headers ?? [])] });
  const text = await readText(response, 1024 * 1024).catch((error: unknown) => {
    throw request.signal?.aborted ? request.signal.reason : describeTransport(error, request.url.origin);
  });
  return { status: response.statusCode ?? 0, body: parseObject(text) };
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Whether a JSON value is an object, not an array or null. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
