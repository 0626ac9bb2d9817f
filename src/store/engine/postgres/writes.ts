/**
 * Writes on PostgreSQL, one after the other across all servers: each begins by locking the one row that is also their version
 * and their fence. With that lock READ COMMITTED is enough: no other transaction writes meanwhile, and reads see what the
 * previous write committed.
 *
 * All servers wait while one holds the lock, so it waits for few round trips: the begin is sent with the first query, queries
 * that are started together are sent together, and a statement that returns nothing is sent with the next one. PostgreSQL
 * rejects everything after a failed statement of a transaction, so the commit fails where one that was not awaited did.
 */
import { setTimeout as wait } from 'node:timers/promises';
import type { Kysely, Transaction } from 'kysely';
import type { Schema } from '../../generated/schema.ts';
import type { Change } from '../changes.ts';
import { withQueries } from '../queries.ts';
import { lastRow, type Result, type Session, type Warning } from './connect.ts';
import { CommitInDoubt, failureToBegin, MovedAway, PostgresError, postgresError } from './fault.ts';
import { kyselyOn, queriesOf } from './kysely.ts';
import type { Listening } from './listening.ts';
import type { Primary } from './primary.ts';

/** Timeout of a commit: a longer one waits for a standby that does not answer, or a host that is gone, and is in doubt. */
const commitMs = 10_000;
/** Timeout of further locks: once a write has the lock of all writes, they are other programs'. */
const otherLocksMs = 1_000;
/** The most statements that are under way without being awaited. */
const mostSent = 100;

interface Writing {
  readonly session: Session;
  readonly incarnation: string;
  /** A standby was waited for in vain: the last commit is on this host alone. */
  isAlone: boolean;
}

export class Writes {
  readonly #primary: Primary;
  readonly #listening: Listening;
  #writing: Writing | undefined;

  constructor(primary: Primary, listening: Listening) {
    this.#primary = primary;
    this.#listening = listening;
  }

  async transact<T>(body: (db: Transaction<Schema>) => Promise<T>, flush: boolean): Promise<T> {
    for (let isFirst = true; ; isFirst = false) {
      const write = new Write(await this.#connect(), flush);
      try {
        return await this.#run(write, body);
      } catch (error) {
        // A write whose connection was lost before its commit has left nothing in the database.
        const isTriedAgain = isFirst && !write.isCommitting && !write.session.isOpen;
        if (error instanceof CommitInDoubt || !isTriedAgain) throw error;
      }
    }
  }

  /** Announces changes to the other servers with the commit of a transaction under way. */
  announce(db: Transaction<Schema>, changes: readonly Change[]): void {
    changesOf.get(db)?.push(...changes);
  }

  async #connect(): Promise<Writing> {
    if (this.#writing?.session.isOpen) return this.#writing;
    const session = await this.#primary.connect('writing');
    const incarnation = await incarnationOf(session).catch((error: unknown) => {
      session.destroy();
      throw error;
    });
    const writing = { session, incarnation, isAlone: false };
    session.on('warning', (warning) => {
      if (isOfStandby(warning)) writing.isAlone = true;
    });
    this.#writing = writing;
    return writing;
  }

  #run<T>(write: Write, body: (db: Transaction<Schema>) => Promise<T>): Promise<T> {
    const { session } = write;
    const writer = kyselyOn<Schema>(async () => ({
      run: (sql, parameters) => write.run(sql, parameters),
      begin: async () => write.begin(),
      commit: () => this.#commit(write),
      rollback: async () => void (await session.script('rollback').catch(() => session.destroy())),
    }));
    return writer.transaction().execute((db) => {
      changesOf.set(db, write.changes);
      return withQueries(
        db,
        {
          ...queriesOf((sql, parameters) => write.run(sql, parameters)),
          send: (sql, parameters) => write.send(sql, parameters),
          countChanges: () => (write.failure || !session.isOpen ? Number.NaN : write.changed),
          dataVersion: async () => {
            await write.begun;
            return write.version;
          },
        },
        body,
      );
    });
  }

  async #commit(write: Write): Promise<void> {
    await write.begun;
    // PostgreSQL would answer the commit with a rollback.
    if (write.failure) throw write.failure.error;
    write.isCommitting = true;
    const cause = await this.#tryCommit(write);
    const outcome = cause === undefined ? 'committed' : await outcomeOf(write, this.#primary);
    if (outcome === 'committed') return this.#listening.committed(write.version);
    if (outcome === undefined) {
      this.#listening.inDoubt(write.version, write.changes);
      throw new CommitInDoubt(cause);
    }
    write.isCommitting = false;
    throw cause;
  }

  /** Commits. Throws where it was rolled back; resolves to the reason where it is in doubt. */
  async #tryCommit(write: Write): Promise<PostgresError | undefined> {
    const { session, writing } = write;
    writing.isAlone = false;
    // A write that took long takes long to arrive at a standby.
    const limitMs = Math.max(commitMs, performance.now() - write.began);
    const late = setTimeout(() => session.destroy(), limitMs);
    try {
      const notifying = this.#listening.notifying(write.version, write.changes);
      const results = await session.script(`${notifying}; commit`);
      if (results.at(-1)?.command !== 'COMMIT')
        throw new PostgresError('the transaction was rolled back', { isLost: false });
    } catch (error) {
      if (session.isOpen) throw await write.failureOf(error);
      return postgresError(error);
    } finally {
      clearTimeout(late);
    }
    return writing.isAlone ? new PostgresError('no standby has the commit', { isLost: false }) : undefined;
  }
}

/** The changes that transactions under way will announce. */
const changesOf = new WeakMap<Kysely<Schema>, Change[]>();

class Write {
  readonly writing: Writing;
  readonly flush: boolean;
  readonly began = performance.now();
  readonly changes: Change[] = [];
  /** Resolves when it has the lock. Where it rejects, statements that were sent meanwhile have no effect. */
  begun: Promise<void> = Promise.resolve();
  /** The ID of its transaction, by which its outcome can be asked afterwards. */
  xid = '';
  version = 0;
  /** Rows that it changed; a statement that was not awaited counts as one. */
  changed = 0;
  /** Why a statement failed: PostgreSQL takes no other one before the transaction, or a part of it, is rolled back. */
  failure: { error: unknown } | undefined;
  isCommitting = false;
  /** Statements that were sent and not waited for. None of these rejects. */
  readonly #sent: Promise<void>[] = [];

  constructor(writing: Writing, flush: boolean) {
    this.writing = writing;
    this.flush = flush;
  }

  get session(): Session {
    return this.writing.session;
  }

  get incarnation(): string {
    return this.writing.incarnation;
  }

  /** Sends the statement that begins it, without waiting for the lock. */
  begin(): void {
    this.begun = this.#lock().catch((error: unknown) => {
      throw failureToBegin(error);
    });
    this.begun.catch(() => {});
  }

  async run(sql: string, parameters: readonly unknown[]): Promise<Result> {
    try {
      const [, result] = await Promise.all([this.begun, this.session.query(sql, parameters)]);
      if (/^(INSERT|UPDATE|DELETE)$/.test(result.command)) this.changed += result.rowCount ?? 0;
      if (result.command === 'ROLLBACK') this.failure = undefined;
      return result;
    } catch (error) {
      throw await this.failureOf(error);
    }
  }

  async send(sql: string, parameters: readonly unknown[]): Promise<void> {
    this.changed += 1;
    const answered = this.session.query(sql, parameters).then(
      () => {},
      (error: unknown) => {
        this.failure ??= { error };
      },
    );
    if (this.#sent.push(answered) < mostSent) return;
    await Promise.all(this.#sent.splice(0));
    if (this.failure) throw await this.failureOf(this.failure.error);
  }

  /** The cause of a failed statement: the failure of one that was sent before it, or its own error. */
  async failureOf(error: unknown): Promise<unknown> {
    const [begun] = await Promise.allSettled([this.begun, ...this.#sent]);
    // Where the transaction did not begin, PostgreSQL reports of the rest that it is aborted.
    if (begun.status === 'rejected') this.failure = { error: begun.reason };
    this.failure ??= { error };
    return this.failure.error;
  }

  async #lock(): Promise<void> {
    const results = await this.session.script(
      [
        'begin isolation level read committed',
        ...(this.flush ? [] : ['set local synchronous_commit to off']),
        // `returning` is evaluated when the row is locked.
        `update store_version set version = version + 1
          returning version, pg_current_xact_id()::text as xid, set_config('lock_timeout', '${otherLocksMs}', true)`,
      ].join('; '),
    );
    const row = lastRow<{ version: number; xid: string }>(results);
    if (!row) throw new MovedAway('service_unavailable');
    this.version = row.version;
    this.xid = row.xid;
  }
}

/** How long the outcome is asked for; the caller of the write waits that long. */
const doubtMs = 10_000;
const betweenAsksMs = 100;

/** The outcome of a commit whose answer was lost; undefined where the database does not know, or no standby confirms writes. */
async function outcomeOf(asked: Write, primary: Primary): Promise<'committed' | 'aborted' | undefined> {
  const until = performance.now() + doubtMs;
  do {
    const status = await askOutcome(asked, primary, until).catch(() => 'in progress');
    if (status === 'committed' || status === 'aborted') return status;
    if (status === null) return undefined;
    await wait(betweenAsksMs);
  } while (performance.now() < until);
  return undefined;
}

async function askOutcome(asked: Write, primary: Primary, until: number): Promise<string | null> {
  let isAlone = false;
  const session = await primary.connect('writing');
  session.on('warning', (warning) => {
    if (isOfStandby(warning)) isAlone = true;
  });
  const leftMs = Math.max(1, Math.round(until - performance.now()));
  const late = setTimeout(() => session.destroy(), leftMs);
  try {
    const status = await statusOf(session, asked);
    if (status !== 'committed' || !asked.flush) return status;
    const isWritten = await writeBehind(session, leftMs);
    return isWritten && !isAlone ? status : 'in progress';
  } catch (error) {
    // A server that took over has not reached this ID: the transaction is not in it.
    if (error instanceof PostgresError && error.sqlState === '22023') return 'aborted';
    throw error;
  } finally {
    clearTimeout(late);
    await session.close();
  }
}

async function statusOf(session: Session, asked: Write): Promise<string | null> {
  const { rows } = await session.query(
    `select pg_xact_status($1::xid8) as status, ${incarnation} as incarnation`,
    [asked.xid],
  );
  const [row] = rows as { status: string | null; incarnation: string }[];
  // The ID may be another transaction's by now, which must not be taken for ours.
  if (row?.status === 'committed' && row.incarnation !== asked.incarnation) return null;
  return row?.status ?? null;
}

/**
 * Commits a write of our own, which changes nothing. A commit whose session ended while it waited for its standby is
 * on this host alone; a standby that has this write has all that was committed before.
 */
async function writeBehind(session: Session, leftMs: number): Promise<boolean> {
  const results = await session.script(
    `begin; set local lock_timeout to ${leftMs}; update store_version set version = version; commit`,
  );
  return results.at(-2)?.rowCount === 1 && results.at(-1)?.command === 'COMMIT';
}

/** Whether a warning is about a commit on this host alone. Texts of warnings are in the database's language. */
function isOfStandby({ message, routine }: Warning): boolean {
  return routine === 'SyncRepWaitForLSN' || message.includes('synchronous replication');
}

/**
 * Identifies one run of PostgreSQL: its start, its timeline, and its last statistics reset, which also follows a crash
 * of one of its processes. After a crash or a failover, a lost transaction's ID can be given to another one.
 */
const incarnation = `extract(epoch from pg_postmaster_start_time())::text
  || ' ' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)
  || ' ' || coalesce((select extract(epoch from stats_reset)::text from pg_stat_bgwriter), '')`;

async function incarnationOf(session: Session): Promise<string> {
  const { rows } = await session.query(`select ${incarnation} as incarnation`);
  return (rows as { incarnation: string }[])[0]?.incarnation ?? '';
}
