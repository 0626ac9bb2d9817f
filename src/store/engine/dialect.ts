/** The interface of a database engine: each engine implements it, and passes the same tests. */
import type { Kysely, Transaction } from 'kysely';
import type { Schema } from '../generated/schema.ts';
import type { Change } from './changes.ts';

/** Faults that keep a database from working, other than a wrong query. */
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
  /** A clause to follow "The database cannot be written", which any reader may see. */
  reason: string;
  detail?: string | undefined;
}

export interface Reading {
  /** For single queries, which do not wait for each other. */
  readonly reader: Kysely<Schema>;
  /** Runs a body whose queries all see one snapshot; only few bodies run at a time. */
  readSnapshot<T>(body: (db: Transaction<Schema>) => Promise<T>): Promise<T>;
}

export interface Connections extends Reading, AsyncDisposable {
  /** Separate connections for requests, for which the service itself never waits; undefined where reads never wait. */
  readonly forRequests?: Reading;
  /**
   * Runs a body in one transaction, which is on disk when this resolves if `flush` is set, and which no other
   * connection sees before. The caller runs one at a time.
   */
  transact<T>(body: (db: Transaction<Schema>) => Promise<T>, options: { flush: boolean }): Promise<T>;
  /** Removes deleted data from the engine's own log; false while a reader of the log prevents that. */
  emptyLog(): Promise<boolean>;
  /** Runs the schema migration, before any other query; no other server migrates at the same time. */
  migrating<T>(body: (db: Kysely<Schema>) => Promise<T>): Promise<T>;
  /**
   * For single statements that wait for no other write, nor others for them; a power cut can take them back. Undefined
   * where each is a write like the others.
   */
  readonly unordered?: Kysely<Schema>;
  /** Begins to serve, once the schema is that of this version. Rejects where the database cannot be used. */
  begin?(): Promise<void>;
  /** The other servers on the same database; undefined where there can be none. */
  readonly others?: Others;
  /** Why the database cannot be reached at the moment, as far as that is known; undefined where it can. */
  failure(): Error | undefined;
  /** The PostgreSQL primaries that are refused, as sentences with the reason. */
  formerPrimaries(): readonly string[];
  /** Finds what a slow write waits for; undefined where it can only be the disk. */
  findObstacle(): Promise<Obstacle | undefined>;
}

/** The other servers on the same database, with messages to and from them through the database. */
export interface Others {
  /** Announces the changes of a transaction to them once it is committed. */
  announce(db: Transaction<Schema>, changes: readonly Change[]): void;
  /** Sends a message to the servers that run now; resolves when the database has it. */
  send(topic: string, body: object): Promise<void>;
  /** Receives their changes and messages. Must be called once, before any query. */
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
