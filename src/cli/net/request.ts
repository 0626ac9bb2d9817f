/**
 * One HTTP request, by node:http. Not fetch: it refuses a body with GET and some ports, decodes bodies that must reach stdout
 * byte for byte, and rewrites headers. Redirects are never followed.
 */
import type { IncomingMessage } from 'node:http';
import { CliError } from '../exit.ts';

const reasons: Record<string, string> = {
  ECONNREFUSED: 'the connection was refused',
  EPIPE: 'the connection was closed before the whole request was sent',
  ECONNRESET: 'the connection was closed before the whole answer came',
  UND_ERR_SOCKET: 'the connection was closed before the whole answer came',
  ENOTFOUND: 'the host name is not known',
  EAI_AGAIN: 'the host name could not be looked up',
  ETIMEDOUT: 'the connection timed out',
  EHOSTUNREACH: 'there is no route to the host',
  ENETUNREACH: 'the network is unreachable',
  EPROTO: 'it does not speak TLS as expected',
  ERR_SSL_WRONG_VERSION_NUMBER: 'it does not speak TLS',
  CERT_HAS_EXPIRED: 'its TLS certificate has expired',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its TLS certificate is for another name',
  DEPTH_ZERO_SELF_SIGNED_CERT:
    'its TLS certificate is signed by itself; NODE_EXTRA_CA_CERTS names one to trust',
  SELF_SIGNED_CERT_IN_CHAIN: 'its TLS authority is not trusted here; NODE_EXTRA_CA_CERTS names one to trust',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    'its TLS authority is not known here; NODE_EXTRA_CA_CERTS names one to trust',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    'its TLS authority is not known here; NODE_EXTRA_CA_CERTS names one to trust',
};

/** Converts an error of a connection to `origin` to one sentence; returns a `CliError` unchanged. */
export function describeTransport(error: unknown, origin: string): CliError {
  if (error instanceof CliError) return error;
  const code = codeOf(error) ?? '';
  const reason = reasons[code] ?? (code.startsWith('HPE_') ? 'it does not speak HTTP' : messageOf(error));
  return new CliError('unreachable', `Could not reach ${origin}: ${reason}.`, { cause: error });
}

/** The system's code of an error, also searched in its causes, where fetch hides it. */
export function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  if ('code' in error && typeof error.code === 'string' && error.code in reasons) return error.code;
  const deeper = codeOf(error.cause);
  if (deeper !== undefined) return deeper;
  return 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return (error.cause instanceof Error ? error.cause.message : error.message).replace(/\.$/, '');
}

export interface HttpRequest {
  method: string;
  url: URL;
  headers?: readonly (readonly [string, string])[];
  body?: Buffer | undefined;
  /** Timeout of the response headers, and of each next part of the body. */
  timeoutMs?: number;
  /** A sentence to add to the message of a timeout. */
  late?: string;
  signal?: AbortSignal | undefined;
}

/** Sends the request and resolves at the response headers; the caller reads the body. */
export async function send(wanted: HttpRequest): Promise<IncomingMessage> {
  const { method, url, headers = [], body, timeoutMs = 30_000, late = '', signal } = wanted;
  const sentence = `${url.origin} did not answer within ${timeoutMs / 1000} seconds.${late}`;
  const slow = () => new CliError('unreachable', sentence);
  // Loading TLS takes as long as starting Node: it is loaded only for https.
  const http = await (url.protocol === 'https:' ? import('node:https') : import('node:http'));
  return new Promise((resolve, reject) => {
    const request = http.request(url, { method, ...(signal && { signal }) });
    const timer = setTimeout(() => request.destroy(slow()), timeoutMs);
    request.on('response', (response) => {
      clearTimeout(timer);
      watchBody(response, slow, timeoutMs);
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

/** Destroys a response that receives no data for `timeoutMs`; a slow reader in this process does not count. */
function watchBody(response: IncomingMessage, error: () => Error, timeoutMs: number): void {
  const { socket } = response;
  let before = socket.bytesRead;
  const timer = setInterval(() => {
    if (socket.bytesRead === before && response.readableLength === 0) response.destroy(error());
    before = socket.bytesRead;
  }, timeoutMs);
  response.once('close', () => clearInterval(timer));
}

export async function readText(response: IncomingMessage, limit: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  // Leaving the loop early destroys the response and its connection.
  for await (const chunk of response) {
    chunks.push(chunk);
    size += chunk.length;
    if (size >= limit) break;
  }
  return Buffer.concat(chunks).subarray(0, limit).toString('utf8');
}

/** GETs a JSON object of at most 1 MiB. The caller checks the status; `body` is undefined if it cannot be parsed. */
export async function getJson(request: Omit<HttpRequest, 'method'>) {
  const accept = ['Accept', 'application/json'] as const;
  const response = await send({ ...request, method: 'GET', headers: [accept, ...(request.headers ?? [])] });
  const text = await readText(response, 1024 * 1024).catch((error: unknown) => {
    throw request.signal?.aborted ? request.signal.reason : describeTransport(error, request.url.origin);
  });
  const body = parseJson(text);
  return { status: response.statusCode ?? 0, body: isObject(body) ? body : undefined };
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Normalizes a URL and removes its final slashes; text that is no URL stays as it is. */
export function withoutSlash(url: string): string {
  return (URL.parse(url)?.href ?? url).replace(/\/+$/, '');
}

/**
 * `base` followed by `path`. Not `new URL(path, base)`, which would let `//other.example/` name another host.
 */
export function urlAt(base: string, path: string): URL {
  return new URL(base.replace(/\/+$/, '') + path);
}
