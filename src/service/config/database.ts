/** `database` and `databaseFile`: the PostgreSQL that several servers share, in place of SQLite's file in the data directory. */
import { statSync } from 'node:fs';
import { messageOf } from '../../lib/error-message.ts';
import { parsePostgresUrl } from '../../lib/postgres-url.ts';
import { invalid, type NamedFiles } from './named-files.ts';

export interface RawDatabase {
  database?: string;
  databaseFile?: string;
}

const form = 'the URL of a PostgreSQL: postgres://USER@HOST/DATABASE';

export const databaseSchema = {
  database: { type: 'string', pattern: '^postgres(ql)?://', form },
  databaseFile: { type: 'string', minLength: 1 },
};

/** The URL, which can have a password in it; undefined: the database is SQLite's. Throws `invalid_request`. */
export function readDatabase(
  { database, databaseFile }: RawDatabase,
  file: string,
  files: NamedFiles,
): string | undefined {
  if (database !== undefined && databaseFile !== undefined)
    throw invalid(file, 'database and databaseFile say the same: give one of them.');
  const setting = database === undefined ? 'databaseFile' : 'database';
  const url =
    databaseFile === undefined
      ? database
      : files.readSecret('databaseFile', files.at(databaseFile)).toString('utf8').trim();
  if (url === undefined) return undefined;
  const target = parsed(url, (sentence) => invalid(file, `${setting}: ${sentence}`));
  // Then everybody on the host has it who can read the settings.
  if (database !== undefined && target.password !== undefined && (statSync(file).mode & 0o077) !== 0)
    throw invalid(
      file,
      `database has a password, and others can read this file. Put the URL into a file of its own, chmod 600, and name that with databaseFile.`,
    );
  return target.sslRootCert === undefined || target.sslRootCert === 'system'
    ? url
    : withFile(url, files.at(target.sslRootCert));
}

function parsed(url: string, refuse: (sentence: string) => Error): ReturnType<typeof parsePostgresUrl> {
  try {
    return parsePostgresUrl(url);
  } catch (error) {
    throw refuse(messageOf(error));
  }
}

/** With the path of its authorities made absolute, as those of other settings are. */
function withFile(url: string, path: string): string {
  return url.replace(/([?&]sslrootcert=)[^&#]*/, (_, name: string) => `${name}${encodeURIComponent(path)}`);
}
