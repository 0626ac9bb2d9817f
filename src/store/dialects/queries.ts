/** How queries are run: found by the connection or transaction that they are asked of, whichever engine it is one of. */
import { CompiledQuery, type Kysely, type Transaction } from 'kysely';
import { yieldToEventLoop } from '../../lib/event-loop.ts';
import type { Schema } from '../schema.ts';

/** The queries of a connection, or of a transaction while it lasts. */
export interface Queries {
  /** Whose SQL it takes: what is compiled for one of an engine is good for all of that engine. */
  readonly engine: 'sqlite' | 'postgres';
  run<Row>(sql: string, parameters: readonly unknown[]): Row[] | Promise<Row[]>;
  countChanges(): number;
  dataVersion(): number | Promise<number>;
}

const queriesOf = new WeakMap<Kysely<Schema>, Queries>();

/** From now on `execute` knows how to run what is asked of `db`. */
export function setQueries(db: Kysely<Schema>, queries: Queries): void {
  queriesOf.set(db, queries);
}

/** What is asked of a transaction that is over is refused. */
export function removeQueries(db: Kysely<Schema>): void {
  queriesOf.delete(db);
}

/** Whose SQL it takes; undefined where it is over. */
export function engineNameOf(db: Kysely<Schema>): Queries['engine'] | undefined {
  return queriesOf.get(db)?.engine;
}

/**
 * Runs a compiled query where `db` would, without its way to a connection: that is for connections that have to be waited for,
 * and costs as much as a query by key.
 */
export async function execute<Row>(
  db: Kysely<Schema>,
  sql: string,
  parameters: readonly unknown[] = [],
): Promise<Row[]> {
  const way = yieldToEventLoop();
  if (way) await way;
  const queries = queriesOf.get(db);
  // It is over, which Kysely says.
  if (!queries) return (await db.executeQuery<Row>(CompiledQuery.raw(sql, [...parameters]))).rows;
  return queries.run<Row>(sql, parameters);
}

/** How many rows a transaction's connection has changed so far; NaN, which equals nothing, when the transaction is over. */
export function countChanges(db: Transaction<Schema>): number {
  return queriesOf.get(db)?.countChanges() ?? Number.NaN;
}

/** A number that is another one after every commit, of whichever process. */
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
