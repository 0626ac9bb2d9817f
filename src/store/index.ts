/**
 * The database. Owns the schema, the migrations and every query; knows nothing of HTTP, SSH or OpenID.
 *
 * Flow: another folder calls a function of one of the aggregate files (`ssh-keys.ts`, `clusters.ts`, …). What reads takes
 * `store.read`; what writes is one `store.write` and so one transaction, whose body awaits nothing but the
 * transaction and may be run again. What a write touches is announced after its commit to whoever listens
 * (`store.onChange`), here and on the other servers of the same database: a hint that something may have to be done, never the only way to learn of it.
 */
import { EventEmitter } from 'node:events';
import type { Kysely, Transaction } from 'kysely';
import type { AccessPolicy } from '../domain/access-lapse.ts';
import { newId } from '../domain/id.ts';
import { type Clock, createClock, createPatientClock } from '../lib/clock.ts';
import { messageOf } from '../lib/error-message.ts';
import type { Logger } from '../lib/log.ts';
import type { Change, ChangeListener, ChangeOrigin } from './changes.ts';
import { type Connections, dataVersion, type Obstacle } from './engine.ts';
import { writeError } from './fault.ts';
import { createLapses, type Lapses } from './lapses.ts';
import { createMessages, type Messages } from './messages.ts';
import type { SchemaSteps } from './migrate.ts';
import {
  createObservationAges,
  type ObservationAges,
  type RecordedObservation,
  readObservation,
} from './observation-ages.ts';
import { openDataDir } from './open-data-dir.ts';
import type { Schema } from './schema.ts';
import { createWriter } from './writer.ts';

export type { Change } from './changes.ts';

/** A write under way: the transaction, and what to announce once it is committed. */
export interface Tx {
  readonly db: Transaction<Schema>;
  /** When it began, in ms since 1970: the time of everything that it writes. */
  readonly now: number;
  readonly observationAges: ObservationAges;
  /** Who writes. */
  readonly server: Store['server'];
  changed(change: Change): void;
}

/** What a query needs: the reading connection or a transaction. */
export type Reader = Kysely<Schema>;

export interface Store {
  /** For single queries: no one waits for another, and each sees what was committed before. */
  readonly read: Reader;
  readonly observationAges: ObservationAges;
  readonly lapses: Lapses;
  /** Runs a body whose queries all see the same moment. It writes nothing. */
  readSnapshot<T>(body: (db: Reader) => Promise<T>): Promise<T>;
  /**
   * Runs `body` in one transaction; what it returned is on disk when this resolves. Throws `service_unavailable` when
   * the file is held by another program or the disk is full. With `flush: false`, for what will be found out again
   * anyway, it does not wait for the disk, and a power cut can take it back.
   */
  write<T>(body: (tx: Tx) => Promise<T>, options?: { flush: boolean }): Promise<T>;
  /**
   * Runs one statement that changes what nobody but this server writes, and which a power cut can take back. On PostgreSQL it
   * does not wait for other writes, however long they take, and is in no order with them.
   */
  writeOwn<T>(body: (db: Reader) => Promise<T>): Promise<T>;
  /**
   * Calls `listener` after each commit that changed something, of this server or of another one of the same database;
   * returns how to stop listening.
   */
  onChange(listener: ChangeListener): () => void;
  readonly messages: Messages;
  /** Asks what a write waits for that takes too long; undefined where that can be the disk alone. */
  findObstacle(): Promise<Obstacle | undefined>;
  /** This opening of the store, which has an ID of its own each time; `isAlone` where there can be no other server. */
  readonly server: { readonly id: string; readonly isAlone: boolean };
  /** What requests read with, apart from what the service does by itself: see `storeForRequests`. */
  readonly forRequests?: Pick<Store, 'read' | 'readSnapshot'> | undefined;
  close(): Promise<void>;
}

export interface StoreOptions {
  /** Where a server of this version holds the directory, works next to it (for a short while, on the host). */
  beside?: boolean;
  /** The schema of a PostgreSQL is to be there already, and is not changed; others may be serving from it. */
  unchanged?: boolean;
  /** The one of its writes. */
  clock?: Clock;
  /** When access lapses; left out: never. */
  access?: AccessPolicy;
  /** `postgres://…`: the database that it shares with other servers; left out: SQLite's file in the data directory. */
  database?: string | undefined;
  /** Of a server: where that database is away, it waits, and says so here. Left out: that is refused. */
  log?: Logger | undefined;
  /** Resolves when it is to wait no longer. */
  stopping?: Promise<unknown> | undefined;
  /** The steps of another version, in the place of this one's; for tests of upgrades. */
  schema?: SchemaSteps | undefined;
}

/**
 * Opens the database of a data directory, making both if they are missing, and brings it to this version.
 * Holds the directory until closed. Throws `invalid_state` when another process holds it, or the directory was written by a newer version.
 */
export async function openStore(dataDir: string, options: StoreOptions = {}): Promise<Store> {
  const { clock = createClock({}) } = options;
  const id = newId('server', clock.now());
  const { connections, unlock } = await openDataDir(dataDir, id, options);
  const { others } = connections;
  const announced = announcements(others, options.log);
  const run = createWriter(connections);
  const server = { id, isAlone: others === undefined };
  const observationAges = createObservationAges(clock, others && announced.announceObservation);
  announced.messages.on(observedTopic, (body) => observationAges.heard(readObservation(body)));
  const write: Store['write'] = async (body, options = { flush: true }) => {
    let changes: Change[] = [];
    const attempt = async (db: Transaction<Schema>) => {
      changes = [];
      const changed = (change: Change) => void changes.push(change);
      const result = await body({ db, now: clock.now(), observationAges, server, changed });
      if (changes.length > 0) others?.announce(db, changes);
      return result;
    };
    const result = await run(attempt, options).catch((error: unknown) => {
      throw writeError(error);
    });
    if (changes.length > 0) announced.emit(changes, { from: 'here' });
    return result;
  };
  return {
    read: connections.reader,
    observationAges,
    lapses: createLapses(options.access ?? {}, createPatientClock(clock), clock.now),
    server,
    messages: announced.messages,
    readSnapshot: connections.readSnapshot,
    findObstacle: async () => connections.findObstacle?.(),
    write,
    writeOwn: (body) => writeOwn(connections, write, body),
    onChange: announced.onChange,
    forRequests: connections.forRequests && {
      read: connections.forRequests.reader,
      readSnapshot: connections.forRequests.readSnapshot,
    },
    async close() {
      await connections.close();
      unlock?.();
    },
  };
}

async function writeOwn<T>(
  { reader, unordered }: Connections,
  write: Store['write'],
  body: (db: Reader) => Promise<T>,
): Promise<T> {
  // A database that was copied to another takes no writes, which a write says.
  if (!unordered || Number.isNaN(await dataVersion(reader)))
    return write(({ db }) => body(db), { flush: false });
  return body(unordered);
}

/** The same store for what people ask for: however long that takes, what the service does by itself does not wait for it. */
export function storeForRequests(store: Store): Store {
  return { ...store, ...store.forRequests };
}

const observedTopic = 'observed';

/** What commits here and elsewhere announce, and what other servers send. */
function announcements(others: Connections['others'], log: Logger | undefined) {
  const events = new EventEmitter<{ change: [readonly Change[], ChangeOrigin] }>();
  events.setMaxListeners(0);
  const failed = (topic: string, error: unknown) =>
    log?.warn('servers.message.failed', { topic, error: messageOf(error) });
  const { received, ...messages } = createMessages(others, failed);
  others?.listen({
    onChanges(changes) {
      for (const listener of events.listeners('change') as ChangeListener[]) {
        try {
          listener(changes, { from: 'elsewhere' });
        } catch (error) {
          // What another server did must not end this one, nor what the other listeners do.
          failed('changes', error);
        }
      }
    },
    onMessage: received,
  });
  return {
    messages,
    /** Whoever misses it measures by the time of day. */
    announceObservation: (observation: RecordedObservation) =>
      void messages.send(observedTopic, observation).catch(() => {}),
    emit: (changes: readonly Change[], origin: ChangeOrigin) => void events.emit('change', changes, origin),
    onChange(listener: ChangeListener) {
      events.on('change', listener);
      return () => void events.off('change', listener);
    },
  };
}
