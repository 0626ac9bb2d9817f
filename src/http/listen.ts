/** Listening: addresses, TLS, and stopping without cutting requests short. */
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { DomainError } from '../domain/error.ts';
import { type ConnectionLimit, limitConnections, limitRequests } from './connection-limit.ts';
import { createLeaving } from './leaving.ts';

export interface ListenOptions {
  /** For messages: which part of the service this is. */
  name: string;
  host: string;
  port: number;
  tls?: { cert: Buffer; key: Buffer } | LiveTls | undefined;
  /** How many may be connected; anybody, as often as they like, when left out. */
  limit?: ConnectionLimit;
  /** Where they differ from the usual ones. */
  deadlines?: Partial<Deadlines>;
}

/** TLS whose certificate changes while it is used, and may not be there yet. */
export interface LiveTls {
  /** Takes a server in hand that has just been made. */
  attach(server: TlsServer): void;
}

export interface Listener {
  readonly port: number;
  /**
   * Takes no new connections, lets running requests finish for `graceMs`, then cuts what is left. For `lingerMs` before that,
   * connections stay open that a proxy keeps for its next request, which is answered and told to be the last one on it.
   */
  stop(graceMs: number, lingerMs?: number): Promise<void>;
}

/** How long a client may leave something half done, in milliseconds, before its connection is destroyed. */
export interface Deadlines {
  /** From the first byte, or from the connection, to the end of the headers; for TLS handshakes as well. */
  headersMs: number;
  /** To the end of the request. */
  requestMs: number;
  /** Between two requests. */
  keepAliveMs: number;
  /** Nothing moves in either direction while a reply is made or sent. Longer than any operation takes. */
  idleMs: number;
  /** From a refusal that was sent to the end of the connection, whether or not the client reads it. */
  closeMs: number;
}

const defaultDeadlines: Deadlines = {
  headersMs: 15_000,
  requestMs: 30_000,
  keepAliveMs: 75_000,
  idleMs: 120_000,
  closeMs: 2_000,
};

/** Starts listening. Throws `service_unavailable` with a sentence when the address cannot be had. */
export async function listen(handler: RequestListener, options: ListenOptions): Promise<Listener> {
  const deadlines = { ...defaultDeadlines, ...options.deadlines };
  const leaving = createLeaving(handler);
  const server = createHttpServer(options, deadlines, leaving.handler);
  if (options.limit) limitConnections(server, options.name, options.limit);
  server.on('clientError', (error, socket) => refuseUnreadable(error, socket, deadlines.closeMs));
  // Node's own list has no connections that are still in their TLS handshake.
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(listenError(error, options)));
    server.listen(options.port, options.host, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    async stop(graceMs, lingerMs = 0) {
      leaving.begin();
      const closed = new Promise<void>((resolve) => {
        // HTTP's own would close idle connections at once.
        NetServer.prototype.close.call(server, () => resolve());
      });
      const closeIdle = lingerMs > 0 ? setTimeout(() => server.closeIdleConnections(), lingerMs) : undefined;
      if (!closeIdle) server.closeIdleConnections();
      const cut = setTimeout(() => {
        for (const socket of sockets) socket.destroy();
      }, lingerMs + graceMs);
      await closed;
      clearTimeout(closeIdle);
      clearTimeout(cut);
      // And what HTTP has running for its time limits.
      server.close();
    },
  };
}

function createHttpServer(options: ListenOptions, deadlines: Deadlines, handler: RequestListener): Server {
  const { headersMs, requestMs, keepAliveMs, idleMs } = deadlines;
  const timeouts = {
    headersTimeout: headersMs,
    requestTimeout: requestMs,
    keepAliveTimeout: keepAliveMs,
    // Node's own refusal has no body; `requireHost` sends one.
    requireHostHeader: false,
    connectionsCheckingInterval: Math.min(5_000, headersMs),
  };
  const named = requireHost(handler);
  const listener = options.limit ? limitRequests(named, options.limit) : named;
  const server = options.tls
    ? createSecureServer(options.tls, { handshakeTimeout: headersMs, ...timeouts }, listener)
    : createServer(timeouts, listener);
  // Off by default; a client that never reads its reply would keep its connection.
  server.timeout = idleMs;
  return server;
}

function createSecureServer(
  tls: NonNullable<ListenOptions['tls']>,
  timeouts: object,
  listener: RequestListener,
): Server {
  const isLive = 'attach' in tls;
  const server = createTlsServer({ ...(isLive ? {} : tls), minVersion: 'TLSv1.2', ...timeouts }, listener);
  if (isLive) tls.attach(server);
  return server;
}

/** Refuses a request of HTTP/1.1 without a Host header (RFC 9112, section 3.2), in the form of every refusal. */
function requireHost(handler: RequestListener): RequestListener {
  return (request, response) => {
    if (request.headers.host !== undefined || request.httpVersion !== '1.1')
      return handler(request, response);
    const message = 'The request lacks a Host header.';
    const body = JSON.stringify({ code: 'invalid_request', message, retryable: false });
    response.writeHead(400, {
      Connection: 'close',
      'Content-Type': 'application/json; charset=utf-8',
      'Content-Length': Buffer.byteLength(body),
    });
    response.end(body);
  };
}

/** Answers what Node cannot read as a request, what is too large, and what came too late, in the form of every refusal. */
function refuseUnreadable(error: NodeJS.ErrnoException, socket: Duplex, closeMs: number): void {
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
  // Destroyed at once, it could take the reply with it; left alone, it stays for as long as the client likes.
  const destroying = setTimeout(() => socket.destroy(), closeMs);
  socket.once('close', () => clearTimeout(destroying));
}

/** The error for an address that cannot be listened on. */
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
