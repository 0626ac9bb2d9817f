/** The shared PostgreSQL, which replaces SQLite's file in the data directory, and the key of the secrets in it. */
import { statSync } from 'node:fs';
import { commandIo } from '../../lib/command-io.ts';
import { messageOf } from '../../lib/error-message.ts';
import { parsePostgresUrl } from '../../lib/postgres-url.ts';
import { parseSecretsKeys, type SecretsKeys, secretsKeyVariable } from '../../lib/secrets-key.ts';
import { invalid, type NamedFiles } from './named-files.ts';
import { file, pattern } from './schema.ts';

export const databaseSchema = {
  database: pattern('^postgres(ql)?://', 'the URL of a PostgreSQL: postgres://USER@HOST/DATABASE'),
  databaseFile: file,
  secretsKeyFile: file,
};

type RawDatabase = { [Name in keyof typeof databaseSchema]?: string };

/** The URL, which can contain a password; undefined: the database is SQLite's. Throws `invalid_request`. */
export function readDatabase(
  { database, databaseFile, backup }: RawDatabase & { backup?: object },
  files: NamedFiles,
): string | undefined {
  if (database !== undefined && databaseFile !== undefined)
    throw invalid('database and databaseFile say the same: give one of them.');
  const setting = database === undefined ? 'databaseFile' : 'database';
  const url = databaseFile === undefined ? database : files.readSecretText('databaseFile', databaseFile);
  if (url === undefined) return undefined;
  const target = parsed(url, setting);
  // Every account of the host that can read the settings would have the password.
  if (database !== undefined && target.password !== undefined && (statSync(files.file).mode & 0o077) !== 0)
    throw invalid(
      'database has a password, and others can read this file. Put the URL into a file of its own, chmod 600, and name that with databaseFile.',
    );
  if (backup)
    throw invalid(
      'backup: backups by the service are of SQLite. With `database`, dump it with pg_dump, and keep with the dumps, but apart from them, the secrets key and the configuration (the page "Backup and restore" has the lines). Leave `backup` out.',
    );
  return target.sslRootCert === undefined || target.sslRootCert === 'system'
    ? url
    : withFile(url, files.at(target.sslRootCert));
}

function parsed(url: string, setting: string): ReturnType<typeof parsePostgresUrl> {
  try {
    return parsePostgresUrl(url);
  } catch (error) {
    throw invalid(`${setting}: ${messageOf(error)}`);
  }
}

/** The URL with the path of its CA file made absolute, like the paths of other settings. */
function withFile(url: string, path: string): string {
  const [target, query] = url.split('?');
  const options = new URLSearchParams(query);
  options.set('sslrootcert', path);
  return `${target}?${options}`;
}

const setting = 'secretsKeyFile';

/**
 * The key is in a file that only the service can read, or in the environment. Undefined where the database is not
 * shared, or there is no key: only users of the key report that. Throws `invalid_request`.
 */
export function readSecretsKey(
  { database, databaseFile, secretsKeyFile: path }: RawDatabase,
  files: NamedFiles,
): SecretsKeys | undefined {
  const value = commandIo().env[secretsKeyVariable];
  if (database === undefined && databaseFile === undefined) {
    if (path === undefined) return undefined;
    throw invalid(
      `${setting}: without \`database\`, keys are files of the data directory, and nothing is encrypted with it. Leave it out.`,
    );
  }
  if (path !== undefined && value !== undefined)
    throw invalid(
      `${setting} is given, and so is ${secretsKeyVariable} in the environment. Give one of them.`,
    );
  if (path === undefined && value === undefined) return undefined;
  const read = (): SecretsKeys =>
    path === undefined
      ? parseSecretsKeys(value ?? '', `${secretsKeyVariable} in the environment`, read)
      : parseSecretsKeys(files.readSecret(setting, path).toString('latin1'), files.at(path), read);
  return read();
}
