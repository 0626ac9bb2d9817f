/** What the store needs of a database engine; a second one implements this, and passes the same tests. */
import type { Kysely, Transaction } from 'kysely';
import type { Schema } from '../schema.ts';

/** What keeps a database from working, where that is no fault of a query. */
export type DatabaseFault = 'held' | 'full' | 'read-only' | 'disk' | 'damaged';

export interface Connections {
  /** One such connection a process: whoever has a transaction keeps the others waiting. */
  readonly writer: Kysely<Schema>;
  /** For single queries: nobody waits for anybody, for a query is over before the next can begin. */
  readonly reader: Kysely<Schema>;
  /** For transactions that only read (`readSnapshot`). */
  readonly snapshots: Kysely<Schema>;
  close(): void;
}

export interface Dialect {
  /** Opens the file, creating it if it is missing. */
  open(file: string): Connections;
  /** Runs a compiled query on a connection or in a transaction. */
  execute<Row>(db: Kysely<Schema>, sql: string, parameters?: readonly unknown[]): Promise<Row[]>;
  /** Runs a body whose queries all see the same moment. */
  readSnapshot<T>(snapshots: Kysely<Schema>, body: (db: Transaction<Schema>) => Promise<T>): Promise<T>;
  /** Runs a body in one transaction, which is on disk when this resolves if `flush` is set. */
  transact<T>(
    writer: Kysely<Schema>,
    body: (db: Transaction<Schema>) => Promise<T>,
    options: { flush: boolean },
  ): Promise<T>;
  /** How many rows a transaction's connection has changed so far; NaN, which equals nothing, when the transaction is over. */
  countChanges(db: Transaction<Schema>): Promise<number>;
  /** A number that is another one after every commit, of whichever process. */
  dataVersion(reader: Kysely<Schema>): Promise<number>;
  /** What an error says of the file or its disk; undefined for any other error. */
  databaseFault(error: unknown): DatabaseFault | undefined;
}
