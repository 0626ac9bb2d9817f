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
import { withoutNuls } from '../../domain/nul.ts';
import { yieldToEventLoop } from '../../lib/event-loop.ts';
import { asDamage } from './sqlite-fault.ts';

export interface StatementCache {
  readonly inTransaction: boolean;
  /** What a statement is given: without NUL where it is written, as PostgreSQL would have it. */
  given?(parameters: readonly unknown[]): readonly unknown[];
  prepare(sql: string): Database.Statement;
  close(): void;
}

export interface StatementOptions {
  /** How a transaction begins. */
  begin?: string;
  isForWriting?: boolean;
}

/** The statements of a connection. */
export function statementCache(
  database: Database.Database,
  { begin = 'begin', isForWriting = false }: StatementOptions = {},
): StatementCache {
  const statements = new Map<string, Database.Statement>();
  return {
    get inTransaction() {
      return database.inTransaction;
    },
    ...(isForWriting && { given: withoutNuls }),
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
 * Kysely on a connection: with transactions, whoever has one keeps the others waiting; for single queries, nobody waits
 * for anybody, and there are none.
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
    return this.#isForSingleQueries ? new SharedAdapter() : super.createAdapter();
  }

  override createQueryCompiler(): QueryCompiler {
    return new Compiler();
  }
}

/** Says that there are many connections, so that nobody is kept waiting for the one. */
class SharedAdapter extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
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
    // The others would read of the same moment, which is over for them.
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
