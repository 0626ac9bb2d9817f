/** Kysely over our own connections, for single queries, transactions and migrations. */
import {
  CompiledQuery,
  type DatabaseIntrospector,
  HandleEmptyInListsPlugin,
  Kysely,
  PostgresAdapter,
  PostgresDialect,
  type PostgresPoolClient,
  replaceWithNoncontingentExpression,
  type TableMetadata,
} from 'kysely';
import type { Queries } from '../queries.ts';
import type { Result } from './connect.ts';

/** A connection that Kysely has acquired for a query or a transaction; one without `begin` is for single queries. */
export interface AcquiredConnection {
  /** Runs all statements but those that begin and end transactions. */
  run: Run;
  begin?(): Promise<void>;
  commit?(): Promise<void>;
  rollback?(): Promise<void>;
  release?(): void;
}

export type Run = (sql: string, parameters: readonly unknown[]) => Promise<Result>;

/** The queries of a connection that counts no changes: one that only reads. */
export function queriesOf(run: (...query: Parameters<Run>) => Promise<Pick<Result, 'rows'>>): Queries {
  return {
    engine: 'postgres',
    run: async <Row>(sql: string, parameters: readonly unknown[]) =>
      (await run(sql, parameters)).rows as Row[],
    countChanges: () => Number.NaN,
    dataVersion: () => Number.NaN,
  };
}

/** SQLite accepts the empty list `in ()`; PostgreSQL does not. */
const emptyLists = new HandleEmptyInListsPlugin({ strategy: replaceWithNoncontingentExpression });

export function kyselyOn<Schema>(acquire: () => Promise<AcquiredConnection>): Kysely<Schema> {
  const pool = { connect: async () => clientOf(await acquire()), end: async () => {}, options: {} };
  return new Kysely<Schema>({ dialect: new Dialect({ pool }), plugins: [emptyLists] });
}

function clientOf(taken: AcquiredConnection): PostgresPoolClient {
  async function query(sql: string, parameters: readonly unknown[]): Promise<Result> {
    if (sql !== 'begin' && sql !== 'commit' && sql !== 'rollback') return taken.run(sql, parameters);
    const control = taken[sql];
    if (!control) throw new Error('this connection is for single queries');
    await control();
    return { rows: [], rowCount: 0, command: sql.toUpperCase() };
  }
  return { query: query as PostgresPoolClient['query'], release: () => taken.release?.() };
}

class Dialect extends PostgresDialect {
  override createAdapter(): Adapter {
    return new Adapter();
  }
  override createIntrospector(db: Kysely<unknown>): DatabaseIntrospector {
    return introspector(db);
  }
}

/** `migrating` holds a lock already, one per schema. */
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
