/** What the store needs of a database engine; a second one implements this, and passes the same tests. */
import type { Kysely, Transaction } from 'kysely';
import type { Schema } from '../schema.ts';

/** What keeps a database from working, where that is no fault of a query. */
export type DatabaseFault = 'held' | 'full' | 'read-only' | 'moved' | 'disk' | 'damaged';

export interface Connections {
  /** For migrations, before anything else is asked. */
  readonly writer: Kysely<Schema>;
  /** For single queries: nobody waits for anybody, for a query is over before the next can begin. */
  readonly reader: Kysely<Schema>;
  /** Runs a body whose queries all see the same moment, one body after the other. */
  readSnapshot<T>(body: (db: Transaction<Schema>) => Promise<T>): Promise<T>;
  /**
   * Runs a body in one transaction, which is on disk when this resolves if `flush` is set, and which no other connection
   * sees before. One at a time, for the caller to see to.
   */
  transact<T>(body: (db: Transaction<Schema>) => Promise<T>, options: { flush: boolean }): Promise<T>;
  /**
   * From now on the disk is waited for beside this thread, by the one process that serves. Where it fails, `onFailure` is
   * called, which ends the process: what was written since cannot be trusted, and no transaction resolves any more.
   * Transactions fail from then on while the files are not where they were when they were opened.
   */
  flushBeside(onFailure: (error: Error) => void): void;
  close(): Promise<void>;
}

/** A database that is one file, such as a backup, opened by nobody else; whoever uses it waits meanwhile. */
export interface DatabaseFile {
  run(sql: string, ...values: unknown[]): void;
  /** Rows, one after the other, so that not all of them need be in memory. */
  rows<Row>(sql: string): Iterable<Row>;
  /** All of it or nothing, and on disk when this returns. */
  transaction(body: () => void): void;
  /** What kind of file it is, by the number that `setKind` left; undefined where it is no database. */
  kind(): number | undefined;
  setKind(kind: number): void;
  /** Whether every page and every reference is as it should be. */
  isWhole(): boolean;
  /** Writes what is in it to an empty file, and nothing of what was deleted from it. Whoever calls waits. */
  compactInto(file: string): void;
  close(): void;
}

/** A database that others may be using, to look at. Each call is one short reading, and whoever calls waits. */
export interface DatabaseView {
  rows<Row>(sql: string, ...values: unknown[]): Row[];
  tables(): string[];
  /** What is wrong with a table, its indexes and its references, in the engine's words; the first few. */
  faultsOf(table: string): string[];
  close(): void;
}

export interface CopyOptions {
  /** Hears how much is copied, from 0 to 1. */
  onProgress?: ((part: number) => void) | undefined;
  /** Ends it. */
  signal?: AbortSignal | undefined;
}

export interface Dialect {
  /** Opens the file, creating it if it is missing. */
  open(file: string): Connections;
  /** Opens a file that is a whole database by itself; what is removed from it leaves no trace in it. */
  openFile(file: string, options?: { readonly: boolean }): DatabaseFile;
  /** Whether a file begins as a database does. */
  isDatabase(file: string): boolean;
  /**
   * Opens a database to look at, whoever uses it. With `unchanged`, nothing is written, not even beside the file; undefined
   * where that cannot be.
   */
  view(file: string, options: { unchanged: boolean }): DatabaseView | undefined;
  /** Copies a database that others use, as it was at one instant, into an empty file. Nobody waits for it. */
  copy(from: string, to: string, options: CopyOptions): Promise<void>;
  /** Holds a file until released or until this process ends however it ends; undefined when another process holds it. */
  lock(file: string): (() => void) | undefined;
  /** Runs a compiled query on a connection or in a transaction. */
  execute<Row>(db: Kysely<Schema>, sql: string, parameters?: readonly unknown[]): Promise<Row[]>;
  /** How many rows a transaction's connection has changed so far; NaN, which equals nothing, when the transaction is over. */
  countChanges(db: Transaction<Schema>): Promise<number>;
  /** A number that is another one after every commit, of whichever process. */
  dataVersion(reader: Kysely<Schema>): Promise<number>;
  /** Whether an error is the engine's own. */
  isDatabaseError(error: unknown): boolean;
  /** What an error says of the file or its disk; undefined for any other error. */
  databaseFault(error: unknown): DatabaseFault | undefined;
  /** Of the engine's library. */
  version(): string;
}
