/** The work of this server as the leader, while it leads. `shared.ts` decides when it takes the lead. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../../../lib/log.ts';
import type { Store } from '../../../store/engine/index.ts';
import { findToken, type Lead, NotLeaderError, storeOfLeader } from '../../../store/servers/leader.ts';

/**
 * Starts the leader's work. Returns a function that ends it: `lost` where another server may lead already, `left`
 * where this one gives the lead away.
 */
export type LeaderWork = (lead: Lead) => (why: 'lost' | 'left') => Promise<void>;

/**
 * How long the next leader, or this server's next lead, waits for this lead's work to end. Slower work, as on a host
 * that does not answer, can change nothing: its token is old.
 */
const endMs = 2_000;

export interface LeadingOptions {
  store: Store;
  log: Logger;
  /** Allows this server to take the lead from now on. */
  wake(): void;
  /** True if this server's last heartbeat is so recent, by its own clock, that no other server can have taken the lead. */
  isInTime(): boolean;
}

export class Leading {
  readonly #options: LeadingOptions;
  #work: LeaderWork | undefined;
  #lead: { lead: Lead; token: number; end: ReturnType<LeaderWork> } | undefined;
  #isEnding = false;
  /** Resolves when all work of ended leads is over. */
  #ended: Promise<unknown> = Promise.resolve();

  constructor(options: LeadingOptions) {
    this.#options = options;
  }

  get lead(): Lead | undefined {
    return this.#lead?.lead;
  }

  /** True if this server would take the lead. */
  get isWanted(): boolean {
    return this.#work !== undefined && !this.#lead && !this.#isEnding;
  }

  want(work: LeaderWork): void {
    this.#work = work;
    this.#options.wake();
  }

  begin(token: number): void {
    if (!this.#work || !this.isWanted) return;
    this.#options.log.info('leader.began', { token });
    const lead = this.#leadOf(token);
    this.#lead = { lead, token, end: this.#work(lead) };
  }

  #leadOf(token: number): Lead {
    const { store, isInTime } = this.#options;
    const lost = () => {
      if (this.#lead?.token === token) this.lose();
    };
    // Timers of a stalled process fire late: other events may be handled before them.
    const requireTime = () => {
      if (this.#lead?.token !== token || !isInTime()) throw new NotLeaderError();
    };
    return {
      token,
      store: storeOfLeader(store, token, lost),
      requireTime,
      async confirm() {
        requireTime();
        if ((await findToken(store)) !== token) {
          lost();
          throw new NotLeaderError();
        }
        requireTime();
      },
    };
  }

  /** Ends the lead if it began before `token` was read and has another token. */
  compare(before: Lead | undefined, token: number | undefined): void {
    if (before && this.lead === before && before.token !== token) this.lose();
  }

  /** Ends the lead: another server may lead by now. */
  lose(): void {
    void this.#end('lost').then(() => this.#options.wake());
  }

  /** Ends the lead for good, and calls `leave` when the next leader may begin. Resolves when all work has ended. */
  async stop(leave: () => Promise<void>): Promise<void> {
    this.#work = undefined;
    const led = this.#lead !== undefined;
    await this.#end('left');
    if (led) await leave();
    await this.#ended;
  }

  async #end(why: 'lost' | 'left'): Promise<void> {
    const { log } = this.#options;
    const before = this.#lead;
    if (!before) return;
    this.#lead = undefined;
    this.#isEnding = true;
    if (why === 'lost') log.warn('leader.lost', { token: before.token });
    else log.info('leader.left', { token: before.token });
    const ended = before.end(why).catch((error: unknown) => log.error('leader.end.failed', { error }));
    this.#ended = Promise.all([this.#ended, ended]);
    await Promise.race([ended, sleep(endMs, undefined, { ref: false })]);
    this.#isEnding = false;
  }
}
