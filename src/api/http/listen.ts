/** HTTP listeners: addresses, TLS, passing requests to handlers, and graceful shutdown. */
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createTlsServer, Server as TlsServer } from 'node:https';
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { DomainError } from '../../domain/error.ts';
import { createCounter, createRefusalTally } from '../../lib/limits.ts';
import type { Logger } from '../../lib/log.ts';
import { refusalOf, sendJson } from '../../lib/response.ts';
import { clientAddress, plainAddress, sourceNetwork, type TrustedProxies } from '../../lib/source-address.ts';

export interface Endpoint {
  name: string;
  host: string;
  port: number;
  isTls: boolean;
}

export interface Serving {
  tls?: { cert: Buffer; key: Buffer } | LiveTls | undefined;
  /** Limits on connections; unlimited if absent. */
  limit?: ConnectionLimit;
}

/** TLS with a certificate that can change at any time, and may be missing at first. */
export interface LiveTls {
  attach(server: TlsServer): () => void;
}

/** Timeouts in ms for a client's unfinished actions, after which its connection is destroyed. */
export interface Deadlines {
  /** From the first byte, or from the connection, to the end of the headers; also for TLS handshakes. */
  headersMs: number;
  requestMs: number;
  keepAliveMs: number;
  /** No data in either direction while a reply is made or sent. Longer than any operation takes. */
  idleMs: number;
  /** From a sent refusal to the end of the connection, whether or not the client has read it. */
  closeMs: number;
}

const defaultDeadlines: Deadlines = {
  headersMs: 15_000,
  requestMs: 30_000,
  keepAliveMs: 75_000,
  idleMs: 120_000,
  closeMs: 2_000,
};

const mostWaiting = 1_000;
const stopping = 'This server is stopping. Try again in a moment.';
const tooMany = 'Too many requests of this address are under way. Try again in a moment.';
/** The time for incomplete requests, such as half-sent headers, when the listener stops. */
const halfSentMs = 700;

/** Listens and serves. Throws `service_unavailable` with a sentence if the address is not available. */
export async function listen(
  handler: RequestListener,
  { deadlines, ...at }: Omit<Endpoint, 'isTls'> & Serving & { deadlines?: Partial<Deadlines> },
): Promise<Listener> {
  const listener = new Listener({ ...at, isTls: at.tls !== undefined }, deadlines);
  await listener.open();
  listener.serve(handler, at);
  return listener;
}

/**
 * A listening address whose handler can be replaced: connections stay open, and requests that arrive without a
 * handler wait for the next one.
 */
export class Listener {
  readonly #endpoint: Endpoint;
  readonly #server: Server;
  // Node's own list lacks connections that are still in their TLS handshake.
  readonly #sockets = new Set<Socket>();
  readonly #underWay = new Set<ServerResponse>();
  readonly #waiting: [IncomingMessage, ServerResponse][] = [];
  readonly #counts: ConnectionCounts;
  #handler: RequestListener | undefined;
  #detach = () => {};
  #isLeaving = false;
  #port = 0;

  constructor(endpoint: Endpoint, deadlines: Partial<Deadlines> = {}) {
    const limits = { ...defaultDeadlines, ...deadlines };
    this.#endpoint = endpoint;
    const server = createHttpServer(endpoint.isTls, limits, (request, response) =>
      this.#take(request, response),
    );
    const counts = countConnections(server, endpoint.name);
    server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
      // A network fault, or the client left: nothing was refused.
      if (error.syscall !== undefined || error.code === 'ECONNRESET') return void socket.destroy();
      counts.refused((socket as Socket).remoteAddress, error.code ?? error.message);
      const message = unreadable[error.code ?? ''] ?? 'This is not readable as an HTTP request.';
      if (socket.writable) refuseOn(socket, message, limits.closeMs);
      else socket.destroy();
    });
    // Node's default closes the connection without a response.
    server.on('connect', (_request, socket) => {
      const message = 'CONNECT is not answered here: this is no proxy.';
      socket.on('error', () => {});
      counts.refused((socket as Socket).remoteAddress, message);
      refuseOn(socket, message, limits.closeMs);
    });
    server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
      const message = 'The request expects what is not known here: of Expect, 100-continue is.';
      counts.refused(request.socket.remoteAddress, message);
      const body = { code: 'invalid_request', message, retryable: false };
      sendJson(response, 417, body, { Connection: 'close' });
    });
    this.#counts = counts;
    server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
    this.#server = server;
  }

  get port(): number {
    return this.#port;
  }

  get isTls(): boolean {
    return this.#endpoint.isTls;
  }

  get isServing(): boolean {
    return this.#handler !== undefined;
  }

  async open(): Promise<void> {
    const { host, port } = this.#endpoint;
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', (error: NodeJS.ErrnoException) =>
        reject(listenError(error, this.#endpoint)),
      );
      this.#server.listen(port, host, resolve);
    });
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  serve(handler: RequestListener, { tls, limit }: Serving): void {
    this.#detach();
    this.#detach = () => {};
    this.#counts.limit = limit;
    if (tls && this.#server instanceof TlsServer) {
      if ('attach' in tls) this.#detach = tls.attach(this.#server);
      else this.#server.setSecureContext({ ...tls, minVersion: 'TLSv1.2' });
    }
    const checked = checkHead(handler, this.#counts);
    this.#handler = limit ? limitRequests(checked, limit, this.#counts) : checked;
    for (const [request, response] of this.#waiting.splice(0)) this.#take(request, response);
  }

  /** Stops serving. Resolves when the current requests are answered; those left after `graceMs` are cut off. */
  async pause(graceMs: number): Promise<void> {
    this.#handler = undefined;
    const late = new AbortController();
    const answered = [...this.#underWay].map((one) => new Promise((resolve) => one.once('close', resolve)));
    await Promise.race([
      Promise.all(answered),
      sleep(graceMs, undefined, { signal: late.signal }).catch(() => {}),
    ]);
    late.abort();
    for (const { socket } of this.#underWay) socket?.destroy();
    this.#underWay.clear();
  }

  /**
   * Serves for `lingerMs` as before, but ends each connection after its response. Then accepts no new connections,
   * lets current requests finish for `graceMs`, and cuts off the rest.
   */
  async stop(graceMs: number, lingerMs = 0): Promise<void> {
    this.#isLeaving = true;
    for (const response of this.#underWay) endWith(response);
    if (lingerMs > 0) await sleep(lingerMs);
    const closed = new Promise<void>((resolve) => {
      // HTTP's own `close` would close idle connections at once, and the timer that enforces the timeouts.
      NetServer.prototype.close.call(this.#server, () => resolve());
    });
    for (const [request, response] of this.#waiting.splice(0)) refuse(request, response, stopping);
    this.#server.closeIdleConnections();
    const halfSent = setTimeout(() => this.#cut([...this.#underWay]), Math.min(halfSentMs, graceMs));
    const late = setTimeout(() => this.#cut([]), graceMs);
    await closed;
    clearTimeout(halfSent);
    clearTimeout(late);
    this.#detach();
    this.#server.close();
  }

  #take(request: IncomingMessage, response: ServerResponse): void {
    // The client left while the request waited.
    if (response.destroyed) return;
    if (!this.#handler) {
      if (this.#isLeaving || this.#waiting.length >= mostWaiting) refuse(request, response, stopping);
      else this.#waiting.push([request, response]);
      return;
    }
    if (this.#isLeaving) endWith(response);
    this.#underWay.add(response);
    response.once('close', () => this.#underWay.delete(response));
    this.#handler(request, response);
  }

  #cut(spared: readonly ServerResponse[]): void {
    const names = new Set(spared.map(({ socket }) => peerOf(socket)));
    for (const socket of this.#sockets) if (!names.has(peerOf(socket))) socket.destroy();
  }
}

/** Over TLS, a response's socket object differs from its connection's, so they are matched by address and port. */
function peerOf(socket: Socket | null): string {
  return `${socket?.remoteAddress} ${socket?.remotePort}`;
}

/** Announces that the connection ends with this response (RFC 9112, 9.6), unless its headers are sent. */
function endWith(response: ServerResponse): void {
  if (!response.headersSent) response.setHeader('Connection', 'close');
}

function createHttpServer(isTls: boolean, deadlines: Deadlines, handler: RequestListener): Server {
  const { headersMs, requestMs, keepAliveMs, idleMs } = deadlines;
  const timeouts = {
    headersTimeout: headersMs,
    requestTimeout: requestMs,
    keepAliveTimeout: keepAliveMs,
    // Node's own refusal has no body; `checkHead` sends one.
    requireHostHeader: false,
    // A token with hundreds of groups exceeds Node's 16 KiB.
    maxHeaderSize: 65_536,
    connectionsCheckingInterval: Math.min(5_000, headersMs),
  };
  const server = isTls
    ? createTlsServer({ minVersion: 'TLSv1.2', handshakeTimeout: headersMs, ...timeouts }, handler)
    : createServer(timeouts, handler);
  // Off by default; a client that never reads its reply would keep its connection.
  server.timeout = idleMs;
  return server;
}

/**
 * Refuses an HTTP/1.1 request without a Host header, and any with a repeated header that proxies could interpret
 * differently (RFC 9112, section 3.2), with the standard error body.
 */
function checkHead(handler: RequestListener, counts: ConnectionCounts): RequestListener {
  return (request, response) => {
    const message = faultOfHead(request);
    if (message === undefined) return handler(request, response);
    counts.refused(request.socket.remoteAddress, message);
    sendJson(response, 400, { code: 'invalid_request', message, retryable: false }, { Connection: 'close' });
  };
}

function faultOfHead({ rawHeaders, httpVersion }: IncomingMessage): string | undefined {
  const found = { host: 0, authorization: 0 };
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]?.toLowerCase();
    if (name === 'host' || name === 'authorization') found[name] += 1;
  }
  if (found.host === 0 && httpVersion === '1.1') return 'The request lacks a Host header.';
  if (found.host > 1) return 'The request has more than one Host header.';
  return found.authorization > 1 ? 'The request has more than one Authorization header.' : undefined;
}

/** Messages for known parse errors, by Node's code. */
const unreadable: Record<string, string> = {
  HPE_HEADER_OVERFLOW: 'The request headers are too large.',
  ERR_HTTP_REQUEST_TIMEOUT: 'The request took too long to arrive.',
};

/** Responds to input that never became a request, with the standard error body, and ends the connection. */
function refuseOn(socket: Duplex, message: string, closeMs: number): void {
  const body = JSON.stringify({ code: 'invalid_request', message, retryable: false });
  const head = [
    'HTTP/1.1 400 Bad Request',
    'Connection: close',
    'Content-Type: application/json; charset=utf-8',
  ];
  socket.end(`${head.join('\r\n')}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  // Destroying it at once could lose the reply; without the timer, the client could keep it open forever.
  const destroying = setTimeout(() => socket.destroy(), closeMs);
  socket.once('close', () => clearTimeout(destroying));
}

export function listenError(error: NodeJS.ErrnoException, at: Omit<Endpoint, 'isTls'>): DomainError {
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

interface ConnectionLimit {
  /** The limit per address (IPv6: per /56); an eighth of it while more than half of all connections are taken. */
  perSource: number;
  inAll: number;
  /** Proxies have no connection limit; the concurrent requests of their clients are limited instead. */
  proxies: TrustedProxies;
  log: Logger;
}

/** Counts a server's connections, up to `limit`; without one, any number. */
interface ConnectionCounts {
  limit: ConnectionLimit | undefined;
  /** Logs a refusal of an address: a line of its own, or counted in the sum of its source. */
  refused(address: string | undefined, reason: string): void;
}

function countConnections(server: Server, name: string): ConnectionCounts {
  const sources = createCounter();
  let all = 0;
  const refusals = createRefusalTally(1, (source, reason, connections) =>
    counts.limit?.log.warn('http.connections.refused', { name, source, reason, connections }),
  );
  const counts: ConnectionCounts = {
    limit: undefined,
    refused(from = '', reason) {
      const address = plainAddress(from);
      if (refusals.count(address, reason))
        counts.limit?.log.warn('http.connection.refused', { name, address, reason, open: all });
    },
  };
  server.on('connection', (socket) => {
    const { perSource = Infinity, inAll = Infinity, proxies } = counts.limit ?? {};
    const { remoteAddress = '' } = socket;
    const isCrowded = all >= inAll / 2;
    const most = isCrowded ? Math.ceil(perSource / 8) : perSource;
    const leave = sources.enter(sourceNetwork(remoteAddress), proxies?.has(remoteAddress) ? Infinity : most);
    if (leave && all < inAll) {
      all += 1;
      socket.once('close', () => {
        all -= 1;
        leave();
      });
      return;
    }
    leave?.();
    socket.destroy();
    counts.refused(remoteAddress, 'too many connections');
  });
  return counts;
}

/** Statuses that are logged as refusals here. The APIs' requests are excluded: each has an ID and a log line. */
const noted = new Set([403, 410, 413, 429, 503]);

/** Responds 503 if a proxy's client has more concurrent requests than it may have connections. */
function limitRequests(
  handler: RequestListener,
  { perSource, proxies }: ConnectionLimit,
  counts: ConnectionCounts,
): RequestListener {
  const clients = createCounter();
  return (request, response) => {
    const address = clientAddress(proxies, request);
    const isProxied = proxies.has(request.socket.remoteAddress ?? '');
    const leave = clients.enter(sourceNetwork(address), isProxied ? perSource : Infinity);
    if (!leave) {
      counts.refused(address, 'too many requests');
      return refuse(request, response, tooMany);
    }
    const asked = `${request.method} ${request.url?.split('?')[0]?.slice(0, 100)}`;
    response.once('close', () => {
      leave();
      const isNoted = noted.has(response.statusCode) && !response.hasHeader('X-Request-Id');
      const reason = refusalOf(response) ?? (isNoted ? `${response.statusCode} ${asked}` : undefined);
      if (reason !== undefined) counts.refused(address, reason);
    });
    handler(request, response);
  };
}

function refuse(request: IncomingMessage, response: ServerResponse, message: string): void {
  const body = { code: 'service_unavailable', message, retryable: true };
  sendJson(response, 503, body, { 'Retry-After': '1', Connection: 'close' });
  request.resume();
}
