/**
 * Writes on PostgreSQL, one after the other over all servers: each begins with the one row that is their lock, their
 * version and their fence. READ COMMITTED is enough behind it, for nobody else writes meanwhile, and what it reads is what
 * the one before committed.
 */
import { setTimeout as wait } from 'node:timers/promises';
import type { Kysely, Transaction } from 'kysely';
import type { Change } from '../changes.ts';
import type { Schema } from '../schema.ts';
import type { Connect } from './postgres-connect.ts';
import { CommitInDoubt, PostgresError } from './postgres-fault.ts';
import { kyselyOn } from './postgres-kysely.ts';
import type { Listening } from './postgres-others.ts';
import { lastRow, type Result, type Session } from './postgres-session.ts';
import { removeQueries, setQueries } from './queries.ts';

interface Write {
  readonly session: Session;
  readonly run: (sql: string, parameters: readonly unknown[]) => Promise<Result>;
  /** The transaction's number, by which it can be asked afterwards what became of it. */
  xid: string;
  /** The run of PostgreSQL that gave the number. */
  readonly incarnation: string;
  version: number;
  changed: number;
  /** A statement failed: PostgreSQL takes no other one before the transaction, or a part of it, is rolled back. */
  isBroken: boolean;
  isCommitting: boolean;
  readonly changes: Change[];
}

/** How long it is asked what became of a commit; whoever waits for a write waits for that. */
const doubtMs = 10_000;
const betweenAsksMs = 100;

export class Writes {
  readonly #connect: Connect;
  readonly #notifying: Listening['notifying'];
  readonly #writer: Kysely<Schema>;
  #session: Session | undefined;
  #incarnation = '';
  #write: Write | undefined;
  #begin = '';
  /** A standby that was waited for in vain: the commit is on this server alone. */
  #isAlone = false;

  constructor({ connect, notifying }: { connect: Connect } & Pick<Listening, 'notifying'>) {
    this.#connect = connect;
    this.#notifying = notifying;
    this.#writer = kyselyOn({
      acquire: () => this.#acquire(),
      begin: () => begin(of(this.#write), this.#begin),
      commit: () => this.#commit(of(this.#write)),
      rollback: async () => {
        const { session } = of(this.#write);
        await session.script('rollback').catch(() => session.destroy());
      },
    });
  }

  async transact<T>(
    body: (db: Transaction<Schema>) => Promise<T>,
    { flush }: { flush: boolean },
  ): Promise<T> {
    this.#begin = beginning(flush);
    this.#write = undefined;
    try {
      return await this.#once(body);
    } catch (error) {
      if (error instanceof CommitInDoubt || !wasLost(this.#write)) throw error;
      return await this.#once(body);
    }
  }

  announce(db: Transaction<Schema>, changes: readonly Change[]): void {
    changesOf.get(db)?.push(...changes);
  }

  endIfSilent(ms: number): void {
    this.#session?.endIfSilent(ms);
  }

  async close(): Promise<void> {
    await this.#session?.close();
  }

  async #acquire(): Promise<Write> {
    const onWarning = (message: string) => {
      if (message.includes('synchronous replication')) this.#isAlone = true;
    };
    if (!this.#session?.isOpen) {
      this.#session = await this.#connect({ use: 'writing', onWarning });
      this.#incarnation = await incarnationOf(this.#session);
    }
    this.#write = newWrite(this.#session, this.#incarnation);
    return this.#write;
  }

  async #once<T>(body: (db: Transaction<Schema>) => Promise<T>): Promise<T> {
    return this.#writer.transaction().execute(async (db) => {
      const write = of(this.#write);
      setQueries(db, {
        engine: 'postgres',
        run: async <Row>(sql: string, parameters: readonly unknown[]) =>
          (await write.run(sql, parameters)).rows as Row[],
        countChanges: () => (write.isBroken || !write.session.isOpen ? Number.NaN : write.changed),
        dataVersion: () => write.version,
      });
      changesOf.set(db, write.changes);
      try {
        return await body(db);
      } finally {
        removeQueries(db);
      }
    });
  }

  async #commit(write: Write): Promise<void> {
    this.#isAlone = false;
    // PostgreSQL would roll it back, and say that it did.
    if (write.isBroken) throw new PostgresError('a statement of the transaction failed', { isLost: false });
    write.isCommitting = true;
    try {
      const results = await write.session.script(`${this.#notifying(write.version, write.changes)}; commit`);
      if (results.at(-1)?.command !== 'COMMIT')
        throw new PostgresError('the transaction was rolled back', { isLost: false });
    } catch (error) {
      if (write.session.isOpen) throw error;
      const status = await statusOf(write, this.#connect);
      if (status === 'committed') return;
      if (status === undefined) throw new CommitInDoubt(error);
      write.isCommitting = false;
      throw error;
    }
    if (this.#isAlone)
      throw new CommitInDoubt(new PostgresError('no standby has the commit', { isLost: false }));
  }
}

async function begin(write: Write, script: string): Promise<void> {
  try {
    const results = await write.session.script(script);
    const row = lastRow<{ version: number; xid: string }>(results);
    if (!row) throw new Error('store_version has no row');
    write.version = row.version;
    write.xid = row.xid;
  } catch (error) {
    await write.session.script('rollback').catch(() => {});
    throw error;
  }
}

/** Whether its connection was lost before there was anything to commit: nothing of it is there. */
function wasLost(write: Write | undefined): boolean {
  return write !== undefined && !write.isCommitting && !write.session.isOpen;
}

/** What the transactions under way announce. */
const changesOf = new WeakMap<Kysely<Schema>, Change[]>();

function beginning(flush: boolean): string {
  return [
    'begin isolation level read committed',
    ...(flush ? [] : ['set local synchronous_commit to off']),
    'update store_version set version = version + 1 returning version, pg_current_xact_id()::text as xid',
  ].join('; ');
}

function newWrite(session: Session, incarnation: string): Write {
  const write: Write = {
    session,
    incarnation,
    xid: '',
    version: 0,
    changed: 0,
    isBroken: false,
    isCommitting: false,
    changes: [],
    async run(sql, parameters) {
      try {
        const result = await session.query(sql, parameters);
        if (/^(INSERT|UPDATE|DELETE)$/.test(result.command)) write.changed += result.rowCount ?? 0;
        if (result.command === 'ROLLBACK') write.isBroken = false;
        return result;
      } catch (error) {
        write.isBroken = true;
        throw error;
      }
    },
  };
  return write;
}

function of(write: Write | undefined): Write {
  if (!write) throw new Error('no write is under way');
  return write;
}

/**
 * What tells one run of PostgreSQL from the next: its start, its timeline, and when it counted anew, which it does after a
 * crash of one of its processes. Whoever came after a crash or a failover can have given a number once more that was lost with
 * its transaction.
 */
const incarnation = `extract(epoch from pg_postmaster_start_time())::text
  || ' ' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)
  || ' ' || coalesce((select extract(epoch from stats_reset)::text from pg_stat_bgwriter), '')`;

async function incarnationOf(session: Session): Promise<string> {
  const { rows } = await session.query(`select ${incarnation} as incarnation`);
  return (rows as { incarnation: string }[])[0]?.incarnation ?? '';
}

type Asked = Pick<Write, 'xid' | 'incarnation'>;

/** What became of a transaction, as the database says; undefined where it cannot say. */
async function statusOf(write: Asked, connect: Connect): Promise<'committed' | 'aborted' | undefined> {
  const until = performance.now() + doubtMs;
  do {
    const status = await askStatus(write, connect).catch(() => 'in progress');
    if (status === 'committed' || status === 'aborted') return status;
    if (status === null) return undefined;
    await wait(betweenAsksMs);
  } while (performance.now() < until);
  return undefined;
}

async function askStatus(write: Asked, connect: Connect): Promise<string | null> {
  const session = await connect({ use: 'reading' });
  try {
    const { rows } = await session.query(
      `select pg_xact_status($1::xid8) as status, ${incarnation} as incarnation`,
      [write.xid],
    );
    const [row] = rows as { status: string | null; incarnation: string }[];
    // The number may be another transaction's by now, of which we would say that it was ours.
    if (row?.status === 'committed' && row.incarnation !== write.incarnation) return null;
    return row?.status ?? null;
  } catch (error) {
    // A server that took over has not come to this number: what had it is not there.
    if (error instanceof PostgresError && error.sqlState === '22023') return 'aborted';
    throw error;
  } finally {
    await session.close();
  }
}
