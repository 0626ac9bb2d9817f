/**
 * One person's connection from the first byte to the last: login, the gateway's own login at the login node, the relay,
 * and the end with its reason. It closes whatever is unclear.
 */
import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import type { Logger } from '../log.ts';
import { type Attempt, type Authorize, isSamePlace, type Route } from './decision.ts';
import type { GatewayLimits } from './limits.ts';
import { type NodeFailure, openLoginNode } from './login-node.ts';
import { authSuccess, DISCONNECT, keepalive } from './messages.ts';
import { type Relay, startRelay } from './relay.ts';
import type { PrivateKey } from './ssh2.ts';
import { Transport } from './transport.ts';
import { startUserAuth } from './user-auth.ts';

export interface SessionContext {
  hostKey: PrivateKey;
  clientKey: PrivateKey;
  authorize: Authorize;
  limits: GatewayLimits;
  log: Logger;
  /** The person has proved their key: no stranger any more. */
  onProven(session: Session): void;
  onClosed(session: Session): void;
}

/** A session as an operator sees it. */
export interface SessionInfo {
  id: string;
  loginName: string;
  clusterId: string;
  userId: string;
  username: string;
  keyId: string;
  fingerprint: string;
  remoteAddress: string;
  loginNode: string;
  openedAt: string;
  channels: number;
  bytesUp: number;
  bytesDown: number;
}

export interface Session {
  readonly id: string;
  readonly remoteAddress: string;
  /** What was proven and where it leads; undefined before the login. */
  readonly admitted: { attempt: Attempt; route: Route } | undefined;
  info(): SessionInfo | undefined;
  /** Asks again whether the person may be here. */
  recheck(authorize: Authorize): Promise<void>;
  /** Keepalives and silence; called every few seconds. */
  tick(now: number): void;
  /** Tells the person and ends everything on both sides. Safe to call again. */
  close(reason: string, text: string): void;
}

/** Starts on a fresh socket. */
export function startSession(socket: Socket, context: SessionContext): Session {
  const { limits, log } = context;
  const id = randomUUID();
  const remoteAddress = socket.remoteAddress ?? '';
  const startedAt = Date.now();
  let admitted: { attempt: Attempt; route: Route } | undefined;
  let cipher = '';
  let node: Transport | undefined;
  let relay: Relay | undefined;
  let giveUpNode = () => {};
  let closed = false;
  let confirmedAt = startedAt;
  let loggedIn = false;

  const client = new Transport({
    socket,
    hostKey: context.hostKey,
    limits,
    onReady: (negotiated) => {
      cipher = negotiated.sc.cipher;
    },
  });
  client.onEnd = (end) => finish(end.by === 'protocol' ? `client: ${end.text}` : 'the person left');
  const grace = setTimeout(() => finish('login took too long'), limits.loginGraceMs).unref();

  const session: Session = {
    id,
    remoteAddress,
    get admitted() {
      return admitted;
    },
    info,
    recheck,
    tick,
    close,
  };

  startUserAuth({
    client,
    remoteAddress,
    limits,
    authorize: context.authorize,
    onProven,
    onRefused: (attempt, reason, cause) => {
      const { loginName, fingerprint } = attempt;
      log.info('gateway.login.refused', {
        id,
        loginName,
        fingerprint,
        remoteAddress,
        reason,
        cause,
      });
    },
    onFault: (reason, text) => {
      client.close(reason, text, limits.lingerMs);
      finish(text);
    },
  });
  return session;

  function onProven(attempt: Attempt, route: Route) {
    admitted = { attempt, route };
    confirmedAt = Date.now();
    context.onProven(session);
    giveUpNode = openLoginNode({
      route,
      key: context.clientKey,
      limits,
      cipher,
      onUp,
      onFailure: (failure) => onNodeFailure(attempt, failure),
    });
  }

  function onNodeFailure(attempt: Attempt, failure: NodeFailure) {
    const { loginName, fingerprint } = attempt;
    const reason = `login node: ${failure.reason}`;
    const { detail } = failure;
    log.warn('gateway.login.refused', { id, loginName, fingerprint, remoteAddress, reason, detail });
    // Not an authentication failure: a client would go on to ask for passwords or try the next key.
    client.close(DISCONNECT.BY_APPLICATION, failure.text, limits.lingerMs);
    finish(reason);
  }

  function onUp(up: Transport) {
    node = up;
    clearTimeout(grace);
    loggedIn = true;
    node.onEnd = (end) => {
      log.debug('gateway.node.ended', { id, by: end.by, detail: end.text });
      close('login node closed', 'The login node closed the connection.');
    };
    client.trust();
    relay = startRelay({
      client,
      node,
      limits,
      shell: () => admitted?.route.shell ?? '/bin/bash',
      onRefusal: (side, reason) => log.debug('gateway.refused', { id, side, reason }),
    });
    client.send(authSuccess());
    log.info('gateway.login.accepted', who());
  }

  function info(): SessionInfo | undefined {
    if (!admitted) return undefined;
    const { attempt, route } = admitted;
    return {
      id,
      loginName: attempt.loginName,
      clusterId: route.clusterId,
      userId: route.userId,
      username: route.username,
      keyId: route.keyId,
      fingerprint: attempt.fingerprint,
      remoteAddress,
      loginNode: `${route.loginNode.host}:${route.loginNode.port}`,
      openedAt: new Date(startedAt).toISOString(),
      channels: relay?.channels ?? 0,
      bytesUp: relay?.bytesUp ?? 0,
      bytesDown: relay?.bytesDown ?? 0,
    };
  }

  /** The same for every line of the log about this session. */
  function who() {
    const { channels: _c, bytesUp: _u, bytesDown: _d, openedAt: _o, ...fields } = info() ?? {};
    return fields;
  }

  async function recheck(authorize: Authorize): Promise<void> {
    if (closed || !admitted) return;
    try {
      const decision = await authorize(admitted.attempt);
      if (closed) return;
      confirmedAt = Date.now();
      if (!decision.allowed) close(decision.reason, decision.message);
      else if (!isSamePlace(admitted.route, decision.route))
        close('login node changed', 'Your login node has changed. Please connect again.');
      else admitted.route = decision.route;
    } catch (cause) {
      log.error('gateway.recheck.failed', { id, cause });
      if (Date.now() - confirmedAt < limits.confirmGraceMs) return;
      close(
        'access cannot be confirmed',
        'Your access cannot be confirmed at the moment. Please connect again.',
      );
    }
  }

  function tick(now: number) {
    if (closed || !node) return;
    const waitsForNode = !node.paused && now - node.lastHeard > limits.keepaliveMs * limits.keepaliveMisses;
    if (waitsForNode) return close('login node does not answer', 'The login node does not answer any more.');
    for (const side of [client, node]) {
      if (now - Math.max(side.lastHeard, side.lastAsked) < limits.keepaliveMs || side.full) continue;
      side.lastAsked = now;
      side.send(keepalive());
    }
  }

  /** A notice on every session's standard error first, then the disconnect, which carries the text once more. */
  function close(reason: string, text: string) {
    if (closed) return;
    const told = relay?.endWith(text) ?? false;
    finish(reason);
    const last = () => client.close(DISCONNECT.BY_APPLICATION, text, limits.lingerMs);
    if (told) setTimeout(last, limits.noticeMs).unref();
    else last();
  }

  /** Once: ends the side of the login node and reports. The client's side is ended by whoever calls. */
  function finish(why: string) {
    if (closed) return;
    closed = true;
    clearTimeout(grace);
    giveUpNode();
    node?.close(DISCONNECT.BY_APPLICATION, 'the session ended', limits.lingerMs);
    if (!client.ended && !relay) client.close(DISCONNECT.BY_APPLICATION, why, limits.lingerMs);
    if (loggedIn) {
      const { bytesUp, bytesDown } = relay ?? {};
      const durationMs = Date.now() - startedAt;
      log.info('gateway.session.closed', { ...who(), bytesUp, bytesDown, durationMs, why });
    } else log.debug('gateway.connection.closed', { id, remoteAddress, why });
    context.onClosed(session);
  }
}
