/** One server a data directory: two would run two sync loops and two gateways on the same clusters. */
import { chmodSync, closeSync, mkdirSync, openSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { DomainError } from '../domain/error.ts';

/**
 * Holds the directory, making it if it is missing, until released or until this process ends however it ends: the
 * lock is the operating system's, on a file of SQLite's making. Throws `invalid_state` when another process holds it.
 */
export function lockDataDir(dataDir: string): () => void {
  const file = join(dataDir, 'lock');
  makeDataDir(dataDir, file);
  const lock = new Database(file, { timeout: 0 });
  try {
    lock.pragma('journal_mode = MEMORY');
    lock.exec('begin exclusive');
  } catch (error) {
    lock.close();
    if (!(error instanceof Database.SqliteError) || error.code !== 'SQLITE_BUSY') throw error;
    throw new DomainError('invalid_state', `Another Andromeda serves from ${dataDir}. Stop that one first.`);
  }
  return () => lock.close();
}

function makeDataDir(dataDir: string, file: string): void {
  try {
    // Others may pass through (the embedded login node's homes lie below) but not look; each secret is a 0600 file.
    mkdirSync(dataDir, { recursive: true, mode: 0o711 });
    closeSync(openSync(file, 'a', 0o600));
    chmodSync(file, 0o600);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const message = `The data directory ${dataDir} cannot be made or written (${code}). Give another, or the right to it.`;
    throw new DomainError('invalid_state', message, { cause: error });
  }
}
