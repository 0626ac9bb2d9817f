/** What the store needs of a database engine: each implements this, and passes the same tests. */
import type { Kysely, Transaction } from 'kysely';
import type { Change } from '../changes.ts';
import type { Schema } from '../schema.ts';

/** What keeps a database from working, where that is no fault of a query. */
export type DatabaseFault =
  | 'away'
  | 'crowded'
  | 'held'
  | 'locked'
  | 'slow'
  | 'standby'
  | 'full'
  | 'read-only'
  | 'moved'
  | 'disk'
  | 'damaged'
  | 'denied';

/** What a write waits for. */
export interface Obstacle {
  /** As a clause behind "The database cannot be written", for anybody. */
  reason: string;
  /** Who that is, for operators. */
  detail?: string | undefined;
}

export interface Reading {
  /** For single queries: nobody waits for anybody, for a query is over before the next can begin. */
  readonly reader: Kysely<Schema>;
  /** Runs a body whose queries all see the same moment, one body after the other. */
  readSnapshot<T>(body: (db: Transaction<Schema>) => Promise<T>): Promise<T>;
}

export interface Connections extends Reading {
  /** A way of their own for requests, which the service waits for nowhere; undefined where reading waits for nothing. */
  readonly forRequests?: Reading;
  /**
   * Runs a body in one transaction, which is on disk when this resolves if `flush` is set, and which no other connection
   * sees before. One at a time, for the caller to see to.
   */
  transact<T>(body: (db: Transaction<Schema>) => Promise<T>, options: { flush: boolean }): Promise<T>;
  /** Runs what brings the schema up to date, before anything else is asked; nobody else does so meanwhile. */
  migrating<T>(body: (db: Kysely<Schema>) => Promise<T>): Promise<T>;
  /**
   * For single statements that no other write has to wait for, nor they for others; a power cut can take them back. Undefined where
   * each is a write like the others.
   */
  readonly unordered?: Kysely<Schema>;
  /** Once the schema is that of this version. Rejects where the database cannot be used. */
  begin?(): Promise<void>;
  /** The other servers on the same database; undefined where there can be none. */
  readonly others?: Others;
  /** Asks what a write waits for that takes too long; undefined where it is the disk alone that can be it. */
  findObstacle?(): Promise<Obstacle>;
  close(): Promise<void>;
}

/** The other servers on the same database, which are told by the database. */
export interface Others {
  /** Has them told, once the transaction is committed, of what it changes. */
  announce(db: Transaction<Schema>, changes: readonly Change[]): void;
  /** Tells those that run now; resolves when the database has it. */
  send(topic: string, body: object): Promise<void>;
  /** Hears what they tell. Once, and before anything else is asked. */
  listen(listeners: {
    onChanges(changes: readonly Change[]): void;
    onMessage(topic: string, body: unknown, from: string): void;
  }): void;
}

/** What there is in a schema, by name. */
export interface SchemaObjects {
  /** With their columns. */
  tables: ReadonlyMap<string, readonly string[]>;
  indexes: ReadonlySet<string>;
  triggers: ReadonlySet<string>;
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

/** What is done with databases as files, which only SQLite's are. */
export interface FileDialect {
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
  /** Of the engine's library. */
  version(): string;
}
