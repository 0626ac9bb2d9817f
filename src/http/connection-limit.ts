/** Bounds on connections, so that neither one address nor many can take them all, or the process's memory. */
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Logger } from '../lib/log.ts';
import { clientAddress, sourceNetwork, type TrustedProxies } from '../lib/source-address.ts';

export interface ConnectionLimit {
  /** Connections of one address (IPv6: of 64 bits); an eighth of it while more than half of all are taken. */
  perSource: number;
  /** Connections of everybody together. */
  inAll: number;
  /** They hold as many as they need; it is their clients' requests at a time that are counted instead. */
  proxies: TrustedProxies;
  log: Logger;
}

/** Refusals are logged this often at most. */
const logEveryMs = 10_000;

/** Closes new connections beyond the limit. */
export function limitConnections(server: Server, name: string, limit: ConnectionLimit): void {
  const { proxies, log } = limit;
  const sources = createCounter();
  let all = 0;
  let loggedAt = -logEveryMs;
  server.on('connection', (socket) => {
    const { remoteAddress = '' } = socket;
    const isCrowded = all >= limit.inAll / 2;
    const most = isCrowded ? Math.ceil(limit.perSource / 8) : limit.perSource;
    const leave = sources.enter(sourceNetwork(remoteAddress), proxies.has(remoteAddress) ? Infinity : most);
    if (leave && all < limit.inAll) {
      all += 1;
      socket.once('close', () => {
        all -= 1;
        leave();
      });
      return;
    }
    leave?.();
    socket.destroy();
    if (performance.now() - loggedAt < logEveryMs) return;
    loggedAt = performance.now();
    log.warn('http.connection.refused', { name, address: remoteAddress, open: all });
  });
}

/** A listener that answers 503 where a proxy's client has more requests under way than it may have connections. */
export function limitRequests(
  handler: RequestListener,
  { perSource, proxies }: ConnectionLimit,
): RequestListener {
  const clients = createCounter();
  return (request, response) => {
    if (!proxies.has(request.socket.remoteAddress ?? '')) return handler(request, response);
    const leave = clients.enter(sourceNetwork(clientAddress(proxies, request)), perSource);
    if (!leave) return refuse(request, response);
    response.once('close', leave);
    handler(request, response);
  };
}

function refuse(request: IncomingMessage, response: ServerResponse): void {
  const message = 'Too many requests of this address are under way. Try again in a moment.';
  const body = JSON.stringify({ code: 'service_unavailable', message, retryable: true });
  const headers = {
    'Content-Type': 'application/json; charset=utf-8',
    'Retry-After': '1',
    Connection: 'close',
  };
  response.writeHead(503, headers).end(body);
  request.resume();
}

/** Counts what is open by key; forgets a key with its last. */
export function createCounter() {
  const counts = new Map<string, number>();
  return {
    /** One more, unless there are `most` already; returns how to take it back, once. */
    enter(key: string, most: number): (() => void) | undefined {
      const count = counts.get(key) ?? 0;
      if (count >= most) return undefined;
      counts.set(key, count + 1);
      return () => {
        const left = (counts.get(key) ?? 1) - 1;
        if (left > 0) counts.set(key, left);
        else counts.delete(key);
      };
    },
  };
}
