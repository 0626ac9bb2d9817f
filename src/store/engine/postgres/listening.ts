/**
 * Messages between the servers of a database: PostgreSQL notifications (LISTEN, NOTIFY), which are delivered when a transaction
 * is committed, in the order of commits, to the connections that listen then.
 *
 * Each commit notifies with its version, so that a missed one is noticed: by the next one, or by asking every 5 s for the
 * version of the database. A server that missed some, or listens again, counts everything as changed.
 *
 * PostgreSQL has no privileges on notifications: any role that can connect can listen and notify. So the channel has a random
 * name that only roles with access to our tables can read, and that no statement's text contains.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { DomainError } from '../../../domain/error.ts';
import type { Logger } from '../../../lib/log.ts';
import { type Change, readChanges } from '../changes.ts';
import type { Others } from '../dialect.ts';
import { inParts } from '../messages.ts';
import { lastRow, quote, type Session } from './connect.ts';
import { PostgresError } from './fault.ts';
import type { Primary } from './primary.ts';

export interface ListeningOptions {
  serverId: string;
  primary: Primary;
  log?: Logger | undefined;
}

const recheckMs = 5_000;
const firstRetryMs = 100;
const longestRetryMs = 2_000;
/** PostgreSQL limits a notification to less than 8000 bytes. */
const mostBytes = 7_000;
/** A commit whose changes do not fit into so many notifications counts as everything. */
const mostParts = 16;

/** The statements that make the table with the channel's name, where it is missing. */
export function channelTable(): string {
  const name = `andromeda_${randomBytes(20).toString('hex')}`;
  return `
    create table if not exists store_channel (one bigint primary key check (one = 1), name text not null);
    insert into store_channel values (1, ${quote(name)}) on conflict do nothing`;
}

const listen = `
  do $$ begin execute format('listen %I', (select name from store_channel)); end $$;
  select version from store_version`;

/** Sends its parameter to the other servers. */
export const notify = 'select pg_notify((select name from store_channel), $1)';

const everything: readonly Change[] = [{ kind: 'everything' }];

/** `s`: sender; of a commit, `v`: version, `c`: changes; of a message, `t`: topic, `b`: body. */
interface Payload {
  s: string;
  v?: number;
  c?: unknown;
  t?: string;
  b?: unknown;
}

export class Listening {
  readonly #options: ListeningOptions;
  readonly #closing = new AbortController();
  #listeners: Parameters<Others['listen']>[0] | undefined;
  #session: Session | undefined;
  /** The version of the newest commit that was received. */
  #heard = 0;
  /** The database's version when it was last asked. */
  #asked = 0;
  /** The newest version that is known to be committed. */
  #committed = 0;
  /** Whether commits were lost without this being announced yet. */
  #hasGoneBack = false;
  /** Why it does not listen at the moment: the error of the last attempt to connect. */
  failure: Error | undefined;
  /** The newest commit of this server's whose outcome is not known. */
  #inDoubt = 0;

  constructor(options: ListeningOptions) {
    this.#options = options;
  }

  /** Resolves when it listens. Throws where it cannot. */
  async begin(): Promise<void> {
    const session = await this.#options.primary.connect('listening');
    session.on('notification', (text) => this.#receive(text));
    session.once('end', () => void this.#reopen());
    const committed = this.#committed;
    const results = await session.script(listen).catch((error: unknown) => {
      session.destroy();
      const isWithoutTable = error instanceof PostgresError && error.sqlState === '42P01';
      throw isWithoutTable ? ofAnotherVersion() : error;
    });
    this.#heard = lastRow<{ version: number }>(results)?.version ?? 0;
    this.#asked = this.#heard;
    this.#hasGoneBack ||= this.#noteLost(this.#heard, committed);
    this.committed(this.#heard);
    this.#session = session;
    void this.#watch(session);
  }

  listen(listeners: Parameters<Others['listen']>[0]): void {
    this.#listeners = listeners;
  }

  /** The statements that announce a commit, for the end of its transaction. */
  notifying(version: number, changes: readonly Change[]): string {
    const parts: (readonly Change[])[] = inParts(changes, mostBytes);
    return (parts.length > mostParts ? [everything] : parts)
      .map((c) => ({ s: this.#options.serverId, v: version, ...(c.length > 0 && { c }) }))
      .map((payload) => notify.replace('$1', () => quote(JSON.stringify(payload))))
      .join('; ');
  }

  /** The text of a message, to send by `notify`. */
  messageOf(topic: string, body: object): string {
    return JSON.stringify({ s: this.#options.serverId, t: topic, b: body });
  }

  committed(version: number): void {
    this.#committed = Math.max(this.#committed, version);
  }

  /**
   * Notes that the outcome of a commit of this server is unknown. Its changes are announced at once; if its notification still
   * arrives, they are announced again, unlike those of this server's other commits, which the writer announces.
   */
  inDoubt(version: number, changes: readonly Change[]): void {
    this.#inDoubt = Math.max(this.#inDoubt, version);
    if (changes.length > 0) this.#listeners?.onChanges(changes);
  }

  close(): void {
    this.#closing.abort();
  }

  #receive(text: string): void {
    const payload = parse(text);
    if (!payload) {
      this.#announceEverything();
      return;
    }
    if (payload.v !== undefined) {
      if (payload.v > this.#heard + 1) this.#announceEverything();
      this.#heard = Math.max(this.#heard, payload.v);
      this.committed(payload.v);
    }
    if (payload.s === this.#options.serverId && (payload.v ?? Infinity) > this.#inDoubt) return;
    const changes = payload.c === undefined ? [] : readChanges(payload.c);
    if (changes.length > 0) this.#listeners?.onChanges(changes);
    else if (payload.t !== undefined) this.#listeners?.onMessage(payload.t, payload.b, payload.s);
  }

  #announceEverything(): void {
    const wentBack = this.#hasGoneBack;
    this.#hasGoneBack = false;
    this.#listeners?.onChanges(wentBack ? [{ kind: 'everything', wentBack }] : everything);
  }

  /**
   * Logs that the database has lost commits: it was restored, or a standby took over without them. `committed`: the
   * newest version known before it was asked. False where it has all, or where writes were ended.
   */
  #noteLost(version: number, committed: number): boolean {
    if (version === 0 || version >= committed) return false;
    const message =
      'The database has lost the last writes, some of which were answered: it was restored, or a standby took over that had not got them. What this server kept of them is dropped.';
    this.#options.log?.error('database.went_back', { version, committed, message });
    this.#committed = version;
    return true;
  }

  async #reopen(): Promise<void> {
    if (this.#closing.signal.aborted || !this.#session) return;
    this.#session = undefined;
    for (let retryMs = firstRetryMs; !this.#session; retryMs = Math.min(longestRetryMs, retryMs * 2)) {
      if (!(await this.#wait(retryMs))) return;
      await this.begin().catch((error: Error) => {
        this.failure = error;
      });
    }
    this.failure = undefined;
    this.#announceEverything();
  }

  async #watch(session: Session): Promise<void> {
    while ((await this.#wait(recheckMs)) && this.#session === session) {
      const committed = this.#committed;
      const version = await askVersion(session);
      // Other queries get no answer either, or are writes that a standby refuses.
      if (version === undefined) return this.#options.primary.endAll();
      if (this.#session !== session) return;
      if (this.#noteLost(version, committed)) {
        this.#heard = version;
        this.#hasGoneBack = true;
        this.#announceEverything();
        // The notification of a recent commit may be on its way; that of a version from the last check is lost.
      } else if (this.#asked > this.#heard) {
        this.#heard = this.#asked;
        this.#announceEverything();
      }
      this.#asked = version;
    }
  }

  /** False where it is closed meanwhile. */
  #wait(ms: number): Promise<boolean> {
    return wait(ms, true, { signal: this.#closing.signal, ref: false }).catch(() => false);
  }
}

function ofAnotherVersion(): DomainError {
  return new DomainError(
    'invalid_state',
    'The database is not as this version has it: it is of a server of another version. Start a server of this version first.',
  );
}

/** The database's version; undefined where it does not answer, or is a standby by now. */
async function askVersion(session: Session): Promise<number | undefined> {
  const question = 'select version, pg_is_in_recovery() as standby from store_version';
  const answer = await session.query(question).catch(() => undefined);
  if (!answer) return undefined;
  const [row] = answer.rows as { version: number; standby: boolean }[];
  // Without a row, writes were ended (`endWrites`), and it answers all the same.
  if (!row) return 0;
  return row.standby ? undefined : row.version;
}

/** Undefined where the text is no payload of ours. */
function parse(text: string): Payload | undefined {
  try {
    const { s, v, c, t, b } = JSON.parse(text) as Partial<Record<keyof Payload, unknown>>;
    const isRight = typeof s === 'string' && (v === undefined || Number.isSafeInteger(v));
    if (!isRight) return undefined;
    const message = typeof t === 'string' ? { t, b } : {};
    return { s, ...(v !== undefined && { v: v as number }), ...(c !== undefined && { c }), ...message };
  } catch {
    return undefined;
  }
}
