/** The faults of a file and its disk by SQLite's errors. */
import Database from 'better-sqlite3';
import { DomainError } from '../../../domain/error.ts';
import type { DatabaseFault } from '../dialect.ts';

export function isDatabaseError(error: unknown): boolean {
  return error instanceof Database.SqliteError;
}

/** The fault of file or disk that SQLite reports (https://sqlite.org/rescode.html); undefined for any other error. */
export function databaseFault(error: unknown): DatabaseFault | undefined {
  if (!(error instanceof Database.SqliteError)) return undefined;
  const [code] = /^SQLITE_[A-Z]+/.exec(error.code) ?? [];
  return code === undefined ? undefined : (faults[error.code] ?? faults[code]);
}

const faults: Record<string, DatabaseFault | undefined> = {
  SQLITE_BUSY: 'held',
  SQLITE_FULL: 'full',
  SQLITE_READONLY: 'read-only',
  SQLITE_READONLY_DBMOVED: 'moved',
  SQLITE_CANTOPEN: 'disk',
  SQLITE_IOERR: 'disk',
  SQLITE_CORRUPT: 'damaged',
  SQLITE_NOTADB: 'damaged',
};

/** The error itself, or `service_unavailable` for a damaged file, which the caller is to know. */
export function asDamage(error: unknown): unknown {
  if (databaseFault(error) !== 'damaged') return error;
  const message = 'The database is damaged. An operator has to restore a backup (`andromeda restore`).';
  return new DomainError('service_unavailable', message, { cause: error });
}
