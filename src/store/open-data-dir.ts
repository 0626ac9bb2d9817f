/** The database of a data directory: who may open it, and what it must be before anything is asked of it. */
import { chmodSync, closeSync, existsSync, openSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DomainError } from '../domain/error.ts';
import { type Connections, openSqlite } from './engine.ts';
import { faultMessage } from './fault.ts';
import { lockDataDir } from './lock.ts';
import { migrate, requireMigrated } from './migrate.ts';

export interface OpenDataDir {
  connections: Connections;
  /** Lets go of the directory; undefined where it works beside a server, which holds it. */
  unlock: (() => void) | undefined;
}

/** As `openStore` says. */
export async function openDataDir(
  dataDir: string,
  { beside = false }: { beside?: boolean },
): Promise<OpenDataDir> {
  const file = join(dataDir, 'andromeda.db');
  const unlock = lockDataDir(dataDir) ?? (beside ? undefined : refuseHeld(dataDir));
  let connections: Connections | undefined;
  try {
    refuseLost(dataDir, file);
    connections = openDatabase(file);
    if (unlock) {
      await migrate(connections.writer, file);
      connections.flushBeside(end);
    } else await requireMigrated(connections.writer);
    return { connections, unlock };
  } catch (error) {
    await connections?.close();
    unlock?.();
    throw error;
  }
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
    return openSqlite(file);
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
