/**
 * The SSH gateway ("SSH gateway behaviour" in the contract; RFC 4251 to 4254).
 *
 * Owns: the gateway's address, its connections, and what may pass over them. Must not: know the store, decide who may log
 * in (that is `authorize`, handed in and asked again for as long as a session lives), or run anything itself.
 *
 * The flow: socket → admission.ts (how many) → transport (ssh2.ts, transport.ts) → the person proves a key (user-auth.ts) → authorize → Route →
 * our own login at the login node, host key pinned (login-node.ts) → relay.ts passes every message on that policy.ts
 * allows → the end, from whichever side, or by recheck(), close() and stop() with a line that says why.
 */
import { createServer, type Socket } from 'node:net';
import type { Logger } from '../lib/log.ts';
import { plainAddress } from '../lib/source-address.ts';
import { createAdmission, type Refusal, tooMany } from './admission.ts';
import { type Barrier, createBarrier } from './barrier.ts';
import type { Attempt, Authorize, Decision } from './decision.ts';
import type { GatewayEvent, SessionInfo } from './events.ts';
import { defaultLimits, type GatewayLimits } from './limits.ts';
import { awaitProxyHeader } from './proxy-protocol.ts';
import { turnAway } from './refuse-connection.ts';
import { type Session, startSession } from './session.ts';
import { readPrivateKey } from './ssh2.ts';

export interface GatewayOptions {
  listen: { host: string; port: number };
  /** OpenSSH-format ed25519 private key: the public face of the gateway. */
  hostKey: string;
  /** OpenSSH-format ed25519 private key with which the gateway logs in to login nodes. */
  clientKey: string;
  authorize: Authorize;
  log: Logger;
  /** Told what is worth keeping of every session, in order. It must return at once. */
  record?(event: GatewayEvent): void;
  limits?: Partial<GatewayLimits>;
  /** Whether an address is that of a trusted proxy, whose PROXY header (version 2) is read. */
  isProxy?(address: string): boolean;
  /** Whether such a header must be there; `optional` when left out. */
  proxyProtocol?: 'required' | 'optional' | 'off';
}

/** Sessions that match every field given; all of them when none is. */
export interface SessionFilter {
  id?: string;
  clusterId?: string;
  userId?: string;
  keyId?: string;
  /** "host:port" */
  loginNode?: string;
}

export interface Gateway {
  readonly port: number;
  /** Asks `authorize` again for the sessions that match, and closes those it no longer allows. */
  recheck(filter?: SessionFilter): Promise<void>;
  /** Closes sessions for another reason, as when their login node restarts. Returns how many. */
  close(filter: SessionFilter, reason: string, text: string): number;
  sessions(): readonly SessionInfo[];
  /** Lets nobody in any more, tells those who are in, gives them `drainMs`, and is done about half a second later. */
  stop(): Promise<void>;
}

/** Listens; resolves when connections are taken. */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { authorize, log } = options;
  const limits: GatewayLimits = Object.freeze({ ...defaultLimits, ...options.limits });
  const strangers = new Set<Session>();
  const known = new Set<Session>();
  const admission = createAdmission(limits);
  let stopping: Refusal | undefined;
  /** Connections whose PROXY header is awaited. */
  let atProxies = 0;
  const context = {
    hostKey: readPrivateKey(options.hostKey),
    clientKey: readPrivateKey(options.clientKey),
    authorize,
    limits,
    log,
    admission,
    record: options.record ?? (() => {}),
    stopping: () => stopping,
    onProven(session: Session) {
      strangers.delete(session);
      known.add(session);
    },
    onClosed(session: Session) {
      strangers.delete(session);
      known.delete(session);
      if (stopping && known.size === 0) drained();
    },
  };
  let drained = () => {};

  const server = createServer({ highWaterMark: 256 * 1024 }, onConnection);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.listen.port, options.listen.host, () => {
      server.off('error', reject);
      resolve();
    });
  });
  server.on('error', (error) => log.error('gateway.listen.failed', { error }));
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : options.listen.port;
  const timer = setInterval(onTimer, limits.recheckMs).unref();
  log.info('gateway.started', { host: options.listen.host, port });

  function onConnection(socket: Socket): void {
    const barrier = createBarrier();
    barrier.onFault(() => socket.destroy());
    barrier.guard(() => {
      const address = plainAddress(socket.remoteAddress ?? '');
      const isProxy = options.isProxy?.(address) ?? false;
      if (isProxy && options.proxyProtocol !== 'off') beginAtProxy(socket, address, barrier);
      else begin(socket, address, barrier);
    })();
  }

  /** Behind a trusted proxy the address that counts is the one that it names. */
  function beginAtProxy(socket: Socket, proxy: string, barrier: Barrier): void {
    if (atProxies >= limits.unauthenticatedFull) {
      refuse(socket, proxy, tooMany, barrier);
      return;
    }
    atProxies += 1;
    const required = options.proxyProtocol === 'required';
    awaitProxyHeader(socket, barrier, required, (named, error) => {
      atProxies -= 1;
      if (error) return refuse(socket, proxy, { reason: error, text: '' }, barrier);
      begin(socket, plainAddress(named ?? proxy), barrier);
    });
  }

  function begin(socket: Socket, address: string, barrier: Barrier): void {
    const gone = address === '' || socket.destroyed ? { reason: 'gone', text: '' } : undefined;
    const answer = gone ?? stopping ?? admission.enter(address);
    if (answer === 'wait') queue(socket, address, barrier);
    else if (answer !== undefined) refuse(socket, address, answer, barrier);
    else {
      strangers.add(startSession(socket, address, barrier, context));
      // It was paused where it came from a proxy or had to wait.
      socket.resume();
    }
  }

  /** Keeps a connection unread until others of its source have logged in or left. */
  function queue(socket: Socket, address: string, barrier: Barrier): void {
    socket.pause();
    socket.on(
      'error',
      barrier.guard(() => {}),
    );
    const leave = admission.queue(address, {
      start: barrier.guard(() => {
        clearTimeout(enough);
        begin(socket, address, barrier);
      }),
      refuse: barrier.guard((refusal: Refusal) => {
        clearTimeout(enough);
        refuse(socket, address, refusal, barrier);
      }),
    });
    const enough = barrier.after(limits.queueMs, () => {
      leave();
      refuse(socket, address, tooMany, barrier);
    });
  }

  function refuse(socket: Socket, remoteAddress: string, { reason, text }: Refusal, barrier: Barrier): void {
    log.warn('gateway.connection.refused', { remoteAddress, reason });
    turnAway(socket, text, limits.lingerMs, barrier);
  }

  function onTimer(): void {
    const now = Date.now();
    for (const session of known) session.tick(now);
    void recheck();
  }

  async function recheck(filter: SessionFilter = {}): Promise<void> {
    const ask = oncePerAttempt(authorize, limits.recheckMs);
    await Promise.all(matching(filter).map((session) => session.recheck(ask)));
  }

  const matching = (filter: SessionFilter) => [...known].filter((session) => matches(session, filter));

  return {
    port,
    recheck,
    close(filter, reason, text) {
      const sessions = matching(filter);
      for (const session of sessions) session.close(reason, text);
      return sessions.length;
    },
    sessions: () => [...known].flatMap((session) => session.info() ?? []),
    async stop() {
      const text = 'The gateway is being restarted. Please connect again in a minute.';
      stopping ??= { reason: 'gateway_stopping', text };
      admission.refuseWaiting(stopping);
      for (const session of strangers) session.close('gateway stopped', text);
      if (known.size > 0 && limits.drainMs > 0) {
        log.info('gateway.draining', { sessions: known.size, ms: limits.drainMs });
        const seconds = Math.ceil(limits.drainMs / 1000);
        for (const session of known)
          session.tell(`The gateway is being restarted: this session ends in ${seconds} s.`);
        await new Promise<void>((resolve) => {
          const enough = setTimeout(resolve, limits.drainMs);
          drained = () => {
            clearTimeout(enough);
            resolve();
          };
        });
      }
      clearInterval(timer);
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const session of [...known, ...strangers]) session.close('gateway stopped', text);
      await closed;
      log.info('gateway.stopped', {});
    },
  };
}

function matches(session: Session, filter: SessionFilter): boolean {
  const route = session.admitted?.route;
  if (!route) return false;
  const { id, clusterId, userId, keyId, loginNode } = filter;
  return (
    (id === undefined || id === session.id) &&
    (clusterId === undefined || clusterId === route.clusterId) &&
    (userId === undefined || userId === route.userId) &&
    (keyId === undefined || keyId === route.keyId) &&
    (loginNode === undefined || loginNode === `${route.loginNode.host}:${route.loginNode.port}`)
  );
}

/** For one pass: equal attempts are asked about once, and no answer in time is no confirmation. */
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
  let timer: NodeJS.Timeout;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${ms} ms`)), ms).unref();
  });
  return Promise.race([answer, late]).finally(() => clearTimeout(timer));
}
