/** Listening: addresses, TLS, and stopping without cutting requests short. */
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { DomainError } from '../domain/error.ts';
import { type ConnectionLimit, limitConnections, limitRequests } from './connection-limit.ts';

export interface ListenOptions {
  /** For messages: which part of the service this is. */
  name: string;
  host: string;
  port: number;
  tls?: { cert: Buffer; key: Buffer } | undefined;
  /** How many may be connected; anybody, as often as they like, when left out. */
  limit?: ConnectionLimit;
}

export interface Listener {
  readonly port: number;
  /** Takes no new requests, lets running ones finish for `graceMs`, then cuts what is left. */
  stop(graceMs: number): Promise<void>;
}

/** Starts listening. Throws `service_unavailable` with a sentence when the address cannot be had. */
export async function listen(handler: RequestListener, options: ListenOptions): Promise<Listener> {
  const limits = { requestTimeout: 30_000, headersTimeout: 15_000, keepAliveTimeout: 75_000 };
  const listener = options.limit ? limitRequests(handler, options.limit) : handler;
  const server: Server = options.tls
    ? createTlsServer({ ...options.tls, minVersion: 'TLSv1.2', ...limits }, listener)
    : createServer(limits, listener);
  if (options.limit) limitConnections(server, options.name, options.limit);
  server.on('clientError', refuseUnreadable);
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(listenError(error, options)));
    server.listen(options.port, options.host, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    stop: (graceMs) =>
      new Promise((resolve) => {
        const cut = setTimeout(() => server.closeAllConnections(), graceMs);
        server.close(() => {
          clearTimeout(cut);
          resolve();
        });
        server.closeIdleConnections();
      }),
  };
}

/** Answers what Node cannot read as a request, or finds too large, in the words of every other refusal. */
function refuseUnreadable(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (!socket.writable || error.code === 'ECONNRESET') return void socket.destroy();
  const messages: Record<string, string> = {
    HPE_HEADER_OVERFLOW: 'The request headers are too large.',
    ERR_HTTP_REQUEST_TIMEOUT: 'The request took too long to arrive.',
  };
  const message = messages[error.code ?? ''] ?? 'This is not readable as an HTTP request.';
  const body = JSON.stringify({ code: 'invalid_request', message, retryable: false });
  const head = [
    'HTTP/1.1 400 Bad Request',
    'Connection: close',
    'Content-Type: application/json; charset=utf-8',
  ];
  socket.end(`${head.join('\r\n')}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}

/** What to tell when an address cannot be listened on. */
export function listenError(error: NodeJS.ErrnoException, at: Omit<ListenOptions, 'tls'>): DomainError {
  const address = `${at.host}:${at.port}`;
  const reasons: Record<string, string> = {
    EADDRINUSE: `${address} is in use by another program. Stop that one, or give ${at.name} another port.`,
    EACCES: `this user may not listen on ${address}. Choose a port above 1023, or grant the right.`,
    EADDRNOTAVAIL: `this machine has no address ${at.host}.`,
  };
  const reason =
    reasons[error.code ?? ''] ?? `${address} cannot be listened on (${error.code ?? error.message}).`;
  return new DomainError('service_unavailable', `The ${at.name} cannot start: ${reason}`, { cause: error });
}
