/** `andromeda migrate`: an installation from SQLite's file to a PostgreSQL, or back, on the host itself while nothing serves it. */
import { join } from 'node:path';
import { DomainError } from '../../domain/error.ts';
import { serviceSecrets } from '../../domain/key-rotation.ts';
import { type Copied, copyToPostgres, copyToSqlite } from '../../store/data-dir/copy-database.ts';
import { type Config, readConfig } from '../config/index.ts';
import { findConfig, runCommand } from './installation.ts';
import { requireSecretsKey } from './opened.ts';
import { becomeOwnerOf } from './unit/account.ts';
import { readServiceFiles, writeServiceFiles } from './unit/service-files.ts';

export interface MigrateOptions {
  config?: string;
  to: 'sqlite' | 'postgres';
}

/** Copies everything. `onProgress` gets sentences. Resolves to the exit status. */
export function migrateDatabase(
  { config: file, to }: MigrateOptions,
  { onProgress, signal }: { onProgress(text: string): void; signal: AbortSignal },
): Promise<number> {
  return runCommand(async () => {
    const config = readConfig(findConfig(file));
    const { dataDir, database } = config;
    if (database === undefined)
      throw new DomainError(
        'invalid_request',
        `The configuration names no PostgreSQL. Give it \`database\` (or \`databaseFile\`) and \`secretsKeyFile\`, as the service is to have them, in both directions.`,
      );
    const keys = requireSecretsKey(config);
    becomeOwnerOf(dataDir);
    const options = {
      dataDir,
      database,
      keys,
      signal,
      onProgress: ({ table, rows, ofRows }: { table: string; rows: number; ofRows: number }) =>
        onProgress(`${rows} of ${ofRows} rows (${table})`),
    };
    const copied =
      to === 'postgres'
        ? await copyToPostgres(options, () => readServiceFiles(dataDir))
        : await copyToSqlite(options, (content) => writeServiceFiles(dataDir, content));
    return `${summaryOf(copied, { isEnded: to === 'sqlite' })}\n${to === 'postgres' ? afterPostgres(config) : afterSqlite(config)}`;
  });
}

function summaryOf(
  { from, to, tables, rows, auditEntries, secrets, mended, isRepeated }: Copied,
  { isEnded }: { isEnded: boolean },
): string {
  const [has, checked] = isRepeated
    ? ['was moved already, and has', 'compared one by one']
    : ['has', 'counted on both sides'];
  return `${to} ${has} all of ${from}: ${rows} rows of ${tables} tables, ${checked},
${auditEntries} entries of the audit trail, read through, and ${secrets} secrets.
${isEnded ? `${from} takes no writes any more: no server starts on it, and one that stood still meanwhile writes nothing there` : `${from} is as it was`}.
${mended.size > 0 ? mendedText(mended) : ''}`;
}

function mendedText(mended: Copied['mended']): string {
  const tables = [...mended].map(([table, rows]) => `${table} (${rows})`).join(', ');
  return `
Some rows had NUL characters, which PostgreSQL does not store; each is a U+FFFD (\ufffd) now. Rows by table: ${tables}.
${mended.has('audit_entries') ? 'Such entries of the audit trail keep their hashes, and are marked as redacted and signed with its key.\n' : ''}`;
}

function afterPostgres({ dataDir }: Config): string {
  const issuer = join(dataDir, serviceSecrets.issuer.file);
  return `Next, before the service is started:

  1. The keys are in the database now, and their files are not used any more. Move them away:
       mv ${join(dataDir, 'keys')} ${join(dataDir, 'keys.before')}
       mv ${issuer} ${issuer}.before         (where there is one)
  2. Move the old database away, so that nobody takes it for the one that is used:
       mv ${join(dataDir, 'andromeda.db')} ${join(dataDir, 'andromeda.db.before')}
  3. Back up the database with pg_dump from now on, and keep the secrets key elsewhere too (\`andromeda backup\` is for SQLite).
  4. Start the service. When all is well, remove what you moved: it is as secret as it was.
`;
}

function afterSqlite({ dataDir }: Config): string {
  return `Next, before the service is started:

  1. Take database (or databaseFile) and secretsKeyFile out of the configuration.
  2. Start the service, on this host alone: the others have no database any more. The keys are files below ${dataDir} again.
  3. Back it up with \`andromeda backup\` from now on. When all is well, drop the PostgreSQL database, and its role.
`;
}
