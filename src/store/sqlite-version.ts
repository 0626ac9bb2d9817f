import Database from 'better-sqlite3';

/** The version of the SQLite that databases are opened with. */
export function sqliteVersion(): string {
  const database = new Database(':memory:');
  try {
    return database.prepare<[], string>('select sqlite_version()').pluck().get() ?? 'unknown';
  } finally {
    database.close();
  }
}
