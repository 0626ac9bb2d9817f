/** Runs queries on connections and transactions, of whichever engine. */
import { CompiledQuery, type Kysely, type RootOperationNode, sql, type Transaction } from 'kysely';
import { DomainError } from '../../domain/error.ts';
import { yieldToEventLoop } from '../../lib/event-loop.ts';
import type { Schema } from '../generated/schema.ts';
import type { Connections } from './dialect.ts';

/** The queries of a connection, or of a transaction while it lasts. */
export interface Queries {
  /** The engine whose SQL it takes: a query that is compiled for one connection is good for all of that engine. */
  readonly engine: 'sqlite' | 'postgres';
  run<Row>(sql: string, parameters: readonly unknown[]): Row[] | Promise<Row[]>;
  /**
   * Sends a statement that returns nothing, without waiting for its answer: where it fails, so does a later one of its
   * transaction, at the latest the commit. Undefined where an answer takes no time.
   */
  send?(sql: string, parameters: readonly unknown[]): void | Promise<void>;
  countChanges(): number;
  dataVersion(): number | Promise<number>;
}

const queriesOf = new WeakMap<Kysely<Schema>, Queries>();

/** Registers how `execute` runs queries on `db`. */
export function setQueries(db: Kysely<Schema>, queries: Queries): void {
  queriesOf.set(db, queries);
}

/** Runs the body of a transaction with its queries; a query on the transaction after its end is refused. */
export async function withQueries<T>(
  db: Transaction<Schema>,
  queries: Queries,
  body: (db: Transaction<Schema>) => Promise<T>,
): Promise<T> {
  setQueries(db, queries);
  try {
    return await body(db);
  } finally {
    queriesOf.delete(db);
  }
}

/** The engine of a connection or transaction; undefined where the transaction is over. */
export function engineNameOf(db: Kysely<Schema>): Queries['engine'] | undefined {
  return queriesOf.get(db)?.engine;
}

/** Runs a compiled statement that returns nothing, as `execute` does; its failure may surface only in a later one or the commit. */
async function send(db: Kysely<Schema>, sql: string, parameters: readonly unknown[]): Promise<never[]> {
  const queries = queriesOf.get(db);
  if (!queries?.send) return execute(db, sql, parameters);
  await queries.send(sql, parameters);
  return [];
}

/**
 * Runs a compiled query on the connection of `db`, without Kysely's way to one: that is for connections that have to
 * be waited for, and costs as much as a query by key.
 */
async function execute<Row>(
  db: Kysely<Schema>,
  sql: string,
  parameters: readonly unknown[] = [],
): Promise<Row[]> {
  const way = yieldToEventLoop();
  if (way) await way;
  const queries = queriesOf.get(db);
  // The transaction is over: Kysely throws the error that says so.
  if (!queries) return (await db.executeQuery<Row>(CompiledQuery.raw(sql, [...parameters]))).rows;
  return queries.run<Row>(sql, parameters);
}

/** How many rows a transaction's connection has changed so far; NaN, which equals nothing, when the transaction is over. */
export function countChanges(db: Transaction<Schema>): number {
  return queriesOf.get(db)?.countChanges() ?? Number.NaN;
}

/** A number that changes with every commit, of whichever process. */
export async function dataVersion(reader: Kysely<Schema>): Promise<number> {
  return (await queriesOf.get(reader)?.dataVersion()) ?? Number.NaN;
}

const postgresTime = 'select cast(extract(epoch from clock_timestamp()) * 1000 as bigint) as ms';

/** The time of day in ms since 1970, the same for all servers of a database: that of the database, or of this host alone. */
export async function databaseTime(db: Kysely<Schema>): Promise<number> {
  if (engineNameOf(db) !== 'postgres') return Date.now();
  const [row] = await execute<{ ms: number | string }>(db, postgresTime);
  return Number(row?.ms);
}

/** A value, or a row: a value for each of its columns, which are the same in every call. */
type Argument = string | number | null | object;

/**
 * The query that `build` makes, as a function of its arguments; they may stand only where a value, or the values of a
 * row, may. For queries that are asked on every request: Kysely builds and compiles a query again for every call, which can
 * cost ten times what the database then takes (a join of three tables by key: 90 µs, and 10).
 */
export function prepared<Args extends readonly Argument[], Result>(
  build: (db: Kysely<Schema>, ...args: Args) => { compile(): CompiledQuery<Result> },
): (db: Kysely<Schema>, ...args: Args) => Promise<Result[]> {
  // The compiled query by engine: it is the same for every connection of that engine.
  const templates = new Map<string | undefined, CompiledQuery<Result>>();
  return (db, ...args) => {
    const engine = engineNameOf(db);
    // A transaction that is over refuses any query.
    let template = engine === undefined ? [...templates.values()][0] : templates.get(engine);
    if (!template) {
      template = build(db, ...(args.map(placeholdersFor) as unknown as Args)).compile();
      templates.set(engine, template);
    }
    const parameters = template.parameters.map((given) =>
      given instanceof Placeholder ? given.valueIn(args) : given,
    );
    return (returnsNothing(template.query) ? send : execute<Result>)(db, template.sql, parameters);
  };
}

function returnsNothing(query: RootOperationNode): boolean {
  const isWrite = /^(Insert|Update|Delete)QueryNode$/.test(query.kind);
  return isWrite && !('returning' in query && query.returning !== undefined);
}

/** Stands for a value while a query is built. */
class Placeholder {
  readonly #index: number;
  readonly #column: string | undefined;

  constructor(index: number, column?: string) {
    this.#index = index;
    this.#column = column;
  }

  valueIn(args: readonly Argument[]): unknown {
    const arg = args[this.#index];
    const value = this.#column === undefined ? arg : (arg as Record<string, unknown>)[this.#column];
    if (value === undefined) throw new Error(`the query has no value for ${this.#column ?? this.#index}`);
    return value;
  }
}

function placeholdersFor(arg: Argument, index: number): unknown {
  if (typeof arg !== 'object' || arg === null) return new Placeholder(index);
  return Object.fromEntries(Object.keys(arg).map((column) => [column, new Placeholder(index, column)]));
}

/** The version of a snapshot; undefined where writes were ended before. */
export async function versionOf(moment: Kysely<Schema>): Promise<number | undefined> {
  const { rows } = await sql<{ version: number }>`select version from store_version`.execute(moment);
  return rows[0]?.version;
}

/**
 * Ends writes on a PostgreSQL whose installation was copied to another database, for good. Every write begins with the one row of
 * `store_version`: without it no server writes, not even one that was suspended meanwhile and knows nothing of the copy, and none
 * starts. Throws `invalid_state`, and ends nothing, where a server wrote since that version.
 */
export async function endWrites({ transact }: Pick<Connections, 'transact'>, since: number): Promise<void> {
  await transact(
    async (db) => {
      // This transaction itself raised the version by one.
      if ((await dataVersion(db)) !== since + 1)
        throw new DomainError(
          'invalid_state',
          'A server wrote to the PostgreSQL while it was copied, so the copy is not all of it. Stop every server, and repeat this.',
        );
      await sql`delete from store_version`.execute(db);
    },
    { flush: true },
  );
}
