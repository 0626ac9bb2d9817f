/**
 * SQLite: Kysely over better-sqlite3 (`sqlite-kysely.ts`), with a connection for writing, one for reading, and one for
 * reading more than once of the same moment.
 *
 * WAL lets reading go on while the other one writes. `synchronous=FULL` because with NORMAL a power cut can bring a
 * revoked key back. Writes begin IMMEDIATE: a transaction that reads first and writes later would otherwise fail
 * half-way when another writer came between.
 */
import Database from 'better-sqlite3';
import { CompiledQuery, type Kysely, sql, type Transaction } from 'kysely';
import { yieldToEventLoop } from '../../lib/event-loop.ts';
import type { Schema } from '../schema.ts';
import type { Connections, Dialect } from './dialect.ts';
import { asDamage, databaseFault } from './sqlite-fault.ts';
import { kyselyOver, type StatementCache, statementCache } from './sqlite-kysely.ts';

/** Opens the file, creating it if it is missing. */
export function openSqlite(file: string): Connections {
  const database = new Database(file);
  database.pragma('journal_mode = WAL');
  database.pragma('synchronous = FULL');
  database.pragma('foreign_keys = ON');
  database.pragma('busy_timeout = 5000');
  const reading = sharedSnapshots(openForReading(file));
  const snapshots = statementCache(openForReading(file));
  const writing = statementCache(database, { begin: 'begin immediate', beforeCommit: reading.endSnapshot });
  return {
    writer: open(writing, 'transactions'),
    reader: open(reading, 'single queries'),
    snapshots: open(snapshots, 'transactions'),
    close() {
      for (const connection of [reading, snapshots, writing]) connection.close();
    },
  };
}

function openForReading(file: string): Database.Database {
  const database = new Database(file, { readonly: true });
  database.pragma('busy_timeout = 5000');
  database.pragma('mmap_size = 268435456');
  return database;
}

/** Which statements a database or transaction of Kysely runs with. */
const statementsOf = new WeakMap<Kysely<Schema>, StatementCache>();

function open(statements: StatementCache, use: Parameters<typeof kyselyOver>[1]): Kysely<Schema> {
  const kysely = kyselyOver<Schema>(statements, use);
  statementsOf.set(kysely, statements);
  return kysely;
}

/**
 * The statements of a connection whose queries in one iteration of the event loop share a snapshot, because to begin one
 * takes longer than a query by key. The writer ends the snapshot before each commit, so that what is committed is seen at once,
 * and SQLite's log can begin anew.
 */
function sharedSnapshots(database: Database.Database): StatementCache & { endSnapshot(): void } {
  const statements = statementCache(database);
  let isBegun = false;
  function beginSnapshot(): void {
    isBegun = true;
    statements.prepare('begin').run();
    setImmediate(endSnapshot);
  }
  function endSnapshot(): void {
    if (isBegun) statements.prepare('rollback').run();
    isBegun = false;
  }
  return {
    inTransaction: false,
    prepare(sql) {
      if (!isBegun) beginSnapshot();
      return statements.prepare(sql);
    },
    endSnapshot,
    close() {
      endSnapshot();
      statements.close();
    },
  };
}

/**
 * Runs a query where `db` would, without its way to a connection: that is for connections that have to be waited for, and
 * costs as much as a query by key.
 */
async function execute<Row>(
  db: Kysely<Schema>,
  sql: string,
  parameters: readonly unknown[] = [],
): Promise<Row[]> {
  const way = yieldToEventLoop();
  if (way) await way;
  const statements = statementsOf.get(db);
  // It is over, which Kysely says.
  if (!statements) return (await db.executeQuery<Row>(CompiledQuery.raw(sql, [...parameters]))).rows;
  try {
    const statement = statements.prepare(sql);
    if (statement.reader) return statement.all(parameters) as Row[];
    statement.run(parameters);
    return [];
  } catch (error) {
    throw asDamage(error);
  }
}

/** A number that is another one after every commit, of whichever process (SQLite's manual, `PRAGMA data_version`). */
async function dataVersion(reader: Kysely<Schema>): Promise<number> {
  const [row] = await execute<{ data_version: number }>(reader, 'pragma data_version');
  return row?.data_version ?? Number.NaN;
}

/**
 * How many rows the connection of a transaction has changed so far; NaN, which equals nothing, when the transaction is
 * over already, as SQLite ends it by itself when the disk is full.
 */
async function countChanges(db: Transaction<Schema>): Promise<number> {
  const [row] = await execute<{ count: number }>(db, 'select total_changes() as count');
  return statementsOf.get(db)?.inTransaction && row ? row.count : Number.NaN;
}

/** Reads more than once of the same moment, which others' writes do not change meanwhile. */
function readSnapshot<T>(
  snapshots: Kysely<Schema>,
  body: (db: Transaction<Schema>) => Promise<T>,
): Promise<T> {
  return transaction(snapshots, statementsOf.get(snapshots), body);
}

/**
 * Runs a body in one transaction. Without `flush` it does not wait for the disk: what it wrote outlives this process,
 * and a power cut only once something behind it was flushed.
 */
function transact<T>(
  writer: Kysely<Schema>,
  body: (db: Transaction<Schema>) => Promise<T>,
  { flush }: { flush: boolean },
): Promise<T> {
  const statements = statementsOf.get(writer);
  if (flush) return transaction(writer, statements, body);
  return writer.connection().execute(async (connection) => {
    await sql.raw('pragma synchronous = normal').execute(connection);
    try {
      return await transaction(connection, statements, body);
    } finally {
      await sql.raw('pragma synchronous = full').execute(connection);
    }
  });
}

function transaction<T>(
  database: Kysely<Schema>,
  statements: StatementCache | undefined,
  body: (db: Transaction<Schema>) => Promise<T>,
): Promise<T> {
  return database.transaction().execute(async (db) => {
    if (statements) statementsOf.set(db, statements);
    try {
      return await body(db);
    } finally {
      statementsOf.delete(db);
    }
  });
}

export const sqlite: Dialect = {
  open: openSqlite,
  execute,
  readSnapshot,
  transact,
  countChanges,
  dataVersion,
  databaseFault,
};
