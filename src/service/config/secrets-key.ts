/** The key that secrets in a shared database are encrypted with: in a file only for the service, or in the environment. */
import { parseSecretsKeys, type SecretsKeys, secretsKeyVariable } from '../../lib/secrets-key.ts';
import type { RawDatabase } from './database.ts';
import { invalid, type NamedFiles } from './named-files.ts';

export interface RawSecretsKey {
  secretsKeyFile?: string;
}

const setting = 'secretsKeyFile';

/**
 * Undefined where the database is not shared, or there is no key: only what needs one says so. Throws `invalid_request` with a
 * sentence.
 */
export function readSecretsKey(
  raw: RawSecretsKey & RawDatabase,
  file: string,
  files: NamedFiles,
  environment: NodeJS.ProcessEnv = process.env,
): SecretsKeys | undefined {
  const { secretsKeyFile: path } = raw;
  const value = environment[secretsKeyVariable];
  if (raw.database === undefined && raw.databaseFile === undefined) {
    if (path === undefined) return undefined;
    throw invalid(
      file,
      `${setting}: without \`database\`, keys are files of the data directory, and nothing is encrypted with it. Leave it out.`,
    );
  }
  if (path !== undefined && value !== undefined)
    throw invalid(
      file,
      `${setting} is given, and so is ${secretsKeyVariable} in the environment. Give one of them.`,
    );
  if (path !== undefined) return readKeyFile(files, files.at(path));
  if (value === undefined) return undefined;
  const keys: SecretsKeys = parseSecretsKeys(value, `${secretsKeyVariable} in the environment`, () => keys);
  return keys;
}

function readKeyFile(files: NamedFiles, path: string): SecretsKeys {
  const read = () => files.readSecret(setting, path).toString('latin1');
  const reread = (): SecretsKeys => parseSecretsKeys(read(), path, reread);
  return reread();
}
