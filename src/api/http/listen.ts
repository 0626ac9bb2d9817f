/** Listening: addresses, TLS, handing over to other handlers, and stopping without cutting requests short. */
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
  /** How many may be connected; anybody, as often as they like, when left out. */
  limit?: ConnectionLimit;
}

/** TLS whose certificate changes while it is used, and may not be there yet. */
export interface LiveTls {
  attach(server: TlsServer): () => void;
}

/** How long a client may leave something half done, in milliseconds, before its connection is destroyed. */
export interface Deadlines {
  /** From the first byte, or from the connection, to the end of the headers; for TLS handshakes as well. */
  headersMs: number;
  requestMs: number;
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

const mostWaiting = 1_000;
const stopping = 'This server is stopping. Try again in a moment.';
const tooMany = 'Too many requests of this address are under way. Try again in a moment.';
/** For what has not become a request when the listener stops, such as half of its headers. */
const halfSentMs = 700;

/** Starts listening, and serves. Throws `service_unavailable` with a sentence when the address cannot be had. */
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
 * An address that is listened on. What is served there can change meanwhile: connections stay open, and what is asked
 * while nothing is served waits for what comes next.
 */
export class Listener {
  readonly #endpoint: Endpoint;
  readonly #server: Server;
  // Node's own list has no connections that are still in their TLS handshake.
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
      // A fault of the network, or a client that left: nothing was refused.
      if (error.syscall !== undefined || error.code === 'ECONNRESET') return void socket.destroy();
      counts.refused((socket as Socket).remoteAddress, error.code ?? error.message);
      const message = unreadable[error.code ?? ''] ?? 'This is not readable as an HTTP request.';
      if (socket.writable) refuseOn(socket, message, limits.closeMs);
      else socket.destroy();
    });
    // Node by itself closes the connection without an answer.
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

  /** Serves nothing from now on. Resolves when what is under way is answered; after `graceMs` the rest is cut. */
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
   * Answers for `lingerMs` as before, but for each answer being the last on its connection. Then takes no new connections,
   * lets what is under way finish for `graceMs`, and cuts the rest.
   */
  async stop(graceMs: number, lingerMs = 0): Promise<void> {
    this.#isLeaving = true;
    for (const response of this.#underWay) endWith(response);
    if (lingerMs > 0) await sleep(lingerMs);
    const closed = new Promise<void>((resolve) => {
      // HTTP's own would close idle connections at once, and what has its time limits.
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
    // It was given up while it waited.
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

/** Over TLS, an answer's socket is another than that of its connection. */
function peerOf(socket: Socket | null): string {
  return `${socket?.remoteAddress} ${socket?.remotePort}`;
}

/** Says that its connection ends with this answer (RFC 9112, 9.6), unless it has begun. */
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
    // A token with hundreds of groups has more than Node's 16 KiB.
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
 * Refuses a request of HTTP/1.1 without a Host header, and any with two of what may be there once and proxies could read
 * otherwise (RFC 9112, section 3.2), in the form of every refusal.
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

/** What of an unreadable request is known more closely, by Node's code. */
const unreadable: Record<string, string> = {
  HPE_HEADER_OVERFLOW: 'The request headers are too large.',
  ERR_HTTP_REQUEST_TIMEOUT: 'The request took too long to arrive.',
};

/** Answers what becomes no request that a handler could answer, in the form of every refusal, and ends the connection. */
function refuseOn(socket: Duplex, message: string, closeMs: number): void {
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
  /** Connections of one address (IPv6: of 56 bits); an eighth of it while more than half of all are taken. */
  perSource: number;
  inAll: number;
  /** They hold as many as they need; it is their clients' requests at a time that are counted instead. */
  proxies: TrustedProxies;
  log: Logger;
}

/** The connections of a server, and how many it may have; any number while `limit` is undefined. */
interface ConnectionCounts {
  limit: ConnectionLimit | undefined;
  /** What is read of an address was refused: a line for it, or in the sum of its source. */
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

/** Refusals that are noted here, but for the APIs': each of their requests has an ID, and a line with it. */
const noted = new Set([403, 410, 413, 429, 503]);

/** Answers 503 where a proxy's client has more requests under way than it may have connections. */
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
