/**
 * How many connections come in: bounds on connections that have not logged in, on handshakes, on sessions for each source
 * and person, and a delay for failures. A source is an address, or a network of 64 bits (IPv6). The bounds for
 * unauthenticated clients are wider for a source that has a session. What people may do is not decided here.
 */
import { type BackOff, createBackOff } from '../lib/back-off.ts';
import { createRateLimit, type RateLimit } from '../lib/rate-limit.ts';
import { sourceNetwork } from '../lib/source-address.ts';
import type { GatewayLimits } from './limits.ts';

/** Why a connection is refused: a reason for the log, a line for the person. */
export interface Refusal {
  reason: string;
  text: string;
}

/** A connection in the queue, until others of its source have logged in or left. */
export interface Waiting {
  start(): void;
  refuse(refusal: Refusal): void;
}

export const tooMany: Refusal = {
  reason: 'too_many_logins',
  text: 'Too many logins at once. Please try again in a minute.',
};

/** No handshake waits longer. */
export const maxHandshakeWaitMs = 10_000;

const forgetFailuresMs = 10 * 60_000;
/** A client with five keys may offer four wrong ones first: its right key must still come before the login times out. */
const longestFailureMs = 2_000;

export class Admission {
  #limits: GatewayLimits;
  readonly #random: () => number;
  readonly #unauthenticated = new Map<string, number>();
  readonly #bySource = new Map<string, number>();
  readonly #byUser = new Map<string, number>();
  readonly #queues = new Map<string, Waiting[]>();
  #backOff: BackOff;
  #ofSource: RateLimit;
  #ofAll: RateLimit;
  #open = 0;
  #queued = 0;

  /** `random` gives numbers from 0 to 1 (not 1). */
  constructor(limits: GatewayLimits, random: () => number = Math.random) {
    this.#limits = limits;
    this.#random = random;
    this.#backOff = createFailureBackOff(limits);
    this.#ofSource = createHandshakeLimit(limits.handshakesPerSource, limits.handshakesPerSourceBurst);
    this.#ofAll = createHandshakeLimit(limits.handshakes, limits.handshakesBurst);
  }

  /** Other limits from now on. What counts by time, of handshakes and failures, begins anew. */
  configure(limits: GatewayLimits): void {
    this.#limits = limits;
    this.#backOff = createFailureBackOff(limits);
    this.#ofSource = createHandshakeLimit(limits.handshakesPerSource, limits.handshakesPerSourceBurst);
    this.#ofAll = createHandshakeLimit(limits.handshakes, limits.handshakesBurst);
  }

  /** A new connection. Where nothing is returned it counts until `leave` or `admit`; for `wait` call `queue`. */
  enter(address: string): Refusal | 'wait' | undefined {
    const limits = this.#limits;
    const source = sourceNetwork(address);
    const hasSession = this.#bySource.has(source);
    const { unauthenticatedPerSource: each, unauthenticatedWithSession: known } = limits;
    const most = hasSession ? Math.max(known, each) : each;
    const crowded = hasSession
      ? this.#open >= 2 * limits.unauthenticatedFull
      : isRefused(this.#open, limits, this.#random);
    if (crowded) return tooMany;
    if ((this.#unauthenticated.get(source) ?? 0) >= most) {
      const length = this.#queues.get(source)?.length ?? 0;
      return length >= limits.queuedPerSource || this.#queued >= limits.queued ? tooMany : 'wait';
    }
    this.#open += 1;
    add(this.#unauthenticated, source, 1);
    return undefined;
  }

  /** Queues it: it is started when another of its source leaves, and never after the function returned was called. */
  queue(address: string, waiting: Waiting): () => void {
    const source = sourceNetwork(address);
    this.#queues.set(source, [...(this.#queues.get(source) ?? []), waiting]);
    this.#queued += 1;
    return () => this.#dequeue(source, waiting);
  }

  /** Refuses all in the queues. */
  refuseWaiting(refusal: Refusal): void {
    const all = [...this.#queues.values()].flat();
    this.#queues.clear();
    this.#queued = 0;
    for (const waiting of all) waiting.refuse(refusal);
  }

  /** A person has proved a key: the connection counts as a session of theirs until `end`, unless it is refused. */
  admit(address: string, userId: string): Refusal | undefined {
    const source = sourceNetwork(address);
    const { sessionsPerUser, sessionsPerSource } = this.#limits;
    if ((this.#byUser.get(userId) ?? 0) >= sessionsPerUser) {
      const text = `You have ${sessionsPerUser} sessions open, which is the most. Please close some first.`;
      return { reason: 'too_many_sessions', text };
    }
    if ((this.#bySource.get(source) ?? 0) >= sessionsPerSource) {
      const text = `${sessionsPerSource} sessions are open from your address, which is the most. Please close some first.`;
      return { reason: 'too_many_sessions', text };
    }
    add(this.#byUser, userId, 1);
    add(this.#bySource, source, 1);
    // The rate is for handshakes that come to nothing: a script may log in as often as it likes.
    this.#ofSource.undo(source);
    this.leave(address);
    return undefined;
  }

  leave(address: string): void {
    const source = sourceNetwork(address);
    this.#open -= 1;
    add(this.#unauthenticated, source, -1);
    const [next] = this.#queues.get(source) ?? [];
    if (!next) return;
    this.#dequeue(source, next);
    next.start();
  }

  end(address: string, userId: string): void {
    add(this.#byUser, userId, -1);
    add(this.#bySource, sourceNetwork(address), -1);
  }

  /** Takes a handshake: milliseconds until it may begin. */
  handshakeMs(address: string): number {
    const source = sourceNetwork(address);
    const own = this.#ofSource.reserve(source, maxHandshakeWaitMs);
    return this.#bySource.has(source) ? own : Math.max(own, this.#ofAll.reserve('', maxHandshakeWaitMs));
  }

  /** The same for new keys on a connection to a login node, which nobody else waits for. */
  nodeHandshakeMs(id: string): number {
    return this.#ofSource.reserve(`node ${id}`, maxHandshakeWaitMs);
  }

  /** How long the answer to a failed login is delayed. */
  failureMs(address: string): number {
    const source = sourceNetwork(address);
    return this.#bySource.has(source) ? 0 : this.#backOff.delayMs(source);
  }

  /** A connection has ended on which only wrong keys were offered. */
  failed(address: string): void {
    this.#backOff.failed(sourceNetwork(address));
  }

  #dequeue(source: string, waiting: Waiting): void {
    const queue = this.#queues.get(source);
    const at = queue?.indexOf(waiting) ?? -1;
    if (!queue || at < 0) return;
    queue.splice(at, 1);
    this.#queued -= 1;
    if (queue.length === 0) this.#queues.delete(source);
  }
}

function createFailureBackOff(
  limits: Pick<GatewayLimits, 'backoffAfter' | 'backoffMs' | 'backoffMaxMs'>,
): BackOff {
  const mostMs = Math.min(limits.backoffMaxMs, longestFailureMs);
  const { backoffAfter: free, backoffMs: firstMs } = limits;
  return createBackOff({ free, firstMs, mostMs, forgetMs: forgetFailuresMs }, () => performance.now());
}

function createHandshakeLimit(perSecond: number, burst: number): RateLimit {
  return createRateLimit({ burst, everyMs: 1000 / perSecond }, () => performance.now());
}

/** Random early drop, as sshd's MaxStartups: none below `start`, `rate` percent from there, rising to all at `full`. */
export function isRefused(
  waiting: number,
  limits: Pick<GatewayLimits, 'unauthenticatedStart' | 'unauthenticatedRate' | 'unauthenticatedFull'>,
  random: () => number,
): boolean {
  const { unauthenticatedStart: start, unauthenticatedRate: rate, unauthenticatedFull: full } = limits;
  if (waiting >= full) return true;
  if (waiting < start) return false;
  const percent = rate + ((100 - rate) * (waiting - start)) / (full - start);
  return random() * 100 < percent;
}

function add(counts: Map<string, number>, key: string, by: number): void {
  const count = (counts.get(key) ?? 0) + by;
  if (count > 0) counts.set(key, count);
  else counts.delete(key);
}
