/** Opens the database of a data directory as a store: who may open it, and what it must be before anything is asked of it. */
import { chmodSync, closeSync, existsSync, openSync } from 'node:fs';
import { join } from 'node:path';
import type { AccessPolicy } from '../../domain/access/lapse.ts';
import { DomainError } from '../../domain/error.ts';
import { newId } from '../../domain/id.ts';
import { type Clock, createClock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';
import { describePostgres, parsePostgresUrl } from '../../lib/postgres-url.ts';
import {
  type Connections,
  faultMessage,
  openPostgres,
  openSqlite,
  type SqliteConnections,
} from '../engine/engine.ts';
import { createStore, type Store } from '../engine/index.ts';
import { migrate, requireMigrated, type SchemaSteps } from '../engine/migrate.ts';
import { keepBeforeUpgrade } from './before-upgrade.ts';
import { noteInstallation, refuseLost, refuseUnfit, timelineNote } from './first-start.ts';
import { lockDataDir } from './lock.ts';

const databaseName = 'andromeda.db';

interface DatabaseOptions {
  /** Where a server of this version holds the directory, works next to it (for a short while, on the host). */
  beside?: boolean;
  /** The schema of a PostgreSQL is to be there already, and is not changed; others may be serving from it. */
  unchanged?: boolean;
  /** `postgres://…`: the database that it shares with other servers; left out: SQLite's file in the data directory. */
  database?: string | undefined;
  /** Of a server: where that database is away, it waits, and says so here. Left out: that is refused. */
  log?: Logger | undefined;
  /** Resolves when it is to wait no longer. */
  stopping?: Promise<unknown> | undefined;
  /** The steps of another version, in the place of this one's; for tests of upgrades. */
  schema?: SchemaSteps | undefined;
  /** While one database is copied to the other: there may be an SQLite file although the PostgreSQL is empty. */
  isCopying?: boolean;
}

export interface StoreOptions extends Omit<DatabaseOptions, 'isCopying'> {
  /** The one of its writes. */
  clock?: Clock;
  /** When access lapses; left out: never. */
  access?: AccessPolicy;
}

/**
 * Opens the database of a data directory, making both if they are missing, and brings it to this version.
 * Holds the directory until closed. Throws `invalid_state` when another process holds it, or the directory was written by a newer version.
 */
export async function openStore(dataDir: string, options: StoreOptions = {}): Promise<Store> {
  const { clock = createClock({}), access = {}, log } = options;
  const id = newId('server', clock.now());
  const { connections, unlock } = await openDataDir(dataDir, id, options);
  const server = { id, isAlone: connections.others === undefined };
  return createStore(connections, { clock, access, log, server, onClosed: unlock });
}

/** As `openStore` says. `unlock` releases the directory; undefined where this process works next to a server, which holds it. */
export async function openDataDir(
  dataDir: string,
  serverId: string,
  options: DatabaseOptions,
): Promise<{ connections: Connections; unlock: (() => void) | undefined }> {
  const unlock = lockDataDir(dataDir) ?? (options.beside ? undefined : refuseHeld(dataDir));
  const isMigrating = unlock !== undefined;
  try {
    const connections =
      options.database === undefined
        ? await openFile(dataDir, isMigrating, options)
        : await openServer(options.database, serverId, { ...options, isMigrating, dataDir });
    return { connections, unlock };
  } catch (error) {
    unlock?.();
    throw error;
  }
}

async function openFile(
  dataDir: string,
  isMigrating: boolean,
  { schema: steps, log }: DatabaseOptions,
): Promise<Connections> {
  const file = join(dataDir, databaseName);
  refuseLost(dataDir, file);
  const connections = openDatabaseFile(file);
  return prepared(connections, async () => {
    const beforeSteps = async (last: string) => {
      const backup = await keepBeforeUpgrade(dataDir, last, new Date());
      log?.info('database.upgrading', { backup });
    };
    await connections.migrating((db) =>
      isMigrating ? migrate(db, file, { steps, beforeSteps }) : requireMigrated(db, steps),
    );
    if (isMigrating) connections.flushBeside(end);
  });
}

async function openServer(
  url: string,
  serverId: string,
  options: DatabaseOptions & { isMigrating: boolean; dataDir: string },
): Promise<Connections> {
  const { log, stopping, isCopying } = options;
  const connections = await openPostgres(url, {
    ...{ serverId, log, stopping, isCopying },
    timeline: timelineNote(options.dataDir, options.isMigrating),
  });
  return prepared(connections, async () => {
    const name = describePostgres(parsePostgresUrl(url));
    if (options.unchanged) await requireAsItIs(connections, name, options);
    else await migrateShared(connections, name, options);
    await connections.begin?.();
  });
}

async function requireAsItIs(
  { reader }: Connections,
  name: string,
  { schema }: DatabaseOptions,
): Promise<void> {
  try {
    await requireMigrated(reader, schema);
  } catch (error) {
    const fault = faultMessage(error);
    if (fault === undefined) throw error;
    throw new DomainError('service_unavailable', `The database ${name} cannot be used: ${fault}.`, {
      cause: error,
    });
  }
}

async function migrateShared(
  connections: Connections,
  name: string,
  options: DatabaseOptions & { isMigrating: boolean; dataDir: string },
): Promise<void> {
  const { dataDir } = options;
  await connections.migrating(async (db) => {
    if (options.isMigrating) await migrate(db, name, { isShared: true, steps: options.schema });
    else await requireMigrated(db, options.schema);
    if (options.isCopying) return;
    await refuseUnfit(db, name, dataDir);
    await noteInstallation(db, dataDir);
  });
}

async function prepared(connections: Connections, prepare: () => Promise<void>): Promise<Connections> {
  try {
    await prepare();
    return connections;
  } catch (error) {
    await connections[Symbol.asyncDispose]();
    throw error;
  }
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

/** Throws where nothing catches it, which ends the process; the next start reads what reached the disk. */
function end(error: Error): void {
  setImmediate(() => {
    throw error;
  });
}

function refuseHeld(dataDir: string): never {
  throw new DomainError('invalid_state', `Another Andromeda serves from ${dataDir}. Stop that one first.`);
}
