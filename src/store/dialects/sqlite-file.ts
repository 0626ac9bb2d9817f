/** Files of SQLite outside of the service's own connections: backups, the copy that one begins with, and the lock. */
import Database from 'better-sqlite3';
import type { CopyOptions, DatabaseFile } from './dialect.ts';
import { databaseFault } from './sqlite-fault.ts';

/** Between two steps of a copy other work of this process goes on. 4 MiB. */
const pagesPerStep = 1024;

/** Opens a file that is a whole database by itself. */
export function openFile(file: string, { readonly } = { readonly: false }): DatabaseFile {
  const database = new Database(file, { readonly });
  if (!readonly) database.pragma('secure_delete = on');
  return {
    run: (sql, ...values) => void database.prepare(sql).run(...values),
    rows: <Row>(sql: string) => database.prepare<[], Row>(sql).iterate(),
    transaction(body) {
      // One file, that another program can read where it may not write.
      database.pragma('journal_mode = delete');
      database.pragma('synchronous = full');
      database.transaction(body)();
    },
    kind() {
      try {
        return Number(database.pragma('application_id', { simple: true }));
      } catch (error) {
        if (error instanceof Database.SqliteError && error.code === 'SQLITE_NOTADB') return undefined;
        throw error;
      }
    },
    setKind: (kind) => void database.pragma(`application_id = ${kind}`),
    isWhole: () =>
      database.pragma('integrity_check(1)', { simple: true }) === 'ok' &&
      (database.pragma('foreign_key_check') as unknown[]).length === 0,
    compactInto: (target) => void database.prepare('vacuum into ?').run(target),
    close: () => void database.close(),
  };
}

/** Copies a database that others use, as it was at one instant. What they commit meanwhile waits for nothing. */
export async function copy(from: string, to: string, { onProgress, signal }: CopyOptions): Promise<void> {
  const database = new Database(from, { fileMustExist: true });
  try {
    database.pragma('busy_timeout = 5000');
    // What is read once stays as it is until the end: without this, a copy begins anew whenever the service writes.
    database.exec('begin');
    database.prepare('select count(*) from sqlite_master').get();
    await database.backup(to, {
      progress({ totalPages, remainingPages }) {
        signal?.throwIfAborted();
        onProgress?.(totalPages === 0 ? 0 : 1 - remainingPages / totalPages);
        return pagesPerStep;
      },
    });
    database.exec('commit');
  } finally {
    database.close();
  }
}

/** Holds a file until released or until this process ends however it ends: the lock is the operating system's. */
export function lock(file: string): (() => void) | undefined {
  const database = new Database(file, { timeout: 0 });
  try {
    database.pragma('journal_mode = MEMORY');
    database.exec('begin exclusive');
  } catch (error) {
    database.close();
    if (databaseFault(error) !== 'held') throw error;
    return undefined;
  }
  return () => void database.close();
}

/** The version of the SQLite that databases are opened with. */
export function version(): string {
  const database = new Database(':memory:');
  try {
    return database.prepare<[], string>('select sqlite_version()').pluck().get() ?? 'unknown';
  } finally {
    database.close();
  }
}
