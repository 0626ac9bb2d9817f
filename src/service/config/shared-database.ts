/** What is said in the configuration and cannot be, where several servers share a database. */
import type { RawDatabase } from './database.ts';
import { invalid } from './named-files.ts';

/** Throws `invalid_request` with a sentence. */
export function checkShared(raw: RawDatabase & { backup?: object }, file: string): void {
  if ((raw.database ?? raw.databaseFile) === undefined || !raw.backup) return;
  throw invalid(
    file,
    'backup: backups by the service are of SQLite. With `database`, dump it with pg_dump, and keep with the dumps, but apart from them, the secrets key and the configuration (the page "Backup and restore" has the lines). Leave `backup` out.',
  );
}
