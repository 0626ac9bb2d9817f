/**
 * The SSH gateway ("SSH gateway behaviour" in the contract; RFC 4251 to 4254).
 *
 * Owns: the gateway's address, its connections, and what may pass over them. Must not: know the store, decide who may log
 * in (`authorize` does, again and again for as long as a session lives), or run anything itself.
 *
 * The flow: socket → admission.ts (how many) → transport (ssh2.ts, transport.ts) → the person proves a key (user-auth.ts)
 * → authorize → Route → our own login at the login node, host key pinned (login-node.ts) → relay.ts passes every message
 * that policy.ts allows → the end, from either side, or by recheck(), close() and stop(), with its reason.
 */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import type { SshSession } from '../../domain/access/ssh-session.ts';
import { createRefusalTally, type RefusalTally } from '../../lib/limits.ts';
import type { Logger } from '../../lib/log.ts';
import { createTrustedProxies, plainAddress, type TrustedProxies } from '../../lib/source-address.ts';
import {
  type Attempt,
  type Authorize,
  type Decision,
  filteredOf,
  matches,
  type SessionFilter,
} from './decision.ts';
import type { GatewayEvent } from './events.ts';
import { defaultLimits, type GatewayLimits } from './limits.ts';
import { Admission, noLogin, type Refusal, tooMany } from './login/admission.ts';
import { refuseConnection } from './login/refuse-connection.ts';
import { printable } from './relay/policy.ts';
import { Session, type SessionContext } from './relay/session.ts';
import { type Barrier, createBarrier } from './transport/barrier.ts';
import { awaitProxyHeader } from './transport/proxy-protocol.ts';
import { readPrivateKeys } from './transport/ssh2.ts';

/** Ed25519 private keys in OpenSSH's format. */
export interface GatewayKeys {
  /** Host keys shown to clients: the first is used, the others are announced as well. */
  hostKeys: readonly string[];
  /** Keys for logins to login nodes: the others are tried where the first is refused. */
  clientKeys: readonly string[];
}

/** Settings that can change at run time, for later connections. */
export interface GatewaySettings extends GatewayKeys {
  /** Announces support of security keys; `authorize` decides about each key. Left out: not announced. */
  securityKeys?: boolean;
  limits?: Partial<GatewayLimits>;
  /** Proxies (addresses and networks) whose PROXY header (version 2) is read; left out: none. */
  trustedProxies?: readonly string[];
  /** Whether that header must be present; left out: `optional`. */
  proxyProtocol?: 'required' | 'optional' | 'off';
}

export interface GatewayOptions extends GatewaySettings {
  /** `fd`: a listening socket that this process inherited. */
  listen: { host: string; port: number } | { fd: number };
  authorize: Authorize;
  /** Start time of the service behind `authorize`, by performance.now(); undefined while it is stopped. Left out: it always runs. */
  runningSince?(): number | undefined;
  log: Logger;
  /** Receives the events of every session, in order. It must return at once. */
  record?(event: GatewayEvent): void;
}

/** How late a time-based end of a session may be, at most. */
const tickMs = 1_000;

const restarting: Refusal = {
  reason: 'gateway_stopping',
  text: 'The gateway is being restarted. Please connect again in a minute.',
};

/** Refused logins of a source that are logged one by one before they are summed up: enough for a person with a few keys. */
const loggedLogins = 20;

function levelOf(reason: string) {
  return reason === noLogin.reason ? 'info' : 'warn';
}

export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const gateway = new Gateway(options);
  await gateway.listen();
  return gateway;
}

export class Gateway {
  #options: GatewayOptions;
  #limits: GatewayLimits;
  #proxies: TrustedProxies;
  readonly #admission: Admission;
  readonly #refusals: RefusalTally;
  readonly #refusedLogins: RefusalTally;
  #context: SessionContext;
  /** The listening socket, for a process that is to share it. */
  readonly server: Server;
  readonly #unauthenticated = new Set<Session>();
  readonly #known = new Set<Session>();
  /** Connections whose PROXY header has not come yet. */
  #awaitedHeaders = 0;
  #stopping: Refusal | undefined;
  #onDrained = () => {};
  #timers: NodeJS.Timeout[] = [];
  port = 0;

  constructor(options: GatewayOptions) {
    this.#options = options;
    this.#limits = Object.freeze({ ...defaultLimits, ...options.limits });
    this.#proxies = createTrustedProxies(options.trustedProxies ?? []);
    this.#admission = new Admission(this.#limits);
    const { log } = options;
    this.#refusals = createRefusalTally(1, (source, reason, connections) =>
      log[levelOf(reason)]('gateway.connections.refused', { source, reason, connections }),
    );
    this.#refusedLogins = createRefusalTally(loggedLogins, (source, reason, logins) =>
      log.info('gateway.logins.refused', { source, reason, logins }),
    );
    this.#context = {
      ...this.#givenTo(options),
      authorize: options.authorize,
      runningSince: options.runningSince ?? (() => 0),
      log: options.log,
      admission: this.#admission,
      onRefused: (address, refusal) => this.#countRefusal(address, refusal),
      refusals: this.#refusedLogins,
      record: options.record ?? (() => {}),
      stopping: () => this.#stopping,
      onProven: (session) => {
        this.#unauthenticated.delete(session);
        this.#known.add(session);
      },
      onClosed: (session) => {
        this.#unauthenticated.delete(session);
        this.#known.delete(session);
        if (this.#stopping && this.#known.size === 0) this.#onDrained();
      },
    };
    // A connection that waits is not read: pausing later would let the socket read ahead.
    const socketOptions = { highWaterMark: 256 * 1024, pauseOnConnect: true };
    this.server = createServer(socketOptions, (socket) => this.#onConnection(socket));
  }

  /** The part of the settings that a session gets, and keeps to its end. */
  #givenTo({ hostKeys, clientKeys, securityKeys = false }: GatewaySettings) {
    return {
      hostKeys: readPrivateKeys(hostKeys),
      clientKeys: readPrivateKeys(clientKeys),
      securityKeys,
      limits: this.#limits,
    };
  }

  async listen(): Promise<void> {
    const { listen, log } = this.#options;
    const server = this.server;
    server.listen(listen);
    await once(server, 'listening');
    server.on('error', (error) => log.error('gateway.listen.failed', { error }));
    const { address, port } = server.address() as AddressInfo;
    this.port = port;
    this.#startTimers();
    log.info('gateway.started', { host: 'host' in listen ? listen.host : address, port });
  }

  configure(settings: GatewaySettings): void {
    this.#options = { ...this.#options, ...settings };
    this.#limits = Object.freeze({ ...defaultLimits, ...settings.limits });
    this.#proxies = createTrustedProxies(settings.trustedProxies ?? []);
    this.#admission.configure(this.#limits);
    this.#context = { ...this.#context, ...this.#givenTo(settings) };
    this.#startTimers();
  }

  /** Stops accepting; resolves when the last connection has ended by itself. */
  retire(): Promise<void> {
    return new Promise((resolve) => this.server.close(() => resolve()));
  }

  /**
   * Asks `authorize` again for the matching sessions, and closes those it no longer allows. Resolves to true if it
   * answered for all of them.
   */
  async recheck(filter: SessionFilter = {}): Promise<boolean> {
    const authorize = oncePerAttempt(this.#options.authorize, this.#recheckMs);
    const sessions = this.#matching(filter);
    await Promise.all(sessions.map((session) => session.recheck(authorize)));
    return !sessions.some(({ isInDoubt }) => isInDoubt);
  }

  /** Closes sessions for a reason other than access, such as a restart of their login node. Returns how many. */
  close(filter: SessionFilter, reason: string, text: string): number {
    const sessions = this.#matching(filter);
    for (const session of sessions) session.close(reason, text);
    return sessions.length;
  }

  get connections(): number {
    return this.#known.size + this.#unauthenticated.size;
  }

  sessions(): readonly SshSession[] {
    return [...this.#known].flatMap((session) => session.info() ?? []);
  }

  /** Refuses logins, notifies open sessions, closes them after `drainMs`, and is done about half a second later. */
  async stop(): Promise<void> {
    this.#stopping = restarting;
    this.#admission.refuseWaiting();
    for (const session of this.#unauthenticated) session.close('gateway stopped', restarting.text);
    await this.#drain();
    this.#stopTimers();
    const closed = this.retire();
    for (const session of [...this.#known, ...this.#unauthenticated])
      session.close('gateway stopped', restarting.text);
    await closed;
    for (const tally of [this.#refusals, this.#refusedLogins]) tally.flush();
    this.#options.log.info('gateway.stopped', {});
  }

  /** Notifies open sessions, and waits until they have ended, at most `drainMs`. */
  async #drain(): Promise<void> {
    const sessions = this.#known;
    const { drainMs } = this.#limits;
    if (sessions.size === 0 || drainMs <= 0) return;
    this.#options.log.info('gateway.draining', { sessions: sessions.size, ms: drainMs });
    const text = `The gateway is being restarted: this session ends in ${Math.ceil(drainMs / 1000)} s.`;
    for (const session of sessions) session.notify(text);
    await new Promise<void>((resolve) => {
      const enough = setTimeout(resolve, drainMs);
      this.#onDrained = () => {
        clearTimeout(enough);
        resolve();
      };
    });
  }

  #onConnection(socket: Socket): void {
    const barrier = createBarrier();
    barrier.onFault(() => socket.destroy());
    // An `error` event is followed by `close`, which handles it.
    socket.on(
      'error',
      barrier.guard(() => {}),
    );
    barrier.guard(() => {
      const address = plainAddress(socket.remoteAddress ?? '');
      if (this.#proxies.has(address) && this.#options.proxyProtocol !== 'off')
        this.#awaitHeader(socket, address, barrier);
      else this.#begin(socket, address, barrier);
    })();
  }

  /** Reads the client's address from the header of a trusted proxy. */
  #awaitHeader(socket: Socket, proxy: string, barrier: Barrier): void {
    if (this.#awaitedHeaders >= this.#limits.unauthenticated) {
      this.#refuse(socket, proxy, tooMany, barrier);
      return;
    }
    this.#awaitedHeaders += 1;
    const required = this.#options.proxyProtocol === 'required';
    awaitProxyHeader(socket, barrier, required, (named, refusal) => {
      this.#awaitedHeaders -= 1;
      if (refusal) this.#refuse(socket, proxy, refusal, barrier);
      else this.#begin(socket, named ?? proxy, barrier);
    });
  }

  /** Starts the login when a slot is free; until then the socket is not read. */
  #begin(socket: Socket, address: string, barrier: Barrier): void {
    const refusal = address === '' || socket.destroyed ? { reason: 'gone', text: '' } : this.#stopping;
    if (refusal) {
      this.#refuse(socket, address, refusal, barrier);
      return;
    }
    let session: Session | undefined;
    this.#admission.enter(address, {
      start: barrier.guard((leave: () => void) => {
        if (socket.destroyed) {
          leave();
          return;
        }
        barrier.onFault(leave);
        session = new Session(socket, address, barrier, this.#context, leave);
        this.#unauthenticated.add(session);
        socket.resume();
      }),
      giveWay: barrier.guard(() => {
        if (session) session.giveWay(tooMany);
        else this.#refuse(socket, address, this.#stopping ?? tooMany, barrier);
      }),
      isIdle: () => session?.isIdle ?? true,
    });
  }

  #refuse(socket: Socket, address: string, refusal: Refusal, barrier: Barrier): void {
    this.#countRefusal(address, refusal);
    refuseConnection(socket, refusal.text, this.#limits.lingerMs, barrier);
  }

  #countRefusal(remoteAddress: string, { reason, detail }: Refusal): void {
    const of = { remoteAddress, reason, ...(detail !== undefined && { detail: printable(detail, 300) }) };
    const { log } = this.#options;
    if (this.#refusals.count(remoteAddress, reason)) log[levelOf(reason)]('gateway.connection.refused', of);
  }

  /** At most half of `unconfirmedMs`: a failed recheck must be noticed before the session has to end. */
  get #recheckMs(): number {
    const { recheckMs, unconfirmedMs } = this.#limits;
    return Math.min(recheckMs, unconfirmedMs / 2);
  }

  #startTimers(): void {
    this.#stopTimers();
    const tick = () => {
      const now = performance.now();
      for (const session of this.#known) session.tick(now);
    };
    this.#timers = [
      setInterval(tick, Math.min(tickMs, this.#recheckMs)).unref(),
      setInterval(() => void this.recheck(), this.#recheckMs).unref(),
    ];
  }

  #stopTimers(): void {
    for (const timer of this.#timers) clearInterval(timer);
  }

  #matching(filter: SessionFilter): Session[] {
    return [...this.#known].filter(({ id, admitted }) => {
      return admitted !== undefined && matches({ ...filteredOf(admitted.route), id }, filter);
    });
  }
}

/** For one pass: asks once for equal attempts, and treats a timeout as no confirmation. */
function oncePerAttempt(authorize: Authorize, timeoutMs: number): Authorize {
  const asked = new Map<string, Promise<Decision>>();
  return (attempt: Attempt, openOn) => {
    const { loginName, publicKey, remoteAddress } = attempt;
    const key = JSON.stringify([loginName, publicKey, remoteAddress, openOn?.host, openOn?.port]);
    const answer = asked.get(key) ?? withTimeout(authorize(attempt, openOn), timeoutMs);
    asked.set(key, answer);
    return answer;
  };
}

function withTimeout<T>(answer: Promise<T>, ms: number): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`no answer within ${ms} ms`)), ms).unref();
  return Promise.race([answer, late]).finally(() => clearTimeout(timer));
}
