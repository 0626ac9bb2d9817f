/**
 * What the servers of a database tell each other: notifications, which PostgreSQL hands out when a transaction is
 * committed, in the order of commits, to whoever listens then.
 *
 * Each commit notifies with its version, so that one that is missed is found: by the next one, or by asking every 5 s for
 * the version that the database has. Whoever missed some, or listens again, counts everything as changed.
 *
 * PostgreSQL knows no rights on notifications: whoever may connect may listen and send. So the channel has a name that only who
 * may read our tables knows, and no text of a statement has it.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { DomainError } from '../../domain/error.ts';
import type { Logger } from '../../lib/log.ts';
import { type Change, readChanges } from '../changes.ts';
import type { Others } from './dialect.ts';
import { type Connect, quote } from './postgres-connect.ts';
import { PostgresError } from './postgres-fault.ts';
import { lastRow, type Session } from './postgres-session.ts';

export interface ListeningOptions {
  serverId: string;
  connect: Connect;
  log?: Logger | undefined;
  /** The database says nothing any more, or what it is cannot be written to. */
  onSilence(): void;
}

const recheckMs = 5_000;
/** An answer that takes longer does not come. */
const answerMs = 5_000;
const firstRetryMs = 100;
const longestRetryMs = 2_000;
/** PostgreSQL takes less than 8000 bytes. */
const mostBytes = 7_000;
/** What changes more than fits into these counts as everything. */
const mostParts = 16;

/** What makes the table with the channel's name, where it is not there. */
export function channelTable(): string {
  const name = `andromeda_${randomBytes(20).toString('hex')}`;
  return `
    create table if not exists store_channel (one bigint primary key check (one = 1), name text not null);
    insert into store_channel values (1, ${quote(name)}) on conflict do nothing`;
}

const listen = `
  do $$ begin execute format('listen %I', (select name from store_channel)); end $$;
  select version from store_version`;

const everything: readonly Change[] = [{ everything: true }];

/** `s`: who sends; `v`: of which version; `c`: what changed; or `t`: about what, and `b`: what. */
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
  /** The newest commit that was heard of. */
  #heard = 0;
  /** The version that the database had when it was last asked. */
  #asked = 0;
  /** The newest one that is known to have been committed. */
  #committed = 0;
  /** Commits were lost, of which nobody was told yet. */
  #hasGoneBack = false;

  constructor(options: ListeningOptions) {
    this.#options = options;
  }

  /** Resolves when it listens. Throws where it cannot. */
  async begin(): Promise<void> {
    const session = await this.#options.connect({
      use: 'listening',
      onNotification: (text) => this.#receive(text),
      onEnd: () => void this.#reopen(),
    });
    const committed = this.#committed;
    const results = await session.script(listen).catch((error: unknown) => {
      session.destroy();
      throw isWithoutTable(error) ? ofAnotherVersion() : error;
    });
    this.#heard = lastRow<{ version: number }>(results)?.version ?? 0;
    this.#asked = this.#heard;
    this.#hasGoneBack ||= this.#noteLost(this.#heard, committed);
    this.committed(this.#heard);
    if (this.#closing.signal.aborted) return session.close();
    this.#session = session;
    void this.#watch(session);
  }

  listen(listeners: Parameters<Others['listen']>[0]): void {
    this.#listeners = listeners;
  }

  /** The statements that announce a commit, for the end of its transaction. */
  notifying(version: number, changes: readonly Change[]): string {
    return partsOf(changes)
      .map((c) => this.#notify({ s: this.#options.serverId, v: version, ...(c.length > 0 && { c }) }))
      .join('; ');
  }

  /** The statement that sends a message. */
  sending(topic: string, body: object): string {
    return this.#notify({ s: this.#options.serverId, t: topic, b: body });
  }

  /** Hears that a version was committed. */
  committed(version: number): void {
    this.#committed = Math.max(this.#committed, version);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#session?.close();
  }

  #notify(payload: Payload & { c?: Change[] }): string {
    return `select pg_notify((select name from store_channel), ${quote(JSON.stringify(payload))})`;
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
    if (payload.s === this.#options.serverId) return;
    const changes = payload.c === undefined ? [] : readChanges(payload.c);
    if (changes.length > 0) this.#listeners?.onChanges(changes);
    else if (payload.t !== undefined) this.#listeners?.onMessage(payload.t, payload.b, payload.s);
  }

  #announceEverything(): void {
    const wentBack = this.#hasGoneBack;
    this.#hasGoneBack = false;
    this.#listeners?.onChanges(wentBack ? [{ everything: true, wentBack }] : everything);
  }

  /**
   * Says that the database has lost what was committed: it was restored, or a standby took over that had not got it.
   * `committed`: what was known to be so before it was asked. False where it has all, or where writes were ended.
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
      await this.begin().catch(() => {});
    }
    this.#announceEverything();
  }

  async #watch(session: Session): Promise<void> {
    while ((await this.#wait(recheckMs)) && this.#session === session) {
      const committed = this.#committed;
      const version = await askVersion(session);
      if (this.#session !== session) return;
      if (version === undefined) {
        this.#options.onSilence();
        session.destroy();
        return;
      }
      if (this.#noteLost(version, committed)) {
        this.#heard = version;
        this.#hasGoneBack = true;
        this.#announceEverything();
        // What was committed a moment ago may be on its way; what was there the last time is not.
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

function isWithoutTable(error: unknown): boolean {
  return error instanceof PostgresError && error.sqlState === '42P01';
}

function ofAnotherVersion(): DomainError {
  return new DomainError(
    'invalid_state',
    'The database is not as this version has it: it is of a server of another version. Start a server of this version first.',
  );
}

/** The database's version; undefined where it does not answer, or is a standby by now. */
async function askVersion(session: Session): Promise<number | undefined> {
  const asked = session.query('select version, pg_is_in_recovery() as standby from store_version').then(
    ({ rows }) => {
      const [row] = rows as { version: number; standby: boolean }[];
      // Without a row, writes were ended (`postgres-fence.ts`), and it answers all the same.
      if (!row) return 0;
      return row.standby ? undefined : row.version;
    },
    () => undefined,
  );
  const late = new AbortController();
  const tooLate = wait(answerMs, undefined, { signal: late.signal, ref: false })
    // Where this process stood still itself, the answer is there, and read next.
    .then(() => wait(100, undefined, { signal: late.signal, ref: false }))
    .catch(() => undefined);
  return Promise.race([asked, tooLate]).finally(() => late.abort());
}

/** Changes as they fit into notifications. */
function partsOf(changes: readonly Change[]): Change[][] {
  const parts: Change[][] = [[]];
  let bytes = 0;
  for (const change of changes) {
    const size = Buffer.byteLength(JSON.stringify(change)) + 1;
    if (bytes + size > mostBytes) {
      parts.push([]);
      bytes = 0;
    }
    bytes += size;
    parts.at(-1)?.push(change);
  }
  return parts.length > mostParts ? [[...everything]] : parts;
}

/** Undefined where it is none of ours. */
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
