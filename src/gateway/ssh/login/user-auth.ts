/**
 * A person's login at the gateway (RFC 4252): only publickey with Ed25519, plain or in a security key. It verifies
 * the proof of a key. `authorize` decides whether its owner is allowed in: it is asked for the offered key, and again
 * for the proven one.
 */
import { longestLoginName, parseLoginName } from '../../../domain/access/ssh-session.ts';
import {
  checkSignature,
  type Proof,
  readUserKey,
  signedData,
  type UserKey,
} from '../../../lib/ssh/public-key.ts';
import { DISCONNECT, message, SSH, WireError, WireReader } from '../../../lib/ssh/wire.ts';
import type { Attempt, Authorize, Decision, Route } from '../decision.ts';
import type { GatewayLimits } from '../limits.ts';
import { authBanner, authFailure } from '../messages.ts';
import { noticeLength, printable } from '../relay/policy.ts';
import type { Barrier } from '../transport/barrier.ts';
import type { Transport } from '../transport/transport.ts';
import type { Refusal } from './admission.ts';

export interface UserAuthOptions {
  client: Transport;
  barrier: Barrier;
  remoteAddress: string;
  limits: GatewayLimits;
  authorize: Authorize;
  gone: AbortSignal;
  /** A login with a proven key starts to wait for the person's sign-in, unless that is refused. */
  onWait(userId: string): Refusal | undefined;
  /** The client has proved the key of an allowed attempt. The success message is still to be sent. */
  onProven(attempt: Attempt, route: Route): void;
  stopping(): Refusal | undefined;
  /** How long the answer to a failure is delayed. The proof of a right key is never delayed. */
  failureMs(): number;
  onRefused(attempt: Partial<Attempt>, refused: Refused): void;
  /** The client has left and asked for no login. */
  onNoLogin(software: string): void;
  onFault(reason: number, text: string): void;
}

/** The reason of a refused login, from a fixed set, and details for the log. */
export interface Refused {
  reason: string;
  /** True where the key belongs to no known person: maybe a guess. */
  isGuess: boolean;
  detail?: string;
  cause?: unknown;
  /** The decision about a person's own key. */
  decision?: Refusing;
}

type Refusing = Decision & { allowed: false };

interface AuthRequest {
  /** Without control characters, and cut above the longest login name: a name that this changes is no login name. */
  loginName: string;
  service: string;
  method: string;
  key: UserKey | undefined;
  /** Left out: the key is only offered. */
  proof: Proof | undefined;
  /** The algorithm and blob of the key, repeated in PK_OK. */
  algorithm: string;
  blob: Buffer;
}

/** Limit on requests that are queued while one is decided. Clients wait for answers; more than this is a flood. */
const MAX_WAITING = 8;

/** Requests for each attempt of a connection: to ask for the methods, to offer a key, to prove it, and one to spare. */
const REQUESTS_EACH = 4;

/** Interval at which a login that waits for a sign-in asks whether there was one. */
const askAgainMs = 1_000;

/** The message names the usual cause: an agent with many keys. */
const TOO_MANY =
  'Too many authentication failures. If you have many keys, name the right one: ssh -i FILE -o IdentitiesOnly=yes';

/** The message for a key made with `no-touch-required`: malware on the laptop could log in with it at any time. */
const UNTOUCHED =
  'Your security key signed without a touch, and that is not accepted. Make a key without -O no-touch-required: ssh-keygen -t ed25519-sk';

/** Handles the client's messages until the client has proved a key. */
export class UserAuth {
  readonly #options: UserAuthOptions;
  readonly #waiting: AuthRequest[] = [];
  #serviceGranted = false;
  #loginName: string | undefined;
  /** True once it did more than ask for the methods. */
  #hasTried = false;
  #failures = 0;
  #requests = 0;
  #busy = false;
  #done = false;

  constructor(options: UserAuthOptions) {
    this.#options = options;
    const { client } = options;
    const { onEnd } = client;
    client.onMessage = (payload) => this.#onMessage(payload);
    client.onEnd = (end) => {
      if (end.by === 'peer' || end.by === 'network') this.#onLeft();
      onEnd(end);
    };
  }

  /** Reports a scan, or a client that has no key: it leaves when it knows the methods, and no other event shows that. */
  #onLeft() {
    const loginName = this.#loginName;
    const { client, remoteAddress, onRefused, onNoLogin } = this.#options;
    if (loginName === undefined) onNoLogin(client.software || 'said nothing');
    if (this.#hasTried || loginName === undefined) return;
    const detail = printable(`${client.software}: only "none" was tried`);
    onRefused({ loginName, remoteAddress }, { reason: 'no_key', isGuess: false, detail });
  }

  #onMessage(payload: Buffer) {
    if (this.#done) return;
    const { client, barrier } = this.#options;
    const type = payload[0];
    if (type === SSH.SERVICE_REQUEST) return this.#onService(new WireReader(payload, 1).text());
    if (type !== SSH.USERAUTH_REQUEST) return client.refuseMessage();
    if (!this.#serviceGranted) throw new WireError('authentication before the service was asked for');
    const request = readRequest(payload, client.sessionId);
    this.#loginName = request.loginName;
    this.#hasTried ||= request.method !== 'none';
    this.#waiting.push(request);
    if (this.#waiting.length > MAX_WAITING) throw new WireError('too many requests at once');
    void barrier.watch(this.#work());
  }

  #onService(name: string) {
    if (name !== 'ssh-userauth') return this.#fault(DISCONNECT.SERVICE_NOT_AVAILABLE, 'no such service');
    this.#serviceGranted = true;
    this.#options.client.send(message(SSH.SERVICE_ACCEPT, name));
  }

  #fault(reason: number, text: string) {
    this.#done = true;
    this.#options.onFault(reason, text);
  }

  async #work(): Promise<void> {
    if (this.#busy) return;
    this.#busy = true;
    for (let next = this.#waiting.shift(); next && !this.#done; next = this.#waiting.shift())
      await this.#decide(next);
    this.#busy = false;
  }

  async #decide(request: AuthRequest): Promise<void> {
    const { client, limits, remoteAddress, onRefused } = this.#options;
    const { loginName, key } = request;
    if (request.service !== 'ssh-connection')
      return this.#fault(DISCONNECT.SERVICE_NOT_AVAILABLE, 'no such service');
    this.#requests += 1;
    if (this.#requests > limits.loginAttempts * REQUESTS_EACH) {
      onRefused({ loginName, remoteAddress }, { reason: 'too_many_requests', isGuess: false });
      return this.#fault(DISCONNECT.NO_MORE_AUTH_METHODS, TOO_MANY);
    }
    // Every client asks "none" to learn the methods: that does not count as an attempt.
    if (request.method === 'none') return client.send(authFailure());
    const stopping = this.#options.stopping();
    if (stopping) {
      onRefused({ loginName, remoteAddress }, { reason: stopping.reason, isGuess: false });
      return this.#fault(DISCONNECT.BY_APPLICATION, stopping.text);
    }
    // Not passed to `authorize`: no cluster and no person has such a name.
    if (!parseLoginName(loginName))
      return this.#fail({ loginName }, { reason: 'not_a_login_name', isGuess: true });
    if (request.method !== 'publickey') {
      const detail = printable(request.method);
      return this.#fail({ loginName }, { reason: 'other_method', isGuess: true, detail });
    }
    if (!key) {
      // An agent offers all its keys: that does not count as an attempt, either.
      const detail = printable(request.algorithm);
      onRefused({ loginName, remoteAddress }, { reason: 'other_key_type', isGuess: true, detail });
      return client.send(authFailure());
    }
    const attempt: Attempt = { loginName, publicKey: key.text, fingerprint: key.fingerprint, remoteAddress };
    if (request.proof === 'wrong') return this.#fail(attempt, { reason: 'wrong_signature', isGuess: true });
    if (request.proof === 'untouched') {
      client.send(authBanner(UNTOUCHED));
      return this.#fail(attempt, { reason: 'security_key_untouched', isGuess: true });
    }
    return this.#authorize(request, attempt);
  }

  async #authorize(request: AuthRequest, attempt: Attempt): Promise<void> {
    const { client, limits, authorize, gone, onRefused, onProven } = this.#options;
    let decision: Decision;
    try {
      decision = await authorize(attempt, undefined, gone);
      if (request.proof && !decision.allowed && decision.untilSignIn && limits.signInWaitMs > 0)
        decision = await this.#waitForSignIn(attempt, decision);
    } catch (cause) {
      if (gone.aborted) return;
      onRefused(attempt, { reason: 'unconfirmed', isGuess: false, cause });
      const text = 'Access cannot be confirmed at the moment. Please try again shortly.';
      return this.#fault(DISCONNECT.BY_APPLICATION, text);
    }
    if (this.#done || client.ended) return;
    if (request.proof === undefined) return this.#onOffer(request, attempt, decision);
    if (!decision.allowed) {
      if (decision.untilSignIn && limits.signInWaitMs > 0) {
        // The person's other keys would have to wait as long.
        onRefused(attempt, { reason: decision.reason, isGuess: false, decision });
        return this.#fault(DISCONNECT.NO_MORE_AUTH_METHODS, decision.message);
      }
      if (decision.disclose) client.send(authBanner(printable(decision.message, noticeLength)));
      const { reason, disclose } = decision;
      return this.#fail(attempt, { reason, isGuess: !disclose, decision });
    }
    this.#done = true;
    onProven(attempt, decision.route);
  }

  /** Asks the person to sign in, and polls until they have, or the wait is over. */
  async #waitForSignIn(attempt: Attempt, refused: Refusing): Promise<Decision> {
    const { client, barrier, limits, authorize, gone, onWait } = this.#options;
    const tooMany = onWait(refused.subject?.userId ?? '');
    if (tooMany) return { ...refused, reason: tooMany.reason, message: tooMany.text };
    const seconds = Math.ceil(limits.signInWaitMs / 1000);
    client.send(
      authBanner(printable(`${refused.message} This login waits ${seconds} s for it.`, noticeLength)),
    );
    for (let leftMs = limits.signInWaitMs; leftMs > 0; leftMs -= askAgainMs) {
      await new Promise<void>((resolve) => barrier.after(askAgainMs, resolve));
      if (this.#done || client.ended) return refused;
      const decision = await authorize(attempt, undefined, gone);
      if (decision.allowed || !decision.untilSignIn) return decision;
    }
    return { ...refused, message: `${refused.message} No sign-in came within ${seconds} s.` };
  }

  /** Asks for a signature only for a key that is allowed in, or whose owner may learn why not. */
  async #onOffer(request: AuthRequest, attempt: Attempt, decision: Decision): Promise<void> {
    if (!decision.allowed && !decision.disclose)
      return this.#fail(attempt, { reason: decision.reason, isGuess: true });
    this.#options.client.send(message(SSH.USERAUTH_PK_OK, request.algorithm, request.blob));
  }

  async #fail(attempt: Partial<Attempt>, refused: Refused): Promise<void> {
    const { client, barrier, limits, remoteAddress } = this.#options;
    this.#options.onRefused({ remoteAddress, ...attempt }, refused);
    this.#failures += 1;
    if (this.#failures >= limits.loginAttempts) return this.#fault(DISCONNECT.NO_MORE_AUTH_METHODS, TOO_MANY);
    const ms = this.#options.failureMs();
    if (ms > 0) await new Promise<void>((resolve) => barrier.after(ms, resolve));
    client.send(authFailure());
  }
}

function readRequest(payload: Buffer, sessionId: Buffer): AuthRequest {
  const fields = new WireReader(payload, 1);
  const request: AuthRequest = {
    loginName: printable(fields.text(), longestLoginName + 1),
    service: fields.text(),
    method: fields.text(),
    key: undefined,
    proof: undefined,
    algorithm: '',
    blob: Buffer.alloc(0),
  };
  if (request.method !== 'publickey') return request;
  const signed = fields.bool();
  request.algorithm = fields.text();
  request.blob = Buffer.from(fields.bytes());
  request.key = readUserKey(request.algorithm, request.blob);
  if (!signed || !request.key) return request;
  const data = signedData(sessionId, payload.subarray(0, fields.at));
  request.proof = checkSignature(request.key, fields.bytes(), data);
  return request;
}
