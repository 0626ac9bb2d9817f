/**
 * One person's connection from its first byte to its last: login, the gateway's own login at the login node, the
 * relay, and the end with its reason. In any unclear state it closes.
 */
import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import type { SshSession } from '../../../domain/access/ssh-session.ts';
import type { RefusalTally } from '../../../lib/limits.ts';
import type { Logger } from '../../../lib/log.ts';
import { DISCONNECT } from '../../../lib/ssh/wire.ts';
import { type Attempt, type Authorize, isSameLogin, type Route, type Subject } from '../decision.ts';
import { createUses, type GatewayEvent } from '../events.ts';
import { type EnteredJob, openNode } from '../job/job-login.ts';
import type { GatewayLimits } from '../limits.ts';
import { type Admission, noLogin, type Refusal } from '../login/admission.ts';
import { createLapseWarnings, duration, LoginTime } from '../login/login-time.ts';
import { asRefusal } from '../login/refuse-connection.ts';
import { type Refused, UserAuth } from '../login/user-auth.ts';
import { authBanner, authSuccess, keepalive } from '../messages.ts';
import type { Barrier } from '../transport/barrier.ts';
import { createHostKeys } from '../transport/host-keys.ts';
import type { PrivateKey } from '../transport/ssh2.ts';
import { Transport } from '../transport/transport.ts';
import type { NodeFailure } from './login-node.ts';
import { createRefusalLog, Relay } from './relay.ts';

export interface SessionContext {
  hostKeys: readonly [PrivateKey, ...PrivateKey[]];
  clientKeys: readonly [PrivateKey, ...PrivateKey[]];
  securityKeys: boolean;
  authorize: Authorize;
  /** Start time of the service behind `authorize`; undefined while it is stopped. */
  runningSince(): number | undefined;
  limits: GatewayLimits;
  log: Logger;
  admission: Admission;
  /** A connection was refused, and nothing else logs it. */
  onRefused(address: string, refusal: Refusal): void;
  /** Counts refused logins of a source, to limit their log lines. */
  refusals: RefusalTally;
  record(event: GatewayEvent): void;
  /** Set while the gateway stops: the refusal for new logins. */
  stopping(): Refusal | undefined;
  onProven(session: Session): void;
  onClosed(session: Session): void;
}

export interface Admitted {
  attempt: Attempt;
  route: Route;
}

/** Starts on a fresh socket with a slot at `admission`; calls `leave` after the login or at its end. Everything runs inside `barrier`. */
export class Session {
  readonly id = randomUUID();
  readonly remoteAddress: string;
  /** Undefined before the login. */
  admitted: Admitted | undefined;
  /** True while it has requested nothing expensive: any peer can send a version and a KEXINIT. */
  isIdle = true;
  /** Called every second or more often: handles keepalives, timeouts, idleness, rekeying and unconfirmed access. */
  readonly tick: (now: number) => void;
  /** Shows the person a line; the session continues. */
  readonly notify: (text: string) => void;
  /** Shows the person the text and ends both sides. Safe to call again. */
  readonly close: (reason: string, text: string) => void;
  /** Ends before the login, without waiting until the text has been read. */
  readonly giveWay: (refusal: Refusal) => void;
  readonly #warnOfLapse = createLapseWarnings((text) => this.notify(text));
  readonly #context: SessionContext;
  readonly #leave: () => void;
  readonly #barrier: Barrier;
  readonly #client: Transport;
  readonly #loginTime: LoginTime;
  readonly #openedAt = new Date();
  readonly #startedAt = performance.now();
  readonly #uses = createUses();
  readonly #gone = new AbortController();
  #cipher = '';
  #node: Transport | undefined;
  #job: EnteredJob | undefined;
  #relay: Relay | undefined;
  #giveUpNode = () => {};
  #closed = false;
  #released = false;
  #guessed = false;
  #confirmedAt = this.#startedAt;
  /** A recheck after `#confirmedAt` got no answer. */
  #isInDoubt = false;
  #activeAt = this.#startedAt;
  #passed = 0;

  constructor(
    socket: Socket,
    remoteAddress: string,
    barrier: Barrier,
    context: SessionContext,
    leave: () => void,
  ) {
    this.remoteAddress = remoteAddress;
    this.#leave = leave;
    this.#barrier = barrier;
    this.#context = context;
    this.tick = barrier.guard((now: number) => this.#tick(now));
    this.notify = barrier.guard((text: string) => void this.#relay?.notify(text));
    this.close = barrier.guard((reason: string, text: string) => this.#close(reason, text));
    this.giveWay = barrier.guard((refusal: Refusal) => this.#refuse(refusal, 0));
    const { id } = this;
    barrier.onFault((error) => context.log.error('gateway.connection.failed', { id, remoteAddress, error }));
    barrier.onFault(() => this.#finish('internal error'));
    barrier.onFault(() => this.#release());
    this.#client = this.#openClient(socket);
    this.#loginTime = new LoginTime({
      ...{ barrier, limits: context.limits, admission: context.admission, leave },
      onLate: () => this.#refuse({ reason: 'login took too long', text: 'The login took too long.' }),
    });
    this.#startLogin();
  }

  #openClient(socket: Socket): Transport {
    const { hostKeys, securityKeys, limits, admission } = this.#context;
    const client = new Transport({
      ...{ socket, barrier: this.#barrier, hostKey: hostKeys[0], securityKeys, limits },
      handshakeMs: () => {
        this.isIdle = false;
        return admission.handshakeMs(this.remoteAddress);
      },
      onReady: ({ sc }) => {
        this.#cipher = sc.cipher;
      },
    });
    client.onEnd = (end) => {
      if (end.by !== 'us' && end.by !== 'protocol') return this.#finish('the person left');
      if (!this.#relay) this.#context.onRefused(this.remoteAddress, asRefusal(end, client));
      this.#finish(end.by === 'us' ? end.text : `client: ${end.text}`);
    };
    this.#barrier.after(limits.helloMs, () => {
      if (client.software === '' && !client.ended)
        this.#refuse({ reason: 'no hello', text: 'No client has said hello.' });
    });
    return client;
  }

  #startLogin() {
    const { limits, admission, authorize, stopping } = this.#context;
    const { remoteAddress } = this;
    new UserAuth({
      ...{ client: this.#client, barrier: this.#barrier, remoteAddress, limits, authorize, stopping },
      gone: this.#gone.signal,
      failureMs: () => admission.failureMs(remoteAddress),
      onWait: (userId) => this.#loginTime.wait(userId),
      onProven: (attempt, route) => this.#onProven(attempt, route),
      onRefused: (attempt, refused) => this.#onRefused(attempt, refused),
      onNoLogin: (detail) => this.#context.onRefused(remoteAddress, { ...noLogin, detail }),
      onFault: (reason, text) => {
        this.#client.close(reason, text, limits.lingerMs);
        this.#finish(text);
      },
    });
  }

  /** Undefined before the login node accepted the login: until then no session is recorded. */
  info(): SshSession | undefined {
    if (!this.admitted || !this.#relay) return undefined;
    const { attempt, route } = this.admitted;
    return {
      id: this.id,
      loginName: attempt.loginName,
      clusterId: route.clusterId,
      userId: route.userId,
      username: route.username,
      keyId: route.keyId,
      fingerprint: attempt.fingerprint,
      remoteAddress: this.remoteAddress,
      loginNode: `${route.loginNode.host}:${route.loginNode.port}`,
      ...(this.#job && { job: this.#job.id, jobNode: this.#job.node }),
      openedAt: this.#openedAt.toISOString(),
      channels: this.#relay.channels,
      bytesUp: this.#relay.bytesUp,
      bytesDown: this.#relay.bytesDown,
    };
  }

  /** True for an open session whose last recheck failed. */
  get isInDoubt(): boolean {
    return this.#isInDoubt && !this.#closed;
  }

  /** Asks again whether the person is allowed here, and closes the session where not. */
  recheck(authorize: Authorize): Promise<void> {
    return this.#barrier.watch(this.#recheck(authorize));
  }

  async #recheck(authorize: Authorize): Promise<void> {
    const { admitted } = this;
    if (this.#closed || !admitted) return;
    const { attempt, route } = admitted;
    const { host, port } = route.loginNode;
    try {
      const decision = await authorize(attempt, { host, port });
      if (this.#closed) return;
      this.#confirmedAt = performance.now();
      this.#isInDoubt = false;
      if (!decision.allowed) this.#close(decision.reason, decision.message);
      else if (!isSameLogin(route, decision.route))
        this.#close('login node changed', 'Your login node has changed. Please connect again.');
      else {
        admitted.route = decision.route;
        this.#warnOfLapse(decision.route.lapse);
      }
    } catch (error) {
      this.#isInDoubt = true;
      this.#context.log.error('gateway.recheck.failed', { id: this.id, error });
      this.#endUnconfirmed(performance.now());
    }
  }

  /** Ends soon where the service runs, as it may know of a revocation; later where it is stopped, as it may come back. */
  #endUnconfirmed(now: number) {
    if (!this.isInDoubt) return;
    const { limits, runningSince } = this.#context;
    const unconfirmedMs = now - this.#confirmedAt;
    const runningMs = now - (runningSince() ?? now);
    const isOver = Math.min(unconfirmedMs, runningMs) >= limits.unconfirmedMs;
    if (!isOver && unconfirmedMs < limits.confirmGraceMs) return;
    const text = 'Your access cannot be confirmed at the moment. Please connect again.';
    this.#close('access cannot be confirmed', text);
  }

  #onRefused(attempt: Partial<Attempt>, { reason, isGuess, detail, cause, decision }: Refused) {
    const { log, refusals } = this.#context;
    const subject = decision?.subject;
    if (refusals.count(this.remoteAddress, reason))
      log.info('gateway.login.refused', { ...this.#loginFields(attempt, subject), reason, detail, cause });
    if (isGuess) this.#guessed = true;
    if (decision && subject)
      this.#recordRefusal(attempt as Attempt, subject, decision.reason, decision.message);
  }

  #loginFields({ loginName, fingerprint }: Partial<Attempt>, subject?: Subject) {
    const { id, remoteAddress } = this;
    const { clusterId, userId, keyId } = subject ?? {};
    return { id, loginName, fingerprint, remoteAddress, clusterId, userId, keyId };
  }

  #recordRefusal(attempt: Attempt, { clusterId, userId, keyId }: Subject, reason: string, message: string) {
    const subject = { clusterId, userId, keyId };
    this.#context.record({ kind: 'refused', at: Date.now(), subject, attempt, reason, message });
  }

  #onProven(attempt: Attempt, route: Route) {
    const { admission, log, limits, clientKeys: keys } = this.#context;
    this.#loginTime.endWait();
    const { id, remoteAddress } = this;
    const refusal = admission.admit(remoteAddress, route.userId);
    if (refusal) {
      const { reason, text } = refusal;
      log.warn('gateway.login.refused', { ...this.#loginFields(attempt, route), reason });
      this.#recordRefusal(attempt, route, reason, text);
      return this.#end(refusal);
    }
    this.#leave();
    if (route.job) this.#loginTime.stop();
    this.admitted = { attempt, route };
    this.#confirmedAt = performance.now();
    this.#context.onProven(this);
    this.#giveUpNode = openNode({
      ...{ route, keys, barrier: this.#barrier, limits, cipher: this.#cipher },
      handshakeMs: () => admission.nodeHandshakeMs(id),
      onUp: (node, job) => this.#onUp(node, job),
      onNotice: this.notify,
      onFailure: (failure) => this.#onNodeFailure(attempt, route, failure),
    });
  }

  #onNodeFailure(attempt: Attempt, route: Route, { reason: why, text, detail, banner }: NodeFailure) {
    if (banner !== undefined) this.#client.send(authBanner(banner));
    const reason = `login node: ${why}`;
    this.#context.log.warn('gateway.login.refused', { ...this.#loginFields(attempt, route), reason, detail });
    this.#recordRefusal(attempt, route, `login_node_${why.replace('-', '_')}`, text);
    this.#end({ reason, text });
  }

  #onUp(node: Transport, job?: EnteredJob) {
    const { limits, log, record } = this.#context;
    const { id } = this;
    const client = this.#client;
    this.#node = node;
    this.#job = job;
    this.#loginTime.stop();
    this.#activeAt = performance.now();
    node.onEnd = (end) => {
      log.debug('gateway.node.ended', { id, by: end.by, detail: end.text });
      if (job) this.#close('job ended', job.ended ?? 'The step in the job ended.');
      else this.#close('login node closed', 'The login node closed the connection.');
    };
    client.trust();
    const hostKeys = createHostKeys(this.#context.hostKeys);
    this.#relay = new Relay({
      ...{ client, node, limits, hostKeys },
      route: () => this.admitted?.route,
      onRefusal: createRefusalLog(log, id),
      onUse: (use) => this.#uses.add(use),
    });
    client.send(authSuccess());
    client.send(hostKeys.announcement());
    log.info('gateway.login.accepted', this.#logFields());
    const session = this.info();
    if (session) record({ kind: 'opened', at: Date.now(), session });
  }

  /** The fields of every log line about this session. */
  #logFields() {
    // Left out: a process of the person names the job, and nothing here confirms it.
    const { job: _j, jobNode: _n, ...about }: Partial<SshSession> = this.info() ?? {};
    const { channels: _c, bytesUp: _u, bytesDown: _d, openedAt: _o, ...fields } = about;
    return fields;
  }

  #tick(now: number) {
    const { limits } = this.#context;
    const [client, node, relay] = [this.#client, this.#node, this.#relay];
    if (this.#closed || !node || !relay) return;
    this.#endUnconfirmed(now);
    if (!node.paused && now - node.lastHeard > limits.keepaliveMs * limits.keepaliveMisses)
      return this.#close('login node does not answer', 'The login node does not answer any more.');
    if (relay.bytesUp + relay.bytesDown !== this.#passed) {
      this.#passed = relay.bytesUp + relay.bytesDown;
      this.#activeAt = now;
    } else if (limits.idleMs > 0 && now - this.#activeAt >= limits.idleMs) {
      const text = `Nothing happened here for ${duration(limits.idleMs)}, so this session ends.`;
      return this.#close('idle', text);
    }
    for (const side of [client, node, ...(this.#job ? [this.#job.loginNode] : [])]) {
      side.renewKeys(now, limits.rekeyMs);
      if (now - Math.max(side.lastHeard, side.lastAsked) < limits.keepaliveMs || side.full) continue;
      side.lastAsked = now;
      side.send(keepalive());
    }
  }

  #refuse(refusal: Refusal, lingerMs?: number) {
    this.#context.onRefused(this.remoteAddress, refusal);
    this.#end(refusal, lingerMs);
  }

  /** Sends no authentication failure: a client would go on to ask for passwords or try the next key. */
  #end({ reason, text }: Refusal, lingerMs = this.#context.limits.lingerMs) {
    this.#client.close(DISCONNECT.BY_APPLICATION, text, lingerMs);
    this.#finish(reason);
  }

  /** Every session gets the text on its standard error; once that is read, the disconnect repeats it. */
  #close(reason: string, text: string) {
    if (this.#closed) return;
    const { limits } = this.#context;
    const last = () => this.#client.close(DISCONNECT.BY_APPLICATION, text, limits.lingerMs);
    const reached = this.#relay?.endWith(text, last) ?? false;
    if (!reached) last();
    this.#finish(reason);
    if (reached) this.#barrier.after(limits.noticeMs, last);
  }

  /** Runs once: ends the side of the login node and reports. The caller ends the client's side. */
  #finish(why: string) {
    if (this.#closed) return;
    this.#closed = true;
    this.#gone.abort();
    const { limits, log, record } = this.#context;
    const relay = this.#relay;
    this.#loginTime.stop();
    this.#giveUpNode();
    this.#node?.close(DISCONNECT.BY_APPLICATION, 'the session ended', limits.lingerMs);
    if (!this.#client.ended && !relay) this.#client.close(DISCONNECT.BY_APPLICATION, why, limits.lingerMs);
    const session = this.info();
    if (session) {
      const { bytesUp, bytesDown } = session;
      const durationMs = Math.round(performance.now() - this.#startedAt);
      log.info('gateway.session.closed', { ...this.#logFields(), bytesUp, bytesDown, durationMs, why });
      record({ kind: 'closed', at: Date.now(), session, reason: why, uses: this.#uses });
    }
    this.#release();
  }

  /** Runs once: gives back what the connection counts for at `admission`. */
  #release() {
    if (this.#released) return;
    this.#released = true;
    const { admission } = this.#context;
    this.#loginTime.endWait();
    if (this.admitted) admission.end(this.remoteAddress, this.admitted.route.userId);
    else {
      // Only at the end: an agent may offer all its keys before the right one.
      if (this.#guessed) admission.failed(this.remoteAddress);
      this.#leave();
    }
    this.#context.onClosed(this);
  }
}
