/** Bounds on connections, so that neither one address nor many can take them all, or the process's memory. */
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Logger } from '../../lib/log.ts';
import { createRefusalTally } from '../../lib/refusal-tally.ts';
import { sendJson } from '../../lib/send-json.ts';
import { clientAddress, sourceNetwork, type TrustedProxies } from '../../lib/source-address.ts';

export interface ConnectionLimit {
  /** Connections of one address (IPv6: of 56 bits); an eighth of it while more than half of all are taken. */
  perSource: number;
  /** Connections of everybody together. */
  inAll: number;
  /** They hold as many as they need; it is their clients' requests at a time that are counted instead. */
  proxies: TrustedProxies;
  log: Logger;
}

const tooMany = 'Too many requests of this address are under way. Try again in a moment.';

/** The connections of a server, and how many it may have; any number while `limit` is undefined. */
export interface ConnectionCounts {
  limit: ConnectionLimit | undefined;
}

/** Counts connections, and closes new ones beyond the limit. */
export function countConnections(server: Server, name: string): ConnectionCounts {
  const counts: ConnectionCounts = { limit: undefined };
  const sources = createCounter();
  let all = 0;
  const refusals = createRefusalTally(1, (source, _, connections) =>
    counts.limit?.log.warn('http.connections.refused', { name, source, connections }),
  );
  server.on('connection', (socket) => {
    const { perSource = Infinity, inAll = Infinity, proxies, log } = counts.limit ?? {};
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
    if (refusals.count(remoteAddress, 'connections'))
      log?.warn('http.connection.refused', { name, address: remoteAddress, open: all });
  });
  return counts;
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
    if (!leave) return refuse(request, response, tooMany);
    response.once('close', leave);
    handler(request, response);
  };
}

export function refuse(request: IncomingMessage, response: ServerResponse, message: string): void {
  const body = { code: 'service_unavailable', message, retryable: true };
  sendJson(response, 503, body, { 'Retry-After': '1', Connection: 'close' });
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
