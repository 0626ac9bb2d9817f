/**
 * Chooses the PostgreSQL to serve from: the first host that takes writes, unless it is a former primary. A standby
 * that takes over begins the next timeline; a former primary that comes back takes writes on the one before, and lacks
 * what was written since. So the newest timeline that was seen on any host of the URL is kept, also in the data
 * directory, and a primary of an older one, or of another system, is refused.
 */
import { setTimeout as wait } from 'node:timers/promises';
import type { Logger } from '../../../lib/log.ts';
import { addressOf, type PostgresTarget } from '../../../lib/postgres-url.ts';
import { connectTo, type Host, type HostState, type Session, type Use } from './connect.ts';
import { PostgresError, postgresError } from './fault.ts';

export interface Timeline {
  system: string;
  number: number;
}

export interface TimelineNote {
  file: string;
  noted: Timeline | undefined;
  note(newest: Timeline): void;
}

/** After a failed connect, no attempt is made for this long. */
const restMs = 500;
/** How often the hosts that are not in use are asked. */
const watchMs = 2_000;

export class Primary {
  readonly #target: PostgresTarget;
  readonly #note: TimelineNote | undefined;
  readonly #log: Logger | undefined;
  readonly #closing = new AbortController();
  /** Open connections, with the timeline of their host. */
  readonly #sessions = new Map<Session, { address: string; number: number }>();
  /** Primaries that are refused, by address, and why. */
  readonly #former = new Map<string, string>();
  #newest: Timeline | undefined;
  #last: Host | undefined;
  #failed: { until: number; error: PostgresError } | undefined;

  constructor(
    target: PostgresTarget,
    { timeline, log }: { timeline?: TimelineNote | undefined; log?: Logger | undefined } = {},
  ) {
    this.#target = target;
    this.#note = timeline;
    this.#log = log;
    this.#newest = timeline?.noted;
  }

  /** The primaries that are refused, and why, as sentences. */
  get former(): readonly string[] {
    return [...this.#former.values()];
  }

  /** Connects to the host that was used last, or else to the others in their order. */
  async connect(use: Use): Promise<Session> {
    if (this.#failed && performance.now() < this.#failed.until) throw this.#failed.error;
    const failures = new Map<Host, PostgresError>();
    for (const host of new Set([this.#last ?? [], this.#target.hosts].flat())) {
      try {
        const session = await this.#connectTo(host, use);
        this.#last = host;
        this.#failed = undefined;
        return session;
      } catch (error) {
        failures.set(host, postgresError(error));
      }
    }
    const error = failureOfAll(failures);
    this.#failed = { until: performance.now() + restMs, error };
    throw error;
  }

  /** Ends all connections: their host does not answer any more, or takes no writes. */
  endAll(): void {
    for (const session of this.#sessions.keys()) session.destroy();
  }

  /** Checks the hosts that are not in use: one may have taken over, or take writes as a former primary. */
  async askOthers(): Promise<void> {
    const { hosts } = this.#target;
    // A single host is checked when it is connected to.
    if (hosts.length < 2) return;
    const used = new Set([...this.#sessions.values()].map(({ address }) => address));
    const others = hosts.filter((host) => !used.has(addressOf(host)));
    await Promise.all(
      others.map(async (host) => {
        const found = await connectTo(host, this.#target, 'reading').catch(() => undefined);
        await found?.session.close();
        try {
          if (found) this.#admit(host, found.state);
          else this.#setFormer(host, undefined);
        } catch {
          // A standby, or a former primary, which is noted.
        }
      }),
    );
  }

  async watch(): Promise<void> {
    const { signal } = this.#closing;
    const pause = () => wait(watchMs, true, { signal, ref: false }).catch(() => false);
    while (await pause()) await this.askOthers();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all([...this.#sessions.keys()].map((session) => session.close()));
  }

  async #connectTo(host: Host, use: Use): Promise<Session> {
    const { session, state } = await connectTo(host, this.#target, use).catch((error: unknown) => {
      this.#setFormer(host, undefined);
      throw error;
    });
    try {
      if (this.#closing.signal.aborted) throw new PostgresError('the database was closed', { isLost: true });
      const { number } = this.#admit(host, state);
      this.#sessions.set(session, { address: addressOf(host), number });
      session.once('end', () => this.#sessions.delete(session));
      return session;
    } catch (error) {
      session.destroy();
      throw error;
    }
  }

  /** Records the state that a host reports. Throws where it is a standby, or not the primary to serve from. */
  #admit(host: Host, { system, timeline }: HostState): Timeline {
    if (timeline === null) {
      this.#setFormer(host, undefined);
      throw new PostgresError('it is a standby', { isLost: true });
    }
    const found = { system, number: Number.parseInt(timeline, 16) };
    const reason = this.#whyNot(found);
    if (reason !== undefined) {
      const move = this.#note ? ` and move ${this.#note.file} away on each` : '';
      const message = `${reason}. To serve from it on purpose, stop all servers${move}`;
      this.#setFormer(host, `${addressOf(host)}: ${message}.`);
      throw new PostgresError(message, { isLost: true, isFormer: true });
    }
    this.#setFormer(host, undefined);
    if (this.#newest?.number !== found.number) this.#raise(found);
    return found;
  }

  #whyNot({ system, number }: Timeline): string | undefined {
    const newest = this.#newest;
    if (!newest) return undefined;
    if (newest.system !== system)
      return `it is another PostgreSQL than the one that was served from, by its system identifier (${system}, and that had ${newest.system})`;
    return number < newest.number
      ? `it is a former primary, on timeline ${number}, and timeline ${newest.number} has begun on another host`
      : undefined;
  }

  #raise(found: Timeline): void {
    this.#newest = found;
    try {
      this.#note?.note(found);
    } catch (error) {
      this.#log?.error('database.timeline.failed', { error: error as Error });
    }
    for (const [session, { number }] of this.#sessions) if (number < found.number) session.destroy();
  }

  /** Notes why a host is refused; undefined: it is not, it is no primary, or it does not answer. */
  #setFormer(host: Host, message: string | undefined): void {
    const address = addressOf(host);
    if (this.#former.get(address) === message) return;
    if (message === undefined) this.#former.delete(address);
    else this.#former.set(address, message);
    const fields = { primaries: this.#former.size, message: this.former.join(' ') };
    this.#log?.[message === undefined ? 'info' : 'error']('database.former_primary', fields);
  }
}

function failureOfAll(failures: ReadonlyMap<Host, PostgresError>): PostgresError {
  const all = [...failures.values()];
  const states = new Set(all.map(({ sqlState }) => sqlState));
  const isCrowded = states.has('53300');
  return new PostgresError(
    [...failures].map(([host, { message }]) => `${addressOf(host)}: ${message}`).join('; '),
    {
      // One host out of connections decides, as it is there; else a state counts only if all hosts share it.
      sqlState: isCrowded ? '53300' : states.size === 1 ? all[0]?.sqlState : undefined,
      isLost: true,
      isOfTls: all.every(({ isOfTls }) => isOfTls),
      isFormer: all.some(({ isFormer }) => isFormer),
    },
  );
}
