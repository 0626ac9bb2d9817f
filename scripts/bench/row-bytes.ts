/** How much text a write leaves behind, so that a reference can write as much. */
import Database from 'better-sqlite3';

/** What the registration of one SSH key leaves in its tables, in bytes, indexes not counted. */
export function registrationBytes(databaseFile: string): number {
  const database = new Database(databaseFile, { readonly: true });
  try {
    const lastRows = [
      'select * from ssh_keys order by id desc limit 1',
      'select * from ssh_key_sets order by created_at desc limit 1',
      'select * from commands order by id desc limit 1',
      'select * from audit_entries order by seq desc limit 1',
    ].map((sql) => database.prepare(sql).get() as Record<string, unknown>);
    return lastRows
      .flatMap((row) => Object.values(row))
      .reduce<number>((sum, value) => sum + Buffer.byteLength(String(value ?? '')), 0);
  } finally {
    database.close();
  }
}
