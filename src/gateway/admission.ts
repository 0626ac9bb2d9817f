/**
 * How many may come in: bounds on connections that have not logged in, on handshakes, on sessions a source and a person,
 * and a delay for failures. A source is an address, or a network of 64 bits (IPv6). A source with a live session is
 * spared what is there against strangers. What persons may do is not decided here.
 */
import { type BackOff, createBackOff } from '../lib/back-off.ts';
import { createRateLimit, type RateLimit } from '../lib/rate-limit.ts';
import { sourceNetwork } from '../lib/source-address.ts';
import type { GatewayLimits } from './limits.ts';

/** Why not: a word for the log, a line for the person. */
export interface Refusal {
  reason: string;
  text: string;
}

/** A connection that waits until others of its source have logged in or left. */
export interface Waiting {
  start(): void;
  refuse(refusal: Refusal): void;
}

export interface Admission {
  /** A connection is there. Where nothing is returned it counts until `leave` or `admit`; `wait` says to call `queue`. */
  enter(address: string): Refusal | 'wait' | undefined;
  /** Lets it wait: it is started once there is a place, and never after the function returned was called. */
  queue(address: string, waiting: Waiting): () => void;
  /** Refuses all that wait. */
  refuseWaiting(refusal: Refusal): void;
  /** Somebody is proven: from now on it counts as a session of theirs until `end`, unless it is refused. */
  admit(address: string, userId: string): Refusal | undefined;
  leave(address: string): void;
  end(address: string, userId: string): void;
  /** Takes a handshake: milliseconds until it may begin. */
  handshakeMs(address: string): number;
  /** The same for new keys on a connection to a login node, which nobody else waits for. */
  nodeHandshakeMs(id: string): number;
  /** How long the answer to a failed login is kept back. */
  failureMs(address: string): number;
  /** A connection has ended on which only wrong keys were offered. */
  failed(address: string): void;
}

export const tooMany: Refusal = {
  reason: 'too_many_logins',
  text: 'Too many logins at once. Please try again in a minute.',
};

/** No handshake waits longer. */
export const maxHandshakeWaitMs = 10_000;

const forgetFailuresMs = 10 * 60_000;
/** Whoever has five keys offers four wrong ones first: with all their failures the right one still comes in time. */
const longestFailureMs = 2_000;

function createFailureBackOff(
  limits: Pick<GatewayLimits, 'backoffAfter' | 'backoffMs' | 'backoffMaxMs'>,
): BackOff {
  const mostMs = Math.min(limits.backoffMaxMs, longestFailureMs);
  const { backoffAfter: free, backoffMs: firstMs } = limits;
  return createBackOff({ free, firstMs, mostMs, forgetMs: forgetFailuresMs }, Date.now);
}

function createHandshakeLimit(perSecond: number, burst: number): RateLimit {
  return createRateLimit({ burst, everyMs: 1000 / perSecond }, Date.now);
}

/** `random` gives numbers from 0 to 1 (not 1). */
export function createAdmission(limits: GatewayLimits, random: () => number = Math.random): Admission {
  const strangers = new Map<string, number>();
  const bySource = new Map<string, number>();
  const byUser = new Map<string, number>();
  const queues = new Map<string, Waiting[]>();
  const backOff = createFailureBackOff(limits);
  const ofSource = createHandshakeLimit(limits.handshakesPerSource, limits.handshakesPerSourceBurst);
  const ofAll = createHandshakeLimit(limits.handshakes, limits.handshakesBurst);
  let open = 0;
  let queued = 0;

  function leave(address: string) {
    const source = sourceNetwork(address);
    open -= 1;
    add(strangers, source, -1);
    const [next] = queues.get(source) ?? [];
    if (!next) return;
    dequeue(source, next);
    next.start();
  }

  function dequeue(source: string, waiting: Waiting) {
    const line = queues.get(source);
    const at = line?.indexOf(waiting) ?? -1;
    if (!line || at < 0) return;
    line.splice(at, 1);
    queued -= 1;
    if (line.length === 0) queues.delete(source);
  }

  return {
    enter(address) {
      const source = sourceNetwork(address);
      const spared = bySource.has(source);
      const { unauthenticatedPerSource: each, unauthenticatedWithSession: known } = limits;
      const most = spared ? Math.max(known, each) : each;
      const crowded = spared ? open >= 2 * limits.unauthenticatedFull : isRefused(open, limits, random);
      if (crowded) return tooMany;
      if ((strangers.get(source) ?? 0) >= most) {
        const full = (queues.get(source)?.length ?? 0) >= limits.queuedPerSource || queued >= limits.queued;
        return full ? tooMany : 'wait';
      }
      open += 1;
      add(strangers, source, 1);
      return undefined;
    },
    queue(address, waiting) {
      const source = sourceNetwork(address);
      queues.set(source, [...(queues.get(source) ?? []), waiting]);
      queued += 1;
      return () => dequeue(source, waiting);
    },
    refuseWaiting(refusal) {
      const all = [...queues.values()].flat();
      queues.clear();
      queued = 0;
      for (const waiting of all) waiting.refuse(refusal);
    },
    admit(address, userId) {
      const source = sourceNetwork(address);
      const { sessionsPerUser, sessionsPerSource } = limits;
      if ((byUser.get(userId) ?? 0) >= sessionsPerUser) {
        const text = `You have ${sessionsPerUser} sessions open, which is the most. Please close some first.`;
        return { reason: 'too_many_sessions', text };
      }
      if ((bySource.get(source) ?? 0) >= sessionsPerSource) {
        const text = `${sessionsPerSource} sessions are open from your address, which is the most. Please close some first.`;
        return { reason: 'too_many_sessions', text };
      }
      add(byUser, userId, 1);
      add(bySource, source, 1);
      leave(address);
      return undefined;
    },
    leave,
    end(address, userId) {
      add(byUser, userId, -1);
      add(bySource, sourceNetwork(address), -1);
    },
    handshakeMs(address) {
      const source = sourceNetwork(address);
      const own = ofSource.reserve(source, maxHandshakeWaitMs);
      return bySource.has(source) ? own : Math.max(own, ofAll.reserve('', maxHandshakeWaitMs));
    },
    nodeHandshakeMs: (id) => ofSource.reserve(`node ${id}`, maxHandshakeWaitMs),
    failureMs(address) {
      const source = sourceNetwork(address);
      return bySource.has(source) ? 0 : backOff.delayMs(source);
    },
    failed: (address) => backOff.failed(sourceNetwork(address)),
  };
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
