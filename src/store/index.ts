/**
 * The database. Owns the schema, the migrations and every query; knows nothing of HTTP, SSH or OpenID.
 *
 * Flow: another folder calls a function of one of the aggregate files (`ssh-keys.ts`, `clusters.ts`, …). What reads takes
 * `store.read`; what writes is one `store.write` and so one transaction, whose body awaits nothing but the
 * transaction and may be run again. What a write touches is announced after its commit to whoever listens
 * (`store.changes`): a hint that something may have to be done, never the only way to learn of it.
 */
import { EventEmitter } from 'node:events';
import { chmodSync, closeSync, existsSync, openSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Kysely, Transaction } from 'kysely';
import { Migrator } from 'kysely/migration';
import type { AccessPolicy } from '../domain/access-lapse.ts';
import { DomainError } from '../domain/error.ts';
import { type Clock, createClock, createPatientClock } from '../lib/clock.ts';
import { type Connections, engine } from './engine.ts';
import { faultMessage, writeError } from './fault.ts';
import { createLapses, type Lapses } from './lapses.ts';
import { lockDataDir } from './lock.ts';
import { migrations } from './migrations/index.ts';
import { createObservationAges, type ObservationAges } from './observation-ages.ts';
import type { Schema } from './schema.ts';
import { createWriter } from './writer.ts';

/**
 * Whose state a committed write changed; `observedClusterId` when a cluster reported something new, or what is sold or set
 * aside there changed, `browsersOfUserId` when the person's sign-ins to the console changed and nothing else,
 * `sessionsOfUserId` when an SSH session of theirs opened or ended, `requestsOfUserId` when what they ask for changed.
 */
export type Change =
  | { userId: string }
  | { organizationId: string }
  | { clusterId: string }
  | { observedClusterId: string }
  | { browsersOfUserId: string }
  | { sessionsOfUserId: string }
  | { requestsOfUserId: string; inOrganizationId: string };

/** A write under way: the transaction, and what to announce once it is committed. */
export interface Tx {
  readonly db: Transaction<Schema>;
  /** When it began, in ms since 1970: the time of everything that it writes. */
  readonly now: number;
  readonly observationAges: ObservationAges;
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
  /** Calls `listener` after each commit that changed something; returns how to stop listening. */
  onChange(listener: (changes: readonly Change[]) => void): () => void;
  close(): Promise<void>;
}

/**
 * Opens the database of a data directory, making both if they are missing, and brings it to this version.
 * Holds the directory until closed. Throws `invalid_state` when another process holds it, or the directory was written by a newer version.
 * `clock`: the one of its writes. `access`: when access lapses; left out: never.
 * `beside`: where a server of this version holds the directory, works next to it (for a short while, on the host).
 */
export async function openStore(
  dataDir: string,
  options: { beside?: boolean; clock?: Clock; access?: AccessPolicy } = {},
): Promise<Store> {
  const { clock = createClock({}) } = options;
  const file = join(dataDir, 'andromeda.db');
  const unlock = lockDataDir(dataDir) ?? (options.beside ? undefined : refuseHeld(dataDir));
  let opened: Connections | undefined;
  try {
    refuseLost(dataDir, file);
    opened = openDatabase(file);
    if (unlock) {
      await migrate(opened.writer, file);
      opened.flushBeside(end);
    } else await requireMigrated(opened.writer);
  } catch (error) {
    await opened?.close();
    unlock?.();
    throw error;
  }
  const database = opened;
  const run = createWriter(database);
  const observationAges = createObservationAges(clock);
  const lapses = createLapses(options.access ?? {}, createPatientClock(clock), clock.now);
  const events = new EventEmitter<{ change: [readonly Change[]] }>();
  events.setMaxListeners(0);
  return {
    read: database.reader,
    observationAges,
    lapses,
    readSnapshot: database.readSnapshot,
    async write(body, options = { flush: true }) {
      let changes: Change[] = [];
      const attempt = (db: Transaction<Schema>) => {
        changes = [];
        return body({ db, now: clock.now(), observationAges, changed: (change) => changes.push(change) });
      };
      const result = await run(attempt, options).catch((error: unknown) => {
        throw writeError(error);
      });
      if (changes.length > 0) events.emit('change', changes);
      return result;
    },
    onChange(listener) {
      events.on('change', listener);
      return () => events.off('change', listener);
    },
    async close() {
      await database.close();
      unlock?.();
    },
  };
}

/**
 * Throws `invalid_state` where a data directory has keys and no database, or an empty one. A new database in its place
 * would make a service that knows nobody, under the host key that people trust.
 */
function refuseLost(dataDir: string, file: string): void {
  if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0) return;
  const keys = join(dataDir, 'keys');
  if (!existsSync(keys) || readdirSync(keys).length === 0) return;
  const state = existsSync(file) ? 'is empty' : 'is missing';
  throw new DomainError(
    'invalid_state',
    `The database ${file} ${state}, and there are keys beside it, so there was one. Bring it back, or restore a backup (\`andromeda restore\`). To begin anew on purpose, move ${keys} away first.`,
  );
}

function openDatabase(file: string): Connections {
  try {
    // SQLite gives its -wal and -shm files the mode of the database, so setting this one once protects all three.
    if (!existsSync(file)) closeSync(openSync(file, 'a', 0o600));
    chmodSync(file, 0o600);
    return engine.open(file);
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException;
    const reason = code === 'SQLITE_CORRUPT' ? faultMessage(error) : message;
    throw new DomainError('invalid_state', `The database ${file} cannot be opened: ${reason}.`, {
      cause: error,
    });
  }
}

/** Nobody catches it, so that it ends the process: whoever starts it again reads what reached the disk. */
function end(error: Error): void {
  setImmediate(() => {
    throw error;
  });
}

function refuseHeld(dataDir: string): never {
  throw new DomainError('invalid_state', `Another Andromeda serves from ${dataDir}. Stop that one first.`);
}

async function requireMigrated(writer: Kysely<Schema>): Promise<void> {
  const migrator = new Migrator({ db: writer, provider: { getMigrations: async () => migrations } });
  const pending = (await migrator.getMigrations()).some((step) => step.executedAt === undefined);
  if (!pending) return;
  throw new DomainError('invalid_state', 'The server that runs is of another version. Stop it first.');
}

async function migrate(writer: Kysely<Schema>, file: string): Promise<void> {
  const migrator = new Migrator({ db: writer, provider: { getMigrations: async () => migrations } });
  const { error } = await migrator.migrateToLatest();
  if (!error) return;
  if (error instanceof Error && /missing/.test(error.message)) {
    throw new DomainError(
      'invalid_state',
      `${file} was written by a newer version of Andromeda. Start that version, or restore a backup made by this one.`,
      { cause: error },
    );
  }
  const fault = faultMessage(error);
  if (fault === undefined) throw error;
  throw new DomainError('service_unavailable', `The database ${file} cannot be used: ${fault}.`, {
    cause: error,
  });
}
