/**
 * This server among those that share the database. It writes a heartbeat every few seconds, takes the lead where no
 * live server has it, and gives it up when it cannot write the heartbeat for a while.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { DomainError } from '../../../domain/error.ts';
import {
  clockFault,
  clockLimitMs,
  clockText,
  differenceOf,
  giveUpMs,
  heartbeatMs,
  type Server,
  serverLifeMs,
} from '../../../domain/server.ts';
import type { Logger } from '../../../lib/log.ts';
import { type Rounds, startRounds } from '../../../lib/rounds.ts';
import { hears, type Store, type Tx } from '../../../store/engine/index.ts';
import { findToken, isLeadFree, type Lead, leaveLead, takeLead } from '../../../store/servers/leader.ts';
import {
  type Entrant,
  enterServer,
  leaveServers,
  listServers,
  measureClock,
  refuseSimulated,
  renewServer,
} from '../../../store/servers/servers.ts';
import { createAsking } from './asking.ts';
import { type LeaderWork, Leading } from './leading.ts';
import type { Peers } from './peers.ts';

/**
 * The heartbeat's interval; how long without one gives up the lead; the interval of attempts to take the lead; and
 * how long the others must be watched before one counts as gone.
 */
const usual = { heartbeatMs, giveUpMs, pollMs: 1_000, lifeMs: serverLifeMs };
export type Times = typeof usual;
const topic = 'leader';
const leaveMs = 2_000;
/** For writes that are found out again, or renewed, in a moment: no fsync. */
const unflushed = { flush: false };

/** Registers this server among the others. Throws `invalid_state` where it may not serve next to them. */
export async function joinShared(
  options: Omit<MemberOptions, 'times'> & { times: Partial<Times> },
): Promise<Peers> {
  await enterBesides(options.store, options.entrant);
  const peers = new SharedPeers({ ...options, times: { ...usual, ...options.times } });
  await peers.start();
  return peers;
}

async function enter(store: Store, entrant: Entrant): Promise<void> {
  await store.write(async (tx) => {
    await enterServer(tx, entrant);
    await refuseSimulated(tx);
  });
}

/** Registers the server; where another is in the way, waits until it is clear whether that one is alive. */
async function enterBesides(store: Store, entrant: Entrant): Promise<void> {
  const live = async () => (await listServers(store)).filter(({ isLive }) => isLive);
  const before = new Map((await live()).map(({ id, seenAt }) => [id, seenAt]));
  const until = performance.now() + serverLifeMs + heartbeatMs;
  for (;;) {
    try {
      return await enter(store, entrant);
    } catch (error) {
      const isRefused = error instanceof DomainError && error.code === 'invalid_state';
      const isSeenAgain = (await live()).some(({ id, seenAt }) => before.get(id) !== seenAt);
      if (!isRefused || isSeenAgain || performance.now() > until) throw error;
      await sleep(usual.pollMs);
    }
  }
}

interface MemberOptions {
  store: Store;
  entrant: Entrant;
  log: Logger;
  now(): number;
  times: Times;
}

class SharedPeers implements Peers {
  readonly #leading: Leading;
  clockFault: string | undefined;
  readonly ask: Peers['ask'];
  readonly answer: Peers['answer'];
  readonly #store: Store;
  readonly #entrant: Entrant;
  readonly #log: Logger;
  readonly #now: () => number;
  readonly #times: Times;
  readonly #stopListening: () => void;
  #timer: NodeJS.Timeout | undefined;
  #rounds: Rounds | undefined;
  #renewing: Promise<void> | undefined;
  #isStopping = false;
  /** Start of the last successful heartbeat, by the monotonic clock. */
  #renewedAt = performance.now();
  /** Message of the last failure, for renewing and for taking the lead. */
  readonly #lastFailures = new Map<'renew' | 'round', string>();
  #isClockWrong = false;
  readonly #others = new Map<string, Server>();
  /** Time of the last look at the others, and since when these looks have had no pause. */
  #askedAt = Number.NEGATIVE_INFINITY;
  #watchingSince = 0;

  constructor({ store, entrant, log, now, times }: MemberOptions) {
    this.#store = store;
    this.#entrant = entrant;
    this.#log = log;
    this.#now = now;
    this.#times = times;
    this.#leading = new Leading({
      store,
      log,
      wake: () => this.#rounds?.wake(),
      isInTime: () => !this.#hasGivenUp,
    });
    const { ask, answer, stop } = createAsking(store, log);
    this.ask = ask;
    this.answer = answer;
    const stops = [
      stop,
      store.messages.on(topic, () => this.#rounds?.wake()),
      // Generations repeat after a database went back, and hosts take them only with a higher token.
      store.onChange(hears.leader, (changes) => {
        if (changes.some(({ wentBack }) => wentBack)) this.#leading.lose();
      }),
    ];
    this.#stopListening = () => {
      for (const stop of stops) stop();
    };
  }

  forOthers<T>(make: () => T): T {
    return make();
  }

  get lead(): Lead | undefined {
    return this.#leading.lead;
  }

  whileLeading(work: LeaderWork): () => Promise<void> {
    this.#leading.want(work);
    return () => this.#leading.stop(() => this.#leave(leaveLead));
  }

  async start(): Promise<void> {
    // The clock is checked before this server serves.
    await this.#attempt('renew', () => this.#renew());
    // Not in a round, which may be waiting for the database.
    this.#timer = setInterval(() => this.#tick(), this.#times.pollMs).unref();
    this.#rounds = startRounds(() => this.#attempt('round', () => this.#round()), {
      everyMs: this.#times.pollMs,
      onFault() {},
    });
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    clearInterval(this.#timer);
    this.#stopListening();
    const atRest = Promise.all([this.#rounds?.stop(), this.#renewing]);
    await this.#leave(leaveServers, atRest);
  }

  /** A database that is away does not delay the end: the others notice by themselves. */
  async #leave(
    leave: (tx: Tx) => Promise<void>,
    atRest: Promise<unknown> = Promise.resolve(),
  ): Promise<void> {
    const left = atRest
      .then(() => this.#store.write(leave, unflushed))
      .then(() => this.#store.messages.send(topic, {}));
    await Promise.race([left.catch(() => {}), sleep(leaveMs, undefined, { ref: false })]);
  }

  #tick(): void {
    if (this.lead && this.#hasGivenUp) this.#giveUp();
    if (this.#isDueToRenew()) void this.#attempt('renew', () => this.#renew());
  }

  #isDueToRenew(): boolean {
    const isTime = performance.now() - this.#renewedAt >= this.#times.heartbeatMs;
    return !this.#isStopping && !this.#renewing && (isTime || this.#hasGivenUp);
  }

  /** True if the heartbeat is so old that another server may soon lead. */
  get #hasGivenUp(): boolean {
    return performance.now() - this.#renewedAt > this.#times.giveUpMs;
  }

  #giveUp(): void {
    const message = `The database could not be told for ${this.#times.giveUpMs / 1000} seconds that this server is there, so it leaves to others what the leader does.`;
    this.#log.warn('leader.given_up', { message });
    this.#leading.lose();
  }

  async #attempt(what: 'renew' | 'round', run: () => Promise<void>): Promise<void> {
    try {
      await run();
      this.#lastFailures.delete(what);
    } catch (error) {
      const { message } = error as Error;
      // Logged once, not every second.
      if (![...this.#lastFailures.values()].includes(message)) this.#log.error('servers.failed', { error });
      this.#lastFailures.set(what, message);
    }
  }

  async #round(): Promise<void> {
    if (!this.#leading.isWanted || this.#hasGivenUp || !(await isLeadFree(this.#store))) return;
    const token = await this.#store.write(takeLead);
    if (token === undefined) return this.#renew();
    // A server that gave up while it waited takes the lead again, with another token.
    if (this.#hasGivenUp) return;
    try {
      this.#leading.begin(token);
    } catch (error) {
      // Another server may be able to lead.
      await this.#leave(leaveLead);
      throw error;
    }
  }

  /** Does not wait for the write lock: a server counts as live as long as it can write its heartbeat. */
  #renew(): Promise<void> {
    this.#renewing ??= this.#renewNow().finally(() => {
      this.#renewing = undefined;
    });
    return this.#renewing;
  }

  async #renewNow(): Promise<void> {
    const clockMs = await measureClock(this.#store.read, this.#now);
    const before = this.lead;
    const began = performance.now();
    if (await renewServer(this.#store, clockMs)) {
      // After the renewal: a server that took the lead because this one was not seen has committed that by now (`holdGone`).
      this.#leading.compare(before, before && (await findToken(this.#store)));
      if (this.#isStopping) return;
    } else {
      if (this.#isStopping) return;
      this.#leading.lose();
      await enter(this.#store, this.#entrant);
    }
    this.#renewedAt = began;
    this.#noteClock(clockMs);
    await this.#observeOthers(clockMs);
  }

  /** A clock that was right at the start may drift. */
  #noteClock(differsMs: number): void {
    this.#log.debug('servers.clock', { differsMs });
    // Hysteresis: a clock at the limit is not logged at every heartbeat.
    const isWrong = Math.abs(differsMs) >= (this.#isClockWrong ? clockLimitMs / 2 : clockLimitMs);
    if (isWrong === this.#isClockWrong) return;
    this.#isClockWrong = isWrong;
    const message = `The clock of this host is ${clockText(differsMs)}. Check the time synchronization of both (timedatectl).`;
    if (isWrong) this.#log.warn('servers.clock.wrong', { differsMs, message });
    else this.#log.info('servers.clock.right', { differsMs });
  }

  async #observeOthers(clockMs: number): Promise<void> {
    const { server } = this.#store;
    const all = (await listServers(this.#store)).filter(({ id }) => id !== server.id);
    const live = all.filter(({ isLive }) => isLive);
    this.clockFault = clockFault(
      clockMs,
      live.map(({ clockDiffersMs }) => clockDiffersMs),
    );
    this.#notePause();
    for (const one of live) {
      const { id, name, version } = one;
      if (!this.#others.has(id)) {
        this.#log.info('servers.seen', { serverId: id, name, version });
        const message = differenceOf(this.#entrant.settings, one);
        if (message !== undefined) this.#log.warn('servers.differ', { serverId: id, name, message });
      }
      this.#others.set(id, one);
    }
    // A server that left is no longer in the list; one without a heartbeat is gone only if this server watched all the time.
    const isWatched = performance.now() - this.#watchingSince >= this.#times.lifeMs;
    const ids = new Set((isWatched ? live : all).map(({ id }) => id));
    for (const [id, { name }] of this.#others) {
      if (ids.has(id)) continue;
      this.#others.delete(id);
      this.#log.info('servers.gone', { serverId: id, name });
    }
    this.#log.debug('servers.counted', { servers: live.length + 1 });
  }

  /** After a pause of this server, or of the database for all, missing heartbeats do not mean that the others were gone. */
  #notePause(): void {
    const now = performance.now();
    if (now - this.#askedAt > this.#times.giveUpMs) this.#watchingSince = now;
    this.#askedAt = now;
  }
}
