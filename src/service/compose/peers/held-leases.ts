/** What this server does in the name of leases, while it has them. When it asks for them is for `servers.ts` to say. */
import type { Logger } from '../../../lib/log.ts';
import type { Store } from '../../../store/engine/index.ts';
import {
  type Duty,
  type Lease,
  LeaseLostError,
  type Leases,
  requireLease,
  storeOfLease,
} from '../../../store/servers/leases.ts';

interface Entry {
  readonly name: string;
  readonly duty: Duty;
  /** `ending`: what was begun has not ended yet, so that it cannot begin again. */
  state: 'wanted' | 'held' | 'ending';
  token: number | undefined;
  ended: Promise<void>;
}

export interface HeldLeasesOptions {
  store: Store;
  log: Logger;
  /** There is something to ask for. */
  wake(): void;
  /** Leaves a lease to others; resolves when that is written, or could not be. */
  free(name: string): Promise<void>;
  /** Whether this server renewed so lately, by its own clock, that no other server can have taken its leases. */
  isInTime(): boolean;
}

export class HeldLeases implements Leases {
  readonly areAllHeld = false;
  readonly #options: HeldLeasesOptions;
  readonly #entries = new Map<string, Entry>();

  constructor(options: HeldLeasesOptions) {
    this.#options = options;
  }

  /** Those that this server would take. */
  get wanted(): string[] {
    return this.#inState('wanted').map(({ name }) => name);
  }

  get held(): string[] {
    return [...this.tokens.keys()];
  }

  get tokens(): Map<string, number | undefined> {
    return new Map(this.#inState('held').map(({ name, token }) => [name, token]));
  }

  want(name: string, duty: Duty): () => Promise<void> {
    const entry: Entry = { name, duty, state: 'wanted', token: undefined, ended: Promise.resolve() };
    this.#entries.set(name, entry);
    this.#options.wake();
    return async () => {
      if (this.#entries.get(name) !== entry) return;
      const wasHeld = entry.state === 'held';
      if (wasHeld) this.#end(entry, 'left');
      await entry.ended;
      this.#entries.delete(name);
      if (wasHeld) await this.#options.free(name);
    };
  }

  /** Begins what goes with leases that were taken. */
  begin(tokens: ReadonlyMap<string, number>): void {
    for (const [name, token] of tokens) {
      const entry = this.#entries.get(name);
      // No longer wanted.
      if (entry?.state !== 'wanted') continue;
      entry.state = 'held';
      entry.token = token;
      this.#options.log.info('lease.taken', { lease: name, token });
      entry.duty.begin(this.#leaseOf(entry, token));
    }
  }

  #leaseOf(entry: Entry, token: number): Lease {
    const { store, isInTime } = this.#options;
    const { name } = entry;
    const lost = () => {
      if (entry.token === token) this.#end(entry, 'lost');
    };
    // Timers of a process that stood still fire late: what came meanwhile may be handled before them.
    const requireTime = () => {
      if (entry.token !== token || !isInTime()) throw new LeaseLostError(name);
    };
    return {
      name,
      token,
      store: storeOfLease(store, { name, token }, lost),
      requireTime,
      async confirm() {
        requireTime();
        await requireLease(store, { name, token }, lost);
        requireTime();
      },
    };
  }

  /**
   * Ends the duties of leases in `before` that, by `tokens` from the database, this server no longer holds. Returns the names in
   * `tokens` for which this server has no duty.
   */
  compare(before: HeldLeases['tokens'], tokens: ReadonlyMap<string, number>): string[] {
    for (const entry of this.#inState('held')) {
      const wasHeld = before.get(entry.name) === entry.token;
      if (wasHeld && tokens.get(entry.name) !== entry.token) this.#end(entry, 'lost');
    }
    return [...tokens.keys()].filter((name) => !this.#entries.has(name));
  }

  /** Ends everything: others may have it by now. */
  loseAll(): void {
    for (const entry of this.#inState('held')) this.#end(entry, 'lost');
  }

  #inState(state: Entry['state']): Entry[] {
    return [...this.#entries.values()].filter((entry) => entry.state === state);
  }

  #end(entry: Entry, why: 'lost' | 'left'): void {
    if (entry.state !== 'held') return;
    const { name, duty } = entry;
    const { log, wake } = this.#options;
    entry.state = 'ending';
    entry.token = undefined;
    if (why === 'lost') log.warn('lease.lost', { lease: name });
    else log.info('lease.left', { lease: name });
    entry.ended = duty
      .end(why)
      .catch((error: unknown) => log.error('lease.end.failed', { lease: name, error }))
      .then(() => {
        entry.state = 'wanted';
        if (why === 'lost') wake();
      });
  }
}
