/**
 * A part of the composition root: the listeners and the gateway. They stop together, before anything that they need.
 *
 * A server that stops among others behind a proxy causes no error: for a quarter of `server.drainSeconds` `/readyz`
 * fails, until the proxy has noticed, while other requests are answered as before. Then it takes no new connections,
 * and answers the running requests. At a reload, new requests wait for the service that follows.
 */
import type { RequestListener } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Listeners } from '../../api/http/listeners.ts';
import type { Gateways } from '../../gateway/process/gateways.ts';
import type { Logger } from '../../lib/log.ts';
import type { TrustedProxies } from '../../lib/source-address.ts';
import type { Acme } from '../certificates/index.ts';
import type { Config, HttpConfig } from '../config/index.ts';

type ListenerConfig = Pick<HttpConfig, 'listen'> & Partial<HttpConfig>;

/**
 * `stop`: nothing continues. `restart`: the gateway's processes continue. `reload`: the listeners as well. `failed`:
 * a start failed halfway; processes and listeners from before continue.
 */
export type Ending = 'stop' | 'restart' | 'reload' | 'failed';

export class Fronts {
  gateway: Pick<Gateways, 'stop' | 'leave'> | undefined;
  isStopping = false;
  readonly #listeners: Listeners;
  readonly #drainMs: number;
  readonly #lingerMs: number;
  readonly #http: Config['http'];
  readonly #all: { stop(): Promise<void> }[] = [];

  constructor({ http, server, database, trustedProxies }: Config, listeners: Listeners) {
    this.#http = http;
    this.#listeners = listeners;
    this.#drainMs = server.drainMs;
    this.#lingerMs = database !== undefined && trustedProxies.length > 0 ? server.drainMs / 4 : 0;
  }

  add(front: { stop(): Promise<void> }): void {
    this.#all.push(front);
  }

  serveWith({ proxies, acme, log }: { proxies: TrustedProxies; acme: Acme | undefined; log: Logger }) {
    const { connectionsPerSource: perSource, connections: inAll } = this.#http;
    const limit = { perSource, inAll, proxies, log };
    return async (name: string, { listen: address, tls }: ListenerConfig, handler: RequestListener) => {
      const listener = await this.#listeners.at({ name, ...address, isTls: tls !== undefined });
      listener.serve(handler, { tls: tls && 'acme' in tls ? acme?.tls : tls, limit });
    };
  }

  async stop(how: Ending): Promise<void> {
    this.isStopping = true;
    const { gateway } = this;
    this.gateway = undefined;
    const lingerMs = how === 'stop' || how === 'restart' ? this.#lingerMs : 0;
    const listening =
      how === 'reload' || how === 'failed'
        ? this.#listeners.pause(how === 'reload' ? this.#drainMs : 0)
        : this.#listeners.stop(this.#drainMs - lingerMs, lingerMs);
    await sleep(lingerMs);
    const rest = Promise.all([listening, ...this.#all.splice(0).map((front) => front.stop())]);
    if (how === 'stop') await Promise.all([rest, gateway?.stop()]);
    else {
      // Stops last, as it asks this service who may log in.
      await rest;
      await gateway?.leave(how === 'failed' ? 'found' : 'all');
    }
  }
}
