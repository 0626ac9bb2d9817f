/**
 * The SQLite dialect: Kysely over better-sqlite3 with a cache of prepared statements (a join by key costs 18 µs with
 * it and 48 without).
 *
 * WAL lets the reading connection go on while the other one writes. `synchronous=FULL` because with NORMAL a power
 * cut can bring a revoked key back. Writes begin IMMEDIATE: a transaction that reads first and writes later would
 * otherwise fail half-way when another writer came between.
 *
 * Queries run on this thread, and awaiting one only runs microtasks; so each gives way to the event loop first when
 * queries have kept it for a while (`turn.ts`).
 */
import Database from 'better-sqlite3';
import {
  type DatabaseConnection,
  type Driver,
  Kysely,
  type QueryCompiler,
  SqliteDialect,
  type SqliteDialectConfig,
  SqliteDriver,
  SqliteQueryCompiler,
  sql,
  type Transaction,
} from 'kysely';
import { giveWay } from '../../turn.ts';
import type { Schema } from '../schema.ts';

/** Opens the file, creating it if it is missing, for writing. One such connection a process. */
export function openSqliteWriter(file: string): Kysely<Schema> {
  const database = new Database(file);
  database.pragma('journal_mode = WAL');
  database.pragma('synchronous = FULL');
  database.pragma('foreign_keys = ON');
  database.pragma('busy_timeout = 5000');
  return kysely(database, 'begin immediate');
}

/** Opens an existing file for reading only; the file must have been opened by a writer before. */
export function openSqliteReader(file: string): Kysely<Schema> {
  const database = new Database(file, { readonly: true });
  database.pragma('busy_timeout = 5000');
  database.pragma('mmap_size = 268435456');
  return kysely(database, 'begin');
}

/**
 * Runs a body in one transaction. Without `flush` it does not wait for the disk: what it wrote outlives this process,
 * and a power cut only once something behind it was flushed.
 */
export function transact<T>(
  writer: Kysely<Schema>,
  body: (db: Transaction<Schema>) => Promise<T>,
  { flush }: { flush: boolean },
): Promise<T> {
  if (flush) return writer.transaction().execute(body);
  return writer.connection().execute(async (connection) => {
    await sql.raw('pragma synchronous = normal').execute(connection);
    try {
      return await connection.transaction().execute(body);
    } finally {
      await sql.raw('pragma synchronous = full').execute(connection);
    }
  });
}

/** Whether a write failed for a reason that passes: the file is held, the disk is full or does not answer. */
export function isUnavailable(error: unknown): boolean {
  return error instanceof Database.SqliteError && /^SQLITE_(BUSY|FULL|IOERR)/.test(error.code);
}

function kysely(database: Database.Database, begin: string): Kysely<Schema> {
  const statements = new Map<string, Database.Statement>();
  return new Kysely<Schema>({
    dialect: new Dialect({
      database: {
        prepare(sql) {
          // SQLite has rolled back by itself when the disk is full; asking for it again would hide that reason.
          if (sql === 'rollback' && !database.inTransaction) return database.prepare('select 1 where 0');
          // It takes effect when it is prepared.
          if (sql.startsWith('pragma')) return database.prepare(sql);
          let statement = statements.get(sql);
          if (!statement) {
            statement = database.prepare(sql === 'begin' ? begin : sql);
            // Query texts are bounded by the code; IN lists of many lengths are not worth keeping.
            if (statements.size < 1000) statements.set(sql, statement);
          }
          return statement;
        },
        close: () => database.close(),
      },
    }),
  });
}

class Dialect extends SqliteDialect {
  readonly #config: SqliteDialectConfig;

  constructor(config: SqliteDialectConfig) {
    super(config);
    this.#config = config;
  }

  override createDriver(): Driver {
    return new CourteousDriver(this.#config);
  }

  override createQueryCompiler(): QueryCompiler {
    return new Compiler();
  }
}

class CourteousDriver extends SqliteDriver {
  #connection: DatabaseConnection | undefined;

  override async acquireConnection(): Promise<DatabaseConnection> {
    this.#connection ??= courteous(await super.acquireConnection());
    return this.#connection;
  }
}

function courteous(connection: DatabaseConnection): DatabaseConnection {
  return {
    executeQuery(query) {
      const way = giveWay();
      return way ? way.then(() => connection.executeQuery(query)) : connection.executeQuery(query);
    },
    streamQuery: (query, chunkSize) => connection.streamQuery(query, chunkSize),
  };
}

/**
 * Writes a parameter as `+?`, which means the same. A bare one makes SQLite, built with STAT4 as ours is, plan a join
 * anew whenever it is executed, for the value might matter to the plan: 45 µs for a join by key, and 8 without.
 */
class Compiler extends SqliteQueryCompiler {
  protected override getCurrentParameterPlaceholder(): string {
    return '+?';
  }
}
