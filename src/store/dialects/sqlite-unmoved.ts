/**
 * Whether the files of an open database are still where they were. SQLite goes on in files that were removed, and what it
 * writes there is gone when they are closed. In WAL mode it never looks (its own check, SQLITE_FCNTL_HAS_MOVED, is for
 * rollback journals).
 */
import { type BigIntStats, statSync } from 'node:fs';
import Database from 'better-sqlite3';

/**
 * Takes files as they are now. Returns a check, at the cost of one stat(2) a file, which throws SQLite's error for a
 * database that was moved where a name leads to no file, or to another one.
 *
 * It is made before each commit that is answered. Files that go after it and before the answer, some milliseconds, are
 * found by the next commit only.
 */
export function watchFiles(files: readonly string[]): () => void {
  const opened = files.map((file) => ({ file, stats: statOf(file) }));
  return () => {
    for (const { file, stats } of opened) {
      const found = statOf(file);
      if (found && found.ino === stats?.ino && found.dev === stats.dev) continue;
      throw new Database.SqliteError(`${file} is not the file that was opened`, 'SQLITE_READONLY_DBMOVED');
    }
  };
}

function statOf(file: string): BigIntStats | undefined {
  try {
    return statSync(file, { bigint: true });
  } catch {
    return undefined;
  }
}
