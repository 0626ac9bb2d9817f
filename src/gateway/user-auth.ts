/**
 * A person's login at the gateway (RFC 4252): publickey with Ed25519 and nothing else. It only finds out who has proved
 * what; whether they may come in is `authorize`'s to say, asked for the offered key and again for the proven one.
 */

import { DISCONNECT, SSH } from '../ssh/message-numbers.ts';
import { isSignedBy, readUserKey, signedData, type UserKey } from '../ssh/public-key.ts';
import { message, WireError, WireReader } from '../ssh/wire.ts';
import type { Refusal } from './admission.ts';
import type { Barrier } from './barrier.ts';
import type { Attempt, Authorize, Decision, Route } from './decision.ts';
import type { GatewayLimits } from './limits.ts';
import { authBanner, authFailure } from './messages.ts';
import { noticeLength, printable } from './policy.ts';
import type { Transport } from './transport.ts';

export interface UserAuthOptions {
  client: Transport;
  barrier: Barrier;
  remoteAddress: string;
  limits: GatewayLimits;
  authorize: Authorize;
  /** Somebody proved the key of an allowed attempt. The success message is still to be sent. */
  onProven(attempt: Attempt, route: Route): void;
  /** Why nobody may log in now. */
  stopping(): Refusal | undefined;
  /** How long the answer to a failure is kept back. The proof of a right key never waits. */
  failureMs(): number;
  /** A login was refused. */
  onRefused(attempt: Partial<Attempt>, refused: Refused): void;
  /** The connection must end with this text. */
  onFault(reason: number, text: string): void;
}

/** Why a login was refused: a word out of few, and for the log what else there is to say. */
export interface Refused {
  reason: string;
  /** The key was offered or proven by somebody of whom nothing is known: maybe a guess. */
  isGuess: boolean;
  detail?: string;
  cause?: unknown;
  /** What was decided about a person's own key. */
  decision?: Decision & { allowed: false };
}

interface Request {
  loginName: string;
  service: string;
  method: string;
  key: UserKey | undefined;
  /** Left out: the key is only offered. False: the signature is wrong. */
  proof: boolean | undefined;
  /** The algorithm and blob, to be repeated in PK_OK. */
  algorithm: string;
  blob: Buffer;
}

/** Requests that arrive while one is being decided. Clients wait; more than this is a flood. */
const MAX_WAITING = 8;

/** Requests of one connection for each attempt it has: to ask for the methods, to offer a key, to prove it, and one to spare. */
const REQUESTS_EACH = 4;

/** An agent with many keys is the usual cause. */
const TOO_MANY =
  'Too many authentication failures. If you have many keys, name the right one: ssh -i FILE -o IdentitiesOnly=yes';

/** Takes over the client's messages until somebody is proven. */
export function startUserAuth(options: UserAuthOptions): void {
  const { client, limits, remoteAddress } = options;
  const waiting: Request[] = [];
  let serviceGranted = false;
  let failures = 0;
  let requests = 0;
  let busy = false;
  let done = false;

  client.onMessage = (payload) => {
    if (done) return;
    const type = payload[0];
    if (type === SSH.SERVICE_REQUEST) return onService(new WireReader(payload, 1).text());
    if (type !== SSH.USERAUTH_REQUEST) return client.refuseMessage();
    if (!serviceGranted) throw new WireError('authentication before the service was asked for');
    waiting.push(readRequest(payload, client.sessionId));
    if (waiting.length > MAX_WAITING) throw new WireError('too many requests at once');
    void options.barrier.watch(work());
  };

  function onService(name: string) {
    if (name !== 'ssh-userauth') return fault(DISCONNECT.SERVICE_NOT_AVAILABLE, 'no such service');
    serviceGranted = true;
    client.send(message(SSH.SERVICE_ACCEPT, name));
  }

  function fault(reason: number, text: string) {
    done = true;
    options.onFault(reason, text);
  }

  async function work() {
    if (busy) return;
    busy = true;
    for (let next = waiting.shift(); next && !done; next = waiting.shift()) await decide(next);
    busy = false;
  }

  async function decide(request: Request) {
    const { loginName, key } = request;
    if (request.service !== 'ssh-connection')
      return fault(DISCONNECT.SERVICE_NOT_AVAILABLE, 'no such service');
    requests += 1;
    if (requests > limits.maxAuthAttempts * REQUESTS_EACH) {
      options.onRefused({ loginName, remoteAddress }, { reason: 'too_many_requests', isGuess: false });
      return fault(DISCONNECT.NO_MORE_AUTH_METHODS, TOO_MANY);
    }
    // Every client asks "none" to learn the methods: that is no attempt.
    if (request.method === 'none') return void client.send(authFailure());
    const held = options.stopping();
    if (held) {
      options.onRefused({ loginName, remoteAddress }, { reason: held.reason, isGuess: false });
      return fault(DISCONNECT.BY_APPLICATION, held.text);
    }
    if (request.method !== 'publickey') {
      const detail = printable(request.method);
      return fail({ loginName }, { reason: 'other_method', isGuess: true, detail });
    }
    if (!key) return fail({ loginName }, { reason: 'other_key_type', isGuess: true });
    const attempt: Attempt = { loginName, publicKey: key.text, fingerprint: key.fingerprint, remoteAddress };
    if (request.proof === false) return fail(attempt, { reason: 'wrong_signature', isGuess: true });
    let decision: Decision;
    try {
      decision = await options.authorize(attempt);
    } catch (cause) {
      options.onRefused(attempt, { reason: 'unconfirmed', isGuess: false, cause });
      const text = 'Access cannot be confirmed at the moment. Please try again shortly.';
      return fault(DISCONNECT.BY_APPLICATION, text);
    }
    if (done || client.ended) return;
    if (request.proof === undefined) return onOffer(request, attempt, decision);
    if (!decision.allowed) {
      if (decision.disclose) client.send(authBanner(printable(decision.message, noticeLength)));
      const { reason, disclose } = decision;
      return fail(attempt, { reason, isGuess: !disclose, decision });
    }
    done = true;
    options.onProven(attempt, decision.route);
  }

  /** A key that may come in, or whose owner may learn why not, is worth a signature. */
  async function onOffer(request: Request, attempt: Attempt, decision: Decision) {
    if (!decision.allowed && !decision.disclose)
      return fail(attempt, { reason: decision.reason, isGuess: true });
    client.send(message(SSH.USERAUTH_PK_OK, request.algorithm, request.blob));
  }

  async function fail(attempt: Partial<Attempt>, refused: Refused): Promise<void> {
    options.onRefused({ remoteAddress, ...attempt }, refused);
    failures += 1;
    if (failures >= limits.maxAuthAttempts) return fault(DISCONNECT.NO_MORE_AUTH_METHODS, TOO_MANY);
    const ms = options.failureMs();
    if (ms > 0) await new Promise<void>((resolve) => options.barrier.after(ms, resolve));
    client.send(authFailure());
  }
}

function readRequest(payload: Buffer, sessionId: Buffer): Request {
  const fields = new WireReader(payload, 1);
  const request: Request = {
    loginName: fields.text(),
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
  request.proof = isSignedBy(request.key, fields.bytes(), data);
  return request;
}
