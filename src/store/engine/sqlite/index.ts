/**
 * SQLite: Kysely over better-sqlite3 (`kysely.ts`), with a connection for writing, one for single reads, and one for
 * snapshots.
 *
 * WAL lets reads go on while the other connection writes. Writes begin IMMEDIATE: a transaction that reads first and writes
 * later would otherwise fail half-way when another writer came between.
 *
 * A write is answered when it is on disk, since otherwise a power cut can bring a revoked key back. SQLite would wait for the
 * disk on this thread (`synchronous=FULL`, as it is until `flushBeside`). The process that serves waits on other threads
 * (docs/decisions/0030): a commit goes into the log (WAL) and no further, a thread of libuv flushes the log, and reads stay at
 * the moment before the commit until that is done (`kysely.ts`). A connection on another thread moves the log into the
 * database file (`checkpoints.ts`).
 */
import Database from 'better-sqlite3';
import type { Kysely, Transaction } from 'kysely';
import type { Schema } from '../../generated/schema.ts';
import type { Connections } from '../dialect.ts';
import { type Queries, setQueries, withQueries } from '../queries.ts';
import {
  type Checkpoints,
  createCheckpoints,
  createLog,
  type Log,
  longLogBytes,
  watchFiles,
} from './checkpoints.ts';
import { asDamage } from './fault.ts';
import { pageBytesOf, usePages } from './files.ts';
import {
  kyselyOver,
  type Moments,
  type StatementCache,
  sharedMoments,
  statementCache,
  transactionMoments,
} from './kysely.ts';

export interface SqliteConnections extends Connections {
  /**
   * From now on flushes run on another thread; for the one process that serves. When a flush fails, `onFailure` is called,
   * which ends the process: what was written since cannot be trusted, and no transaction resolves any more.
   * From now on transactions also fail while the files are not where they were when they were opened.
   */
  flushBeside(onFailure: (error: Error) => void): void;
}

interface OtherThreads {
  log: Log;
  checkpoints: Checkpoints;
  requireUnmoved(): void;
}

export function openSqlite(file: string): SqliteConnections {
  const database = openForWriting(file);
  const reading = sharedMoments(openForReading(file));
  const repeating = transactionMoments(openForReading(file));
  const writing = statementCache(database, { begin: 'begin immediate', isForWriting: true });
  const writer = open(writing, 'transactions');
  const snapshots = open(repeating, 'transactions');
  let threads: OtherThreads | undefined;
  const commit = <T>(body: Body<T>, beforeCommit = reading.end) =>
    transaction(writer, writing, body, beforeCommit);
  return {
    migrating: (body) => body(writer),
    reader: open(reading, 'single queries'),
    readSnapshot: (body) => transaction(snapshots, repeating, body),
    async transact(body, { flush }) {
      await threads?.checkpoints.done();
      if (!threads) return commit(body);
      const both = [reading, repeating];
      const result = await (flush ? flushed(threads, both, (before) => commit(body, before)) : commit(body));
      threads.checkpoints.begin(writing);
      return result;
    },
    // Runs in no transaction. A process that does not serve closes the log before long, which deletes it.
    emptyLog: () => writer.connection().execute(async () => !threads || threads.checkpoints.empty()),
    flushBeside(onFailure) {
      database.pragma('wal_autocheckpoint = 0');
      database.pragma('synchronous = NORMAL');
      const longLog = longLogBytes / pageBytesOf(database);
      threads = {
        log: createLog(file, onFailure),
        checkpoints: createCheckpoints(file, longLog, onFailure),
        requireUnmoved: watchFiles([file, `${file}-wal`]),
      };
    },
    failure: () => undefined,
    formerPrimaries: () => [],
    findObstacle: async () => undefined,
    async [Symbol.asyncDispose]() {
      await threads?.log.close();
      await threads?.checkpoints.close();
      for (const connection of [reading, repeating, writing]) connection.close();
    },
  };
}

type Body<T> = (db: Transaction<Schema>) => Promise<T>;

/** Commits, and shows the commit to reads once it is on disk. */
async function flushed<T>(
  { log, requireUnmoved }: OtherThreads,
  moments: readonly Moments[],
  commit: (beforeCommit: () => void) => Promise<T>,
): Promise<T> {
  try {
    const result = await commit(() => {
      requireUnmoved();
      for (const one of moments) one.hold();
    });
    await log.flush();
    return result;
  } finally {
    for (const one of moments) one.release();
  }
}

function openForWriting(file: string): Database.Database {
  const database = new Database(file);
  usePages(database);
  database.pragma('journal_mode = WAL');
  database.pragma('synchronous = FULL');
  database.pragma('foreign_keys = ON');
  // Deleted data, such as the names of erased people, leaves no trace in free space.
  database.pragma('secure_delete = ON');
  database.pragma('busy_timeout = 5000');
  return database;
}

function openForReading(file: string): Database.Database {
  const database = new Database(file, { readonly: true });
  database.pragma('busy_timeout = 5000');
  database.pragma('mmap_size = 268435456');
  return database;
}

function open(statements: StatementCache, use: Parameters<typeof kyselyOver>[1]): Kysely<Schema> {
  const kysely = kyselyOver<Schema>(statements, use);
  setQueries(kysely, queriesWith(statements));
  return kysely;
}

function queriesWith(statements: StatementCache): Queries {
  function run<Row>(sql: string, parameters: readonly unknown[]): Row[] {
    try {
      const statement = statements.prepare(sql);
      const given = statements.given?.(parameters) ?? parameters;
      if (statement.reader) return statement.all(given) as Row[];
      statement.run(given);
      return [];
    } catch (error) {
      throw asDamage(error);
    }
  }
  return {
    engine: 'sqlite',
    run,
    countChanges() {
      const [row] = run<{ count: number }>('select total_changes() as count', []);
      // SQLite ends a transaction by itself when the disk is full.
      return statements.inTransaction && row ? row.count : Number.NaN;
    },
    dataVersion() {
      // SQLite's manual, `PRAGMA data_version`.
      const [row] = run<{ data_version: number }>('pragma data_version', []);
      return row?.data_version ?? Number.NaN;
    },
  };
}

function transaction<T>(
  database: Kysely<Schema>,
  statements: StatementCache,
  body: Body<T>,
  beforeCommit?: () => void,
): Promise<T> {
  return database.transaction().execute((db) =>
    withQueries(db, queriesWith(statements), async () => {
      const result = await body(db);
      beforeCommit?.();
      return result;
    }),
  );
}
