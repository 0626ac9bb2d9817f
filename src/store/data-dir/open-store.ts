/** Opens the database of a data directory as a store, after checking who may open it and which database it is. */
import { chmodSync, closeSync, existsSync, openSync } from 'node:fs';
import { join } from 'node:path';
import type { AccessPolicy } from '../../domain/access/lapse.ts';
import { DomainError } from '../../domain/error.ts';
import { newId } from '../../domain/id.ts';
import { type Clock, createClock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';
import { describePostgres, parsePostgresUrl } from '../../lib/postgres-url.ts';
import type { SecretsKeys } from '../../lib/secrets-key.ts';
import {
  type Connections,
  faultMessage,
  openPostgres,
  openSqlite,
  type SqliteConnections,
} from '../engine/engine.ts';
import { createStore, type Store } from '../engine/index.ts';
import { type KnownSchema, migrate, requireMigrated } from '../engine/migrate.ts';
import { keepBeforeUpgrade } from './before-upgrade.ts';
import { noteInstallation, refuseLost, refuseUnfit, timelineNote } from './first-start.ts';
import { lockDataDir } from './lock.ts';

const databaseName = 'andromeda.db';

interface DatabaseOptions {
  /** Allows a directory that a server of this version holds: works next to it (for a short while, on the host). */
  beside?: boolean;
  /** Requires the schema of a PostgreSQL to exist, and does not change it; others may be serving from it. */
  unchanged?: boolean;
  /** `postgres://…`: the database that it shares with other servers; left out: SQLite's file in the data directory. */
  database?: string | undefined;
  secrets?: SecretsKeys | undefined;
  /** The log of a server, which waits while that database is away, and logs that. Left out: that is refused. */
  log?: Logger | undefined;
  stopping?: Promise<unknown> | undefined;
  /** The schema of another version instead of this one's; for tests of upgrades. */
  schema?: KnownSchema | undefined;
  /** While one database is copied to the other: there may be an SQLite file although the PostgreSQL is empty. */
  isCopying?: boolean;
}

export interface StoreOptions extends Omit<DatabaseOptions, 'isCopying'> {
  clock?: Clock;
  access?: AccessPolicy;
}

/**
 * Opens the database of a data directory, making both if they are missing, and brings it to this version.
 * Holds the directory until closed. Throws `invalid_state` when another process holds it, or the database is of another version that it cannot use.
 */
export async function openStore(dataDir: string, options: StoreOptions = {}): Promise<Store> {
  const { clock = createClock({}), access = {}, log } = options;
  const id = newId('server', clock.now());
  const { connections, unlock } = await openDataDir(dataDir, id, options);
  const server = { id, isAlone: connections.others === undefined };
  return createStore(connections, { clock, access, log, server, onClosed: unlock });
}

/** Opens the database for `openStore`. `unlock` releases the directory; undefined where a running server holds it. */
export async function openDataDir(
  dataDir: string,
  serverId: string,
  options: DatabaseOptions,
): Promise<{ connections: Connections; unlock: (() => void) | undefined }> {
  const unlock = lockDataDir(dataDir) ?? (options.beside ? undefined : refuseHeld(dataDir));
  await using unlessOpen = new AsyncDisposableStack();
  unlessOpen.defer(() => unlock?.());
  const opening = { ...options, dataDir, isMigrating: unlock !== undefined, unlessOpen };
  const { database } = options;
  const connections =
    database === undefined ? await openFile(opening) : await openServer(database, serverId, opening);
  unlessOpen.move();
  return { connections, unlock };
}

interface Opening extends DatabaseOptions {
  dataDir: string;
  isMigrating: boolean;
  unlessOpen: AsyncDisposableStack;
}

async function openFile(opening: Opening): Promise<Connections> {
  const { dataDir, isMigrating, unlessOpen, schema: known, log } = opening;
  const file = join(dataDir, databaseName);
  refuseLost(dataDir, file);
  const connections = unlessOpen.use(openDatabaseFile(file));
  const beforeMigrations = async (last: string) => {
    const backup = await keepBeforeUpgrade(dataDir, last, new Date());
    log?.info('database.upgrading', { backup });
  };
  await connections.migrating((db) =>
    isMigrating ? migrate(db, file, { known, beforeMigrations }) : requireMigrated(db, file, known),
  );
  if (isMigrating) connections.flushBeside(end);
  return connections;
}

async function openServer(url: string, serverId: string, opening: Opening): Promise<Connections> {
  const { dataDir, isMigrating, unlessOpen, schema: known, log, stopping, isCopying } = opening;
  const timeline = timelineNote(dataDir, isMigrating);
  const connections = unlessOpen.use(
    await openPostgres(url, { serverId, log, stopping, isCopying, timeline }),
  );
  const name = describePostgres(parsePostgresUrl(url));
  if (opening.unchanged) await requireMigrated(connections.reader, name, known);
  else
    await connections.migrating(async (db) => {
      if (isMigrating) await migrate(db, name, { isShared: true, known });
      else await requireMigrated(db, name, known);
      if (isCopying) return;
      await refuseUnfit(db, name, dataDir, opening.secrets);
      await noteInstallation(db, dataDir);
    });
  await connections.begin?.();
  return connections;
}

/** Throws `invalid_state` with a sentence where it cannot be opened. */
export function openDatabaseFile(file: string): SqliteConnections {
  try {
    // SQLite gives its -wal and -shm files the mode of the database, so setting this one once protects all three.
    if (!existsSync(file)) closeSync(openSync(file, 'a', 0o600));
    chmodSync(file, 0o600);
    return openSqlite(file);
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException;
    const reason = code === 'SQLITE_CORRUPT' ? faultMessage(error) : message;
    throw new DomainError('invalid_state', `The database ${file} cannot be opened: ${reason}.`, {
      cause: error,
    });
  }
}

/** Throws an uncaught error, which ends the process; the next start reads what reached the disk. */
function end(error: Error): void {
  setImmediate(() => {
    throw error;
  });
}

function refuseHeld(dataDir: string): never {
  throw new DomainError('invalid_state', `Another Andromeda serves from ${dataDir}. Stop that one first.`);
}
