/**
 * One person's connection from the first byte to the last: login, the gateway's own login at the login node, the relay,
 * and the end with its reason. It closes whatever is unclear.
 */
import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import type { Logger } from '../lib/log.ts';
import { DISCONNECT } from '../ssh/message-numbers.ts';
import type { Admission, Refusal } from './admission.ts';
import type { Barrier } from './barrier.ts';
import { type Attempt, type Authorize, type Decision, isSamePlace, type Route } from './decision.ts';
import { createUses, type GatewayEvent, type SessionInfo } from './events.ts';
import type { GatewayLimits } from './limits.ts';
import { type NodeFailure, openLoginNode } from './login-node.ts';
import { authSuccess, keepalive } from './messages.ts';
import { type Relay, startRelay } from './relay.ts';
import type { PrivateKey } from './ssh2.ts';
import { Transport } from './transport.ts';
import { type Refused, startUserAuth } from './user-auth.ts';

export interface SessionContext {
  hostKey: PrivateKey;
  clientKey: PrivateKey;
  authorize: Authorize;
  limits: GatewayLimits;
  log: Logger;
  admission: Admission;
  record(event: GatewayEvent): void;
  /** Set while the gateway stops: nobody logs in any more. */
  stopping(): Refusal | undefined;
  /** The person has proved their key: no stranger any more. */
  onProven(session: Session): void;
  onClosed(session: Session): void;
}

export interface Session {
  readonly id: string;
  readonly remoteAddress: string;
  /** What was proven and where it leads; undefined before the login. */
  readonly admitted: { attempt: Attempt; route: Route } | undefined;
  info(): SessionInfo | undefined;
  /** Asks again whether the person may be here. */
  recheck(authorize: Authorize): Promise<void>;
  /** Keepalives, silence, idleness and fresh keys; called every few seconds. */
  tick(now: number): void;
  /** A line for the person; the session goes on. */
  tell(text: string): void;
  /** Tells the person and ends everything on both sides. Safe to call again. */
  close(reason: string, text: string): void;
}

/** Starts on a fresh socket, which has entered at `admission`. Everything of it runs inside `barrier`. */
export function startSession(
  socket: Socket,
  remoteAddress: string,
  barrier: Barrier,
  context: SessionContext,
): Session {
  const { limits, log, admission } = context;
  const id = randomUUID();
  const startedAt = Date.now();
  const uses = createUses();
  let admitted: { attempt: Attempt; route: Route } | undefined;
  let cipher = '';
  let node: Transport | undefined;
  let relay: Relay | undefined;
  let giveUpNode = () => {};
  let closed = false;
  let released = false;
  let confirmedAt = startedAt;
  let loggedIn = false;
  let guessed = false;
  let passed = 0;
  let activeAt = startedAt;

  barrier.onFault((error) => log.error('gateway.connection.failed', { id, remoteAddress, error }));
  barrier.onFault(() => finish('internal error'));
  barrier.onFault(release);

  const client = new Transport({
    socket,
    barrier,
    hostKey: context.hostKey,
    limits,
    handshakeMs: () => admission.handshakeMs(remoteAddress),
    onReady: (negotiated) => {
      cipher = negotiated.sc.cipher;
    },
  });
  client.onEnd = (end) => {
    if (end.by === 'us') finish(end.text);
    else finish(end.by === 'protocol' ? `client: ${end.text}` : 'the person left');
  };
  const grace = barrier.after(limits.loginGraceMs, () =>
    refuse({ reason: 'login took too long', text: 'The login took too long.' }),
  );
  barrier.after(limits.helloMs, () => {
    if (client.software === '' && !client.ended)
      refuse({ reason: 'no hello', text: 'No client has said hello.' });
  });

  const session: Session = {
    id,
    remoteAddress,
    get admitted() {
      return admitted;
    },
    info,
    recheck: (authorize) => barrier.watch(recheck(authorize)),
    tick: barrier.guard(tick),
    tell: barrier.guard((text: string) => void relay?.tell(text)),
    close: barrier.guard(close),
  };

  startUserAuth({
    client,
    barrier,
    remoteAddress,
    limits,
    authorize: context.authorize,
    stopping: context.stopping,
    failureMs: () => admission.failureMs(remoteAddress),
    onProven,
    onRefused,
    onFault: (reason, text) => {
      client.close(reason, text, limits.lingerMs);
      finish(text);
    },
  });
  return session;

  function onRefused(attempt: Partial<Attempt>, { reason, isGuess, detail, cause, decision }: Refused) {
    const { loginName, fingerprint } = attempt;
    log.info('gateway.login.refused', { id, loginName, fingerprint, remoteAddress, reason, detail, cause });
    if (isGuess) guessed = true;
    if (decision) recordRefusal(attempt as Attempt, decision.reason, decision.message, decision);
  }

  function recordRefusal(
    attempt: Attempt,
    reason: string,
    message: string,
    decision: Decision & { allowed: false } = { allowed: false, reason, message, disclose: true },
  ) {
    const subject = decision.subject ?? admitted?.route;
    if (!subject) return;
    const { clusterId, userId, keyId } = subject;
    const at = Date.now();
    context.record({ kind: 'refused', at, subject: { clusterId, userId, keyId }, attempt, reason, message });
  }

  function onProven(attempt: Attempt, route: Route) {
    const refusal = admission.admit(remoteAddress, route.userId);
    admitted = { attempt, route };
    if (refusal) {
      const { loginName, fingerprint } = attempt;
      log.warn('gateway.login.refused', {
        id,
        loginName,
        fingerprint,
        remoteAddress,
        reason: refusal.reason,
      });
      recordRefusal(attempt, refusal.reason, refusal.text);
      admitted = undefined;
      return refuse(refusal);
    }
    confirmedAt = Date.now();
    context.onProven(session);
    giveUpNode = openLoginNode({
      route,
      key: context.clientKey,
      barrier,
      limits,
      cipher,
      handshakeMs: () => admission.nodeHandshakeMs(id),
      onUp,
      onFailure: (failure) => onNodeFailure(attempt, failure),
    });
  }

  function onNodeFailure(attempt: Attempt, failure: NodeFailure) {
    const { loginName, fingerprint } = attempt;
    const reason = `login node: ${failure.reason}`;
    const { detail } = failure;
    log.warn('gateway.login.refused', { id, loginName, fingerprint, remoteAddress, reason, detail });
    recordRefusal(attempt, `login_node_${failure.reason.replace('-', '_')}`, failure.text);
    refuse({ reason, text: failure.text });
  }

  /** Not an authentication failure: a client would go on to ask for passwords or try the next key. */
  function refuse({ reason, text }: Refusal) {
    client.close(DISCONNECT.BY_APPLICATION, text, limits.lingerMs);
    finish(reason);
  }

  function onUp(up: Transport) {
    node = up;
    clearTimeout(grace);
    loggedIn = true;
    activeAt = Date.now();
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
      onUse: (use) => uses.add(use),
    });
    client.send(authSuccess());
    log.info('gateway.login.accepted', who());
    const opened = info();
    if (opened) context.record({ kind: 'opened', at: activeAt, session: opened });
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
    const { attempt, route } = admitted;
    try {
      const decision = await authorize(attempt, { host: route.loginNode.host, port: route.loginNode.port });
      if (closed) return;
      confirmedAt = Date.now();
      if (!decision.allowed) close(decision.reason, decision.message);
      else if (!isSamePlace(route, decision.route))
        close('login node changed', 'Your login node has changed. Please connect again.');
      else admitted.route = decision.route;
    } catch (error) {
      log.error('gateway.recheck.failed', { id, error });
      if (Date.now() - confirmedAt < limits.confirmGraceMs) return;
      close(
        'access cannot be confirmed',
        'Your access cannot be confirmed at the moment. Please connect again.',
      );
    }
  }

  function tick(now: number) {
    if (closed || !node || !relay) return;
    const waitsForNode = !node.paused && now - node.lastHeard > limits.keepaliveMs * limits.keepaliveMisses;
    if (waitsForNode) return close('login node does not answer', 'The login node does not answer any more.');
    if (relay.bytesUp + relay.bytesDown !== passed) {
      passed = relay.bytesUp + relay.bytesDown;
      activeAt = now;
    } else if (limits.idleMs > 0 && now - activeAt >= limits.idleMs) {
      return close('idle', `Nothing happened here for ${duration(limits.idleMs)}, so this session ends.`);
    }
    for (const side of [client, node]) {
      side.renewKeys(now, limits.rekeyMs);
      if (now - Math.max(side.lastHeard, side.lastAsked) < limits.keepaliveMs || side.full) continue;
      side.lastAsked = now;
      side.send(keepalive());
    }
  }

  /** A notice on every session's standard error first, then, when it has been read, the disconnect, which carries the text once more. */
  function close(reason: string, text: string) {
    if (closed) return;
    const last = () => client.close(DISCONNECT.BY_APPLICATION, text, limits.lingerMs);
    const told = relay?.endWith(text, last) ?? false;
    finish(reason);
    if (told) barrier.after(limits.noticeMs, last);
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
      const ended = info();
      if (ended) context.record({ kind: 'closed', at: Date.now(), session: ended, reason: why, uses });
    } else log.debug('gateway.connection.closed', { id, remoteAddress, why });
    release();
  }

  /** Once: what it counted for is free again. */
  function release() {
    if (released) return;
    released = true;
    if (admitted) admission.end(remoteAddress, admitted.route.userId);
    else {
      // At the end only: an agent may offer all its keys before the right one.
      if (guessed) admission.failed(remoteAddress);
      admission.leave(remoteAddress);
    }
    context.onClosed(session);
  }
}

function duration(ms: number): string {
  const minutes = Math.round(ms / 60_000);
  return minutes >= 1 ? `${minutes} min` : `${Math.round(ms / 1000)} s`;
}
