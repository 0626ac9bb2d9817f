/**
 * The database. Owns the schema, the migrations and every query; knows nothing of HTTP, SSH or OpenID.
 *
 * Flow: another folder calls a function of one of the aggregate files (`ssh-keys.ts`, `clusters.ts`, …). Reads use
 * `store.read`; each write is one `store.write` and so one transaction, whose body awaits nothing but the transaction and
 * may be run again. After its commit, the changes are announced to listeners (`store.onChange`), here and on the other
 * servers of the same database: a hint that something may have to be done, never the only way to learn of it.
 */
import { EventEmitter } from 'node:events';
import { type Kysely, sql, type Transaction } from 'kysely';
import type { AccessPolicy } from '../../domain/access/lapse.ts';
import { type Clock, createPatientClock } from '../../lib/clock.ts';
import { messageOf } from '../../lib/error-message.ts';
import type { Logger } from '../../lib/log.ts';
import type { Schema } from '../generated/schema.ts';
import type { Change, ChangeListener, ChangeOrigin } from './changes.ts';
import { type Connections, databaseFault, dataVersion, writeError } from './engine.ts';
import { createMessages, type Messages } from './messages.ts';
import {
  createObservationAges,
  type ObservationAges,
  type RecordedObservation,
  readObservation,
} from './observation-ages.ts';
import { createLapses, type Lapses } from './time.ts';
import { createWriter } from './writer.ts';

export { type Change, type Heard, hears } from './changes.ts';

/** A write under way: the transaction, and what to announce once it is committed. */
export interface Tx {
  readonly db: Transaction<Schema>;
  /** The time at which it began, in ms since 1970: the time of everything that it writes. */
  readonly now: number;
  readonly observationAges: ObservationAges;
  readonly server: Store['server'];
  changed(change: Change): void;
}

/** The reading connection or a transaction: all that a query needs. */
export type Reader = Kysely<Schema>;

export interface Store
  extends Pick<Connections, 'findObstacle' | 'failure' | 'formerPrimaries' | 'emptyLog'> {
  /** For single queries: none waits for another, and each sees what was committed before. */
  readonly read: Reader;
  readonly observationAges: ObservationAges;
  readonly lapses: Lapses;
  /** Runs a body whose queries all see one snapshot. It writes nothing. */
  readSnapshot<T>(body: (db: Reader) => Promise<T>): Promise<T>;
  /**
   * Runs `body` in one transaction; its changes are on disk when this resolves. Throws `service_unavailable` when the
   * file is held by another program or the disk is full. With `flush: false`, for data that will be found again
   * anyway, it does not wait for the disk, and a power cut can take it back.
   */
  write<T>(body: (tx: Tx) => Promise<T>, options?: { flush: boolean }): Promise<T>;
  /**
   * Runs one statement that changes rows that only this server writes; a power cut can take it back. On PostgreSQL it does not
   * wait for other writes, however long they take, and has no order among them.
   */
  writeOwn<T>(body: (db: Reader) => Promise<T>): Promise<T>;
  /** The time at which the disk was last too full for a write, by `performance.now()`. */
  fullAt(): number;
  /**
   * Calls `listener` after each commit with changes of these kinds (`hears`), of this server or of another one of the same database;
   * returns how to stop listening.
   */
  onChange<K extends Change['kind']>(kinds: readonly K[], listener: ChangeListener<K>): () => void;
  readonly messages: Messages;
  /** This opening of the store, which has an ID of its own each time; `isAlone` where there can be no other server. */
  readonly server: { readonly id: string; readonly isAlone: boolean };
  /** Connections for reads of requests, apart from those of the service itself: see `storeForRequests`. */
  readonly forRequests?: Pick<Store, 'read' | 'readSnapshot'> | undefined;
  close(): Promise<void>;
}

export interface CreateStoreOptions {
  clock: Clock;
  access: AccessPolicy;
  log: Logger | undefined;
  server: Store['server'];
  onClosed?: (() => void) | undefined;
}

/** The store of an open database, whose schema is that of this version. */
export function createStore(
  connections: Connections,
  { clock, access, log, server, onClosed }: CreateStoreOptions,
): Store {
  const { others, findObstacle, emptyLog, failure, formerPrimaries } = connections;
  const announced = announcements(others, log);
  const run = createWriter(connections);
  const observationAges = createObservationAges(clock, others && announced.announceObservation);
  announced.messages.on(observedTopic, (body) => observationAges.heard(readObservation(body)));
  let fullAt = Number.NEGATIVE_INFINITY;
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
      if (databaseFault(error) === 'full') fullAt = performance.now();
      throw writeError(error);
    });
    if (changes.length > 0) announced.emit(changes, { from: 'here' });
    return result;
  };
  return {
    read: connections.reader,
    observationAges,
    lapses: createLapses(access, createPatientClock(clock), clock.now),
    server,
    messages: announced.messages,
    readSnapshot: connections.readSnapshot,
    ...{ findObstacle, emptyLog, failure, formerPrimaries },
    write,
    writeOwn: (body) => writeOwn(connections, write, body),
    fullAt: () => fullAt,
    onChange: announced.onChange,
    forRequests: connections.forRequests && {
      read: connections.forRequests.reader,
      readSnapshot: connections.forRequests.readSnapshot,
    },
    async close() {
      await connections[Symbol.asyncDispose]();
      onClosed?.();
    },
  };
}

async function writeOwn<T>(
  { reader, unordered }: Connections,
  write: Store['write'],
  body: (db: Reader) => Promise<T>,
): Promise<T> {
  // A database that was copied to another takes no writes: `write` throws the error that says so.
  if (!unordered || Number.isNaN(await dataVersion(reader)))
    return write(({ db }) => body(db), { flush: false });
  return body(unordered);
}

/** The same store for requests of people: however long these take, the service's own work does not wait for them. */
export function storeForRequests(store: Store): Store {
  return { ...store, ...store.forRequests };
}

const observedTopic = 'observed';

/** The changes that commits of this and other servers announce, and messages of other servers. */
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
          // A change of another server must end neither this server nor the work of the other listeners.
          failed('changes', error);
        }
      }
    },
    onMessage: received,
  });
  return {
    messages,
    /** A server that misses it measures the report's age by the time of day. */
    announceObservation: (observation: RecordedObservation) =>
      void messages.send(observedTopic, observation).catch(() => {}),
    emit: (changes: readonly Change[], origin: ChangeOrigin) => void events.emit('change', changes, origin),
    onChange<K extends Change['kind']>(kinds: readonly K[], listener: ChangeListener<K>) {
      const wanted = new Set<string>(kinds);
      const isHeard = (change: Change): change is Extract<Change, { kind: K }> => wanted.has(change.kind);
      const onSome: ChangeListener = (changes, origin) => {
        const some = changes.filter(isHeard);
        if (some.length > 0) listener(some, origin);
      };
      events.on('change', onSome);
      return () => void events.off('change', onSome);
    },
  };
}

/** Runs a write and rolls it back: returns its result; nothing of it is stored or announced. */
export async function tryOut<T>(store: Pick<Store, 'write'>, body: (tx: Tx) => Promise<T>): Promise<T> {
  const outcome: { value?: T } = {};
  const takenBack = new Error('taken back');
  try {
    await store.write(async (tx) => {
      outcome.value = await body(tx);
      throw takenBack;
    });
  } catch (error) {
    if (error !== takenBack) throw error;
  }
  return outcome.value as T;
}

/** Runs part of a write that is tried out; where it throws, its writes are rolled back, and the rest can go on. */
export async function inPart<T>(tx: Tx, body: () => Promise<T>): Promise<T> {
  await sql`savepoint part`.execute(tx.db);
  try {
    const result = await body();
    // Fails where a statement in it failed that was not awaited.
    await sql`release part`.execute(tx.db);
    return result;
  } catch (error) {
    await sql`rollback to part`.execute(tx.db);
    await sql`release part`.execute(tx.db);
    throw error;
  }
}
