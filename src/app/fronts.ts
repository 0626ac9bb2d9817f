/**
 * A part of the composition root: what talks to people. It stops together, before anything that it needs.
 *
 * A server that stops among others behind a proxy leaves without an error for anybody: it takes no new connections, which
 * the proxy gives to another server; what it is asked on those that the proxy keeps open is answered, as the last on each.
 * By the time that they are closed, the proxy has noticed. For a proxy that gives nothing to another server once it was refused
 * here, `server.drainSeconds` lets `/readyz` say for a while that the server stops, before any of that.
 */
import type { RequestListener } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Acme } from '../acme/index.ts';
import type { Config, HttpConfig } from '../config/index.ts';
import type { Gateways } from '../gateway-process/gateways.ts';
import { listen } from '../http/listen.ts';
import type { Logger } from '../lib/log.ts';
import type { TrustedProxies } from '../lib/source-address.ts';

/** Where something is served over HTTP. */
export type Served = Pick<HttpConfig, 'listen'> & Partial<HttpConfig>;

/** For requests that are under way. */
const stopGraceMs = 700;
/** A proxy that asks every second finds out within two (docs/scale/haproxy.cfg). */
const behindProxyMs = 2_500;

export class Fronts {
  gateway: Pick<Gateways, 'stop' | 'leave'> | undefined;
  isStopping = false;
  /** How long all is answered as before, but for `/readyz`. */
  readonly drainMs: number;
  /** How long after that connections stay open on which nothing is asked. */
  readonly lingerMs: number;
  readonly #http: Config['http'];
  readonly #all: { stop(): Promise<void> }[] = [];

  constructor({ http, server, database, trustedProxies }: Config) {
    this.#http = http;
    this.drainMs = server.drainMs;
    this.lingerMs = database !== undefined && trustedProxies.length > 0 ? behindProxyMs : 0;
  }

  add(front: { stop(): Promise<void> }): void {
    this.#all.push(front);
  }

  /** How every HTTP listener is started. */
  serveWith({ proxies, acme, log }: { proxies: TrustedProxies; acme: Acme | undefined; log: Logger }) {
    const { connectionsPerSource: perSource, connections: inAll } = this.#http;
    const limit = { perSource, inAll, proxies, log };
    return async (name: string, { listen: address, tls }: Served, handler: RequestListener) => {
      const given = tls && 'acme' in tls ? acme?.tls : tls;
      const listener = await listen(handler, { name, ...address, tls: given, limit });
      this.add({ stop: () => listener.stop(stopGraceMs, this.lingerMs) });
    };
  }

  /** `leave`: the gateway's processes go on, all of them, or those that were found when a start failed. */
  async stop(leave: 'all' | 'found' | undefined): Promise<void> {
    this.isStopping = true;
    if (leave !== 'found' && this.drainMs > 0) await sleep(this.drainMs);
    const { gateway } = this;
    this.gateway = undefined;
    const rest = Promise.all(this.#all.splice(0).map((front) => front.stop()));
    // It asks this service who may log in, as long as people are still sent here.
    if (leave === 'all' && this.lingerMs > 0) await rest;
    await Promise.all([rest, leave ? gateway?.leave(leave) : gateway?.stop()]);
  }
}
