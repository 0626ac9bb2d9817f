/**
 * The SSH gateway ("SSH gateway behaviour" in the contract; RFC 4251 to 4254).
 *
 * Owns: the gateway's address, its connections, and what may pass over them. Must not: know the store, decide who may log
 * in (that is `authorize`, handed in and asked again for as long as a session lives), or run anything itself.
 *
 * The flow: socket → transport (ssh2.ts, transport.ts) → the person proves a key (user-auth.ts) → authorize → Route →
 * our own login at the login node, host key pinned (login-node.ts) → relay.ts passes every message on that policy.ts
 * allows → the end, from whichever side, or by recheck(), close() and stop() with a line that says why.
 */
import { createServer, type Socket } from 'node:net';
import type { Logger } from '../log.ts';
import type { Attempt, Authorize, Decision } from './decision.ts';
import { defaultLimits, type GatewayLimits } from './limits.ts';
import { type Session, type SessionInfo, startSession } from './session.ts';
import { readPrivateKey } from './ssh2.ts';

export interface GatewayOptions {
  listen: { host: string; port: number };
  /** OpenSSH-format ed25519 private key: the public face of the gateway. */
  hostKey: string;
  /** OpenSSH-format ed25519 private key with which the gateway logs in to login nodes. */
  clientKey: string;
  authorize: Authorize;
  log: Logger;
  limits?: Partial<GatewayLimits>;
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
  /** Takes no new connections, tells those who are in, and is done within about a second. */
  stop(): Promise<void>;
}

/** Listens; resolves when connections are taken. */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { authorize, log } = options;
  const limits: GatewayLimits = Object.freeze({ ...defaultLimits, ...options.limits });
  const strangers = new Set<Session>();
  const known = new Set<Session>();
  const context = {
    hostKey: readPrivateKey(options.hostKey),
    clientKey: readPrivateKey(options.clientKey),
    authorize,
    limits,
    log,
    onProven(session: Session) {
      strangers.delete(session);
      known.add(session);
    },
    onClosed(session: Session) {
      strangers.delete(session);
      known.delete(session);
    },
  };

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
    const from = socket.remoteAddress;
    const same = [...strangers].filter((session) => session.remoteAddress === from).length;
    if (!from || strangers.size >= limits.maxUnauthenticated || same >= limits.maxUnauthenticatedPerAddress) {
      log.warn('gateway.connection.refused', { remoteAddress: from, reason: 'too many logins at once' });
      socket.on('error', () => {});
      socket.destroy();
      return;
    }
    strangers.add(startSession(socket, context));
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
      clearInterval(timer);
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      const text = 'The gateway is being restarted. Please connect again in a minute.';
      for (const session of [...known, ...strangers]) session.close('gateway stopped', text);
      await closed;
      log.info('gateway.stopped');
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
  return (attempt: Attempt) => {
    const key = JSON.stringify([attempt.loginName, attempt.publicKey, attempt.remoteAddress]);
    const answer = asked.get(key) ?? withTimeout(authorize(attempt), timeoutMs);
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
