/** What the store needs of a database engine: each implements this, and passes the same tests. */
import type { Kysely, Transaction } from 'kysely';
import type { Schema } from '../generated/schema.ts';
import type { Change } from './changes.ts';

/** What keeps a database from working, where that is no fault of a query. */
export type DatabaseFault =
  | 'away'
  | 'crowded'
  | 'former'
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

export interface Obstacle {
  /** As a clause behind "The database cannot be written", which any reader may see. */
  reason: string;
  detail?: string | undefined;
}

export interface Reading {
  /** For single queries, which do not wait for each other. */
  readonly reader: Kysely<Schema>;
  /** Runs a body whose queries all see the same moment, one body after the other. */
  readSnapshot<T>(body: (db: Transaction<Schema>) => Promise<T>): Promise<T>;
}

export interface Connections extends Reading, AsyncDisposable {
  /** A way of their own for requests, which the service waits for nowhere; undefined where reading waits for nothing. */
  readonly forRequests?: Reading;
  /**
   * Runs a body in one transaction, which is on disk when this resolves if `flush` is set, and which no other connection
   * sees before. One at a time, for the caller to see to.
   */
  transact<T>(body: (db: Transaction<Schema>) => Promise<T>, options: { flush: boolean }): Promise<T>;
  /** Takes out of the engine's own log what no row has any more; false while that is read, and so cannot be done. */
  emptyLog(): Promise<boolean>;
  /** Runs the schema migration, before any other query; no other server migrates at the same time. */
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
  /** Why the database cannot be reached at the moment, as far as that is known; undefined where it can. */
  failure(): Error | undefined;
  /** The PostgreSQL primaries that are not served from, as sentences with the reason. */
  formerPrimaries(): readonly string[];
  /** Asks what a write waits for that takes too long; undefined where it is the disk alone that can be it. */
  findObstacle(): Promise<Obstacle | undefined>;
}

/** The other servers on the same database, with messages to and from them through the database. */
export interface Others {
  /** Announces the changes of a transaction to them once it is committed. */
  announce(db: Transaction<Schema>, changes: readonly Change[]): void;
  /** Sends a message to those that run now; resolves when the database has it. */
  send(topic: string, body: object): Promise<void>;
  /** Receives what they send. To be called once, before any query. */
  listen(listeners: {
    onChanges(changes: readonly Change[]): void;
    onMessage(topic: string, body: unknown, from: string): void;
  }): void;
}

export interface SchemaObjects {
  tables: ReadonlyMap<string, readonly string[]>;
  indexes: ReadonlySet<string>;
  triggers: ReadonlySet<string>;
}

export interface CopyOptions {
  /** Called with the part that is copied, from 0 to 1. */
  onProgress?: ((part: number) => void) | undefined;
  signal?: AbortSignal | undefined;
}
