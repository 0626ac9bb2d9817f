/**
 * Admission of connections: fair shares of the slots for logins in progress (lib/fair-shares.ts), rate limits of
 * handshakes, limits of sessions for each source and person, and a back-off after failures. A source is an address,
 * or a network of 56 bits (IPv6); one with a recent login is known, and unknown sources cannot use the slots reserved
 * for known ones. Permissions are not decided here.
 */
import { type Claim, FairShares, type Shares } from '../../../lib/fair-shares.ts';
import { createBackOffLimiter, createRateLimiter } from '../../../lib/limits.ts';
import { sourceNetwork } from '../../../lib/source-address.ts';
import type { GatewayLimits } from '../limits.ts';

/** A refusal of a connection: a reason from a fixed set, perhaps a detail for the log, and a line for the person. */
export interface Refusal {
  reason: string;
  text: string;
  detail?: string;
}

export interface Connection {
  /** Begins its login. `leave` gives its slot back, during or after the login; safe to call again. */
  start(leave: () => void): void;
  /** Refuses the connection, or takes the slot that it had, since there are too many. */
  giveWay(): void;
  /** True if it has sent no message of a key exchange after its KEXINIT. */
  isIdle(): boolean;
}

export const tooMany: Refusal = {
  reason: 'too_many_logins',
  text: 'Too many logins at once. Please try again in a minute.',
};

/** Of a scan, or a health check: it leaves without a login. */
export const noLogin: Refusal = { reason: 'no login', text: '' };

export const maxHandshakeWaitMs = 10_000;

/** A source stays known at least this long after a login. */
const knownMs = 7 * 24 * 3_600_000;
/** The share of the slots for logins in progress that unknown sources may use. */
const unknownShare = 0.75;

const forgetFailuresMs = 10 * 60_000;

export class Admission {
  #limits: GatewayLimits;
  readonly #waiting = new Map<string, number>();
  readonly #bySource = new Map<string, number>();
  readonly #byUser = new Map<string, number>();
  readonly #slots: FairShares;
  /** Not a limit: remembers the sources of logins, until their one token is refilled. */
  readonly #lately = createRateLimiter({ burst: 1, everyMs: knownMs });
  #limiters: ReturnType<typeof limitersOf>;

  constructor(limits: GatewayLimits) {
    this.#limits = limits;
    this.#slots = new FairShares(sharesOf(limits));
    this.#limiters = limitersOf(limits);
  }

  /** Applies other limits. Rate counters of handshakes and failures start again. */
  configure(limits: GatewayLimits): void {
    this.#limits = limits;
    this.#slots.configure(sharesOf(limits));
    this.#limiters = limitersOf(limits);
  }

  /** Queues a new connection: it is started or gives way, at once or after waiting. */
  enter(address: string, connection: Connection): void {
    const { unauthenticatedPerSource: each, unauthenticatedPerKnownSource: known } = this.#limits;
    const source = sourceNetwork(address);
    const isKnown = () => this.#isKnown(source);
    const claim: Claim = {
      source,
      // A login of the same source may succeed while this one waits.
      get isKnown() {
        return isKnown();
      },
      most: isKnown() ? Math.max(known, each) : each,
      start: () => connection.start(() => this.#slots.leave(claim)),
      giveWay: () => connection.giveWay(),
      isIdle: () => connection.isIdle(),
    };
    this.#slots.enter(claim);
  }

  refuseWaiting(): void {
    this.#slots.clear();
  }

  /** Counts a connection whose key is proven as a session of the person until `end`, unless it is refused. */
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
    // The rate limits handshakes without a login: a script may log in as often as it likes.
    this.#limiters.ofSource.undo(source);
    this.#lately.use(source);
    return undefined;
  }

  /** Counts a login of a person that waits for their sign-in until `endWait`, unless it is refused. */
  wait(userId: string): Refusal | undefined {
    const text = 'Too many of your logins wait for a sign-in. Please sign in, and connect again.';
    if ((this.#waiting.get(userId) ?? 0) >= this.#limits.waitingPerUser)
      return { reason: 'too_many_waiting', text };
    add(this.#waiting, userId, 1);
    return undefined;
  }

  endWait(userId: string): void {
    add(this.#waiting, userId, -1);
  }

  end(address: string, userId: string): void {
    add(this.#byUser, userId, -1);
    add(this.#bySource, sourceNetwork(address), -1);
  }

  /** Takes a token for a handshake: milliseconds until it may begin. */
  handshakeMs(address: string): number {
    const source = sourceNetwork(address);
    const { ofSource, ofAll } = this.#limiters;
    const own = ofSource.take(source, maxHandshakeWaitMs);
    return this.#isKnown(source) ? own : Math.max(own, ofAll.take('', maxHandshakeWaitMs));
  }

  /** The same for new keys on a connection to a login node: limited for that node only, so that no other handshake waits. */
  nodeHandshakeMs(id: string): number {
    return this.#limiters.ofSource.take(`node ${id}`, maxHandshakeWaitMs);
  }

  /** How long the answer to a failed login is delayed. */
  failureMs(address: string): number {
    const source = sourceNetwork(address);
    return this.#bySource.has(source) ? 0 : this.#limiters.ofFailures.delayMs(source);
  }

  /** A connection has ended on which only wrong keys were offered. */
  failed(address: string): void {
    this.#limiters.ofFailures.use(sourceNetwork(address));
  }

  #isKnown(source: string): boolean {
    return this.#bySource.has(source) || this.#lately.waitMs(source) > 0;
  }
}

function sharesOf({ unauthenticated, queued, queuedPerSource, queueMs }: GatewayLimits): Shares {
  return {
    slots: unauthenticated,
    slotsOfUnknown: Math.ceil(unauthenticated * unknownShare),
    waiting: queued,
    waitingPerSource: queuedPerSource,
    waitMs: queueMs,
  };
}

/** Rate limiters of failures, and of handshakes of each source and in total. */
function limitersOf(limits: GatewayLimits) {
  const { backoffAfterFailures: free, backoffMs: firstMs, backoffMaxMs: mostMs } = limits;
  const handshakes = (perSecond: number, burst: number) =>
    createRateLimiter({ burst, everyMs: 1000 / perSecond });
  return {
    ofFailures: createBackOffLimiter({ free, firstMs, mostMs, forgetMs: forgetFailuresMs }),
    ofSource: handshakes(limits.handshakesPerSource, limits.handshakesPerSourceBurst),
    ofAll: handshakes(limits.handshakes, limits.handshakesBurst),
  };
}

function add(counts: Map<string, number>, key: string, by: number): void {
  const count = (counts.get(key) ?? 0) + by;
  if (count > 0) counts.set(key, count);
  else counts.delete(key);
}
