/** Kysely over our own connections: how single queries, transactions and migrations come to one. */
import {
  CompiledQuery,
  type DatabaseConnection,
  type DatabaseIntrospector,
  type Dialect,
  type Driver,
  HandleEmptyInListsPlugin,
  Kysely,
  PostgresAdapter,
  PostgresQueryCompiler,
  type QueryResult,
  replaceWithNoncontingentExpression,
  type TableMetadata,
} from 'kysely';
import type { Result } from './postgres-session.ts';
import type { Queries } from './queries.ts';

/** What a driver is made of here. Transactions are begun and ended where their connection is taken and given back. */
export interface Source {
  /** `run` is what all statements of Kysely go through. */
  acquire(): Promise<{ run: Run }>;
  begin?(connection: object): Promise<void>;
  commit?(connection: object): Promise<void>;
  rollback?(connection: object): Promise<void>;
  release?(connection: object): void;
}

export type Run = (sql: string, parameters: readonly unknown[]) => Promise<Result>;

/** Of a connection on which nothing is counted: one that only reads. */
export function queriesOf(run: Run): Queries {
  return {
    engine: 'postgres',
    run: async <Row>(sql: string, parameters: readonly unknown[]) =>
      (await run(sql, parameters)).rows as Row[],
    countChanges: () => Number.NaN,
    dataVersion: () => Number.NaN,
  };
}

/** SQLite takes `in ()`, which nothing is in; PostgreSQL takes no such list. */
const emptyLists = new HandleEmptyInListsPlugin({ strategy: replaceWithNoncontingentExpression });

export function kyselyOn<Schema>(source: Source): Kysely<Schema> {
  const dialect: Dialect = {
    createAdapter: () => new Adapter(),
    createDriver: () => createDriver(source),
    createQueryCompiler: () => new PostgresQueryCompiler(),
    createIntrospector: (db) => introspector(db),
  };
  return new Kysely<Schema>({ dialect, plugins: [emptyLists] });
}

function createDriver(source: Source): Driver {
  const refuse = () => Promise.reject(new Error('this connection is for single queries'));
  return {
    init: async () => {},
    async acquireConnection() {
      const taken = await source.acquire();
      return connectionOf(taken, taken.run);
    },
    beginTransaction: (connection) => source.begin?.(takenAs(connection)) ?? refuse(),
    commitTransaction: (connection) => source.commit?.(takenAs(connection)) ?? refuse(),
    rollbackTransaction: (connection) => source.rollback?.(takenAs(connection)) ?? refuse(),
    releaseConnection: async (connection) => source.release?.(takenAs(connection)),
    destroy: async () => {},
  };
}

const takenBy = new WeakMap<DatabaseConnection, object>();

/** What `acquire` of the source returned for it. */
function takenAs(connection: DatabaseConnection): object {
  return takenBy.get(connection) ?? {};
}

function connectionOf(taken: object, run: Run): DatabaseConnection {
  const connection: DatabaseConnection = {
    async executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
      const { rows, rowCount, command } = await run(query.sql, query.parameters);
      const isWrite = command === 'INSERT' || command === 'UPDATE' || command === 'DELETE';
      return {
        rows: rows as Row[],
        ...(isWrite && rowCount !== null && { numAffectedRows: BigInt(rowCount) }),
      };
    },
    // biome-ignore lint/correctness/useYield: nobody streams
    async *streamQuery() {
      throw new Error('nothing is streamed from PostgreSQL');
    },
  };
  takenBy.set(connection, taken);
  return connection;
}

/** Who migrates holds a lock already, which is the schema's own. */
class Adapter extends PostgresAdapter {
  override async acquireMigrationLock(): Promise<void> {}
  override async releaseMigrationLock(): Promise<void> {}
}

const tables = `
  select relname as name, nspname as schema from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where nspname = current_schema() and relkind = 'r'`;

/** The tables of this schema alone, which is all that migrations ask for. */
function introspector(db: Kysely<unknown>): DatabaseIntrospector {
  return {
    getSchemas: async () => [],
    async getTables() {
      const { rows } = await db.executeQuery<{ name: string; schema: string }>(CompiledQuery.raw(tables));
      return rows.map(
        ({ name, schema }): TableMetadata => ({
          name,
          schema,
          isView: false,
          isForeign: false,
          columns: [],
        }),
      );
    },
  };
}
