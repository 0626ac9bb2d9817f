/**
 * Kysely over a better-sqlite3 connection whose prepared statements are kept (a join by key costs 18 µs with that and 48
 * without).
 *
 * Queries run on this thread, and awaiting one only runs microtasks; so each yields to the event loop first when
 * queries have kept it for a while (`lib/event-loop.ts`).
 */
import type Database from 'better-sqlite3';
import {
  type DatabaseConnection,
  type DialectAdapter,
  type Driver,
  Kysely,
  type QueryCompiler,
  SqliteAdapter,
  SqliteDialect,
  SqliteDriver,
  SqliteQueryCompiler,
} from 'kysely';
import { storedTexts } from '../../../domain/text.ts';
import { yieldToEventLoop } from '../../../lib/event-loop.ts';
import { asDamage } from './fault.ts';

export interface StatementCache {
  readonly inTransaction: boolean;
  /** The parameters as they are bound: without NUL for writes, as on PostgreSQL. */
  given?(parameters: readonly unknown[]): readonly unknown[];
  prepare(sql: string): Database.Statement;
  close(): void;
}

export interface StatementOptions {
  begin?: string;
  isForWriting?: boolean;
}

export function statementCache(
  database: Database.Database,
  { begin = 'begin', isForWriting = false }: StatementOptions = {},
): StatementCache {
  const statements = new Map<string, Database.Statement>();
  return {
    get inTransaction() {
      return database.inTransaction;
    },
    ...(isForWriting && { given: storedTexts }),
    prepare(sql) {
      // SQLite has rolled back by itself when the disk is full; asking for it again would hide that reason.
      if (sql === 'rollback' && !database.inTransaction) return database.prepare('select 1 where 0');
      const known = statements.get(sql);
      if (known) return known;
      const statement = database.prepare(sql === 'begin' ? begin : sql);
      // Query texts are bounded by the code; IN lists of many lengths are not worth keeping.
      if (statements.size < 1000) statements.set(sql, statement);
      return statement;
    },
    close: () => void database.close(),
  };
}

/**
 * Kysely on a connection. With `transactions`, one runs at a time and the others wait; with `single queries`, there are no
 * transactions and no waiting.
 */
export function kyselyOver<Schema>(
  statements: StatementCache,
  use: 'transactions' | 'single queries',
): Kysely<Schema> {
  return new Kysely<Schema>({ dialect: new Dialect(statements, use === 'single queries') });
}

class Dialect extends SqliteDialect {
  readonly #statements: StatementCache;
  readonly #isForSingleQueries: boolean;

  constructor(statements: StatementCache, isForSingleQueries: boolean) {
    super({ database: statements });
    this.#statements = statements;
    this.#isForSingleQueries = isForSingleQueries;
  }

  override createDriver(): Driver {
    return new YieldingDriver(this.#statements, this.#isForSingleQueries);
  }

  override createAdapter(): DialectAdapter {
    return this.#isForSingleQueries ? new SharedAdapter() : new WritingAdapter();
  }

  override createQueryCompiler(): QueryCompiler {
    return new Compiler();
  }
}

/** Claims to have several connections, so that Kysely does not queue queries for the one. */
class SharedAdapter extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true;
  }
}

/** Schema changes in SQLite are transactional, which Kysely does not assume. */
class WritingAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true;
  }
}

class YieldingDriver extends SqliteDriver {
  readonly #statements: StatementCache;
  readonly #isForSingleQueries: boolean;
  #connection: DatabaseConnection | undefined;

  constructor(statements: StatementCache, isForSingleQueries: boolean) {
    super({ database: statements });
    this.#statements = statements;
    this.#isForSingleQueries = isForSingleQueries;
  }

  override async acquireConnection(): Promise<DatabaseConnection> {
    this.#connection ??= yielding(await super.acquireConnection(), this.#statements);
    return this.#connection;
  }

  override async beginTransaction(connection: DatabaseConnection): Promise<void> {
    // Other queries on this connection would read within the transaction.
    if (this.#isForSingleQueries) throw new Error('this connection is for single queries');
    await super.beginTransaction(connection);
  }
}

function yielding(connection: DatabaseConnection, statements: StatementCache): DatabaseConnection {
  return {
    executeQuery: async (query) => {
      const way = yieldToEventLoop();
      if (way) await way;
      try {
        const parameters = statements.given?.(query.parameters) ?? query.parameters;
        return await connection.executeQuery(
          parameters === query.parameters ? query : { ...query, parameters },
        );
      } catch (error) {
        throw asDamage(error);
      }
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

/**
 * Controls the snapshot that reads see. SQLite shows a commit at once; while one is not on disk yet, reads are held at
 * the snapshot before it.
 */
export interface Moments extends StatementCache {
  /** Queries see the present snapshot, or an earlier one that they see already, until released. */
  hold(): void;
  /** Queries that begin from now on see what was committed. */
  release(): void;
}

/** Any read takes the snapshot: `begin` alone does not. */
const takeMoment = 'select 1 from sqlite_schema limit 1';

/**
 * The statements of a connection for single queries. Queries of one iteration of the event loop share a snapshot,
 * because beginning one takes longer than a query by key. It ends with the iteration, or at a commit before that, so
 * that a commit is seen at once, and SQLite's log can restart.
 */
export function sharedMoments(database: Database.Database): Moments & { end(): void } {
  const statements = statementCache(database);
  let isBegun = false;
  let isHeld = false;
  function begin(): void {
    if (isBegun) return;
    isBegun = true;
    statements.prepare('begin').run();
    setImmediate(end);
  }
  function end(): void {
    if (!isBegun || isHeld) return;
    isBegun = false;
    statements.prepare('rollback').run();
  }
  return {
    inTransaction: false,
    prepare(sql) {
      begin();
      return statements.prepare(sql);
    },
    end,
    hold() {
      begin();
      statements.prepare(takeMoment).get();
      isHeld = true;
    },
    release() {
      isHeld = false;
      end();
    },
    close() {
      isHeld = false;
      end();
      statements.close();
    },
  };
}

/**
 * The statements of a connection for transactions that only read. A transaction that ends while the snapshot is held
 * leaves it to the next, and so does one that began before.
 */
export function transactionMoments(database: Database.Database): Moments {
  const statements = statementCache(database);
  const nothing = database.prepare('select 1 where 0');
  let isUsed = false;
  let isHeld = false;
  return {
    get inTransaction() {
      return database.inTransaction;
    },
    prepare(sql) {
      if (sql === 'begin') {
        isUsed = true;
        if (database.inTransaction) return nothing;
      }
      if (sql === 'commit' || sql === 'rollback') {
        isUsed = false;
        if (isHeld) return nothing;
      }
      return statements.prepare(sql);
    },
    hold() {
      isHeld = true;
      if (!database.inTransaction) statements.prepare('begin').run();
      statements.prepare(takeMoment).get();
    },
    release() {
      isHeld = false;
      if (!isUsed && database.inTransaction) statements.prepare('rollback').run();
    },
    close: statements.close,
  };
}
