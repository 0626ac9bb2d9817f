/** `andromeda migrate`: copies an installation from SQLite's file to a PostgreSQL, or back, on the host itself while nothing serves it. */
import { existsSync, globSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DomainError } from '../../domain/error.ts';
import {
  keyKinds,
  keySetText,
  knownHostsName,
  readKeySet,
  secretTitle,
  serviceSecrets,
} from '../../domain/key-rotation.ts';
import { writeWhole } from '../../lib/whole-file.ts';
import {
  type Copied,
  copyToPostgres,
  copyToSqlite,
  type FilesAndTables,
} from '../../store/data-dir/copy-database.ts';
import { keyFileOf, readKeyFiles, writeKeyFiles } from '../../store/data-dir/key-files.ts';
import { type Config, readConfig } from '../config/index.ts';
import { findConfig, runCommand } from './installation.ts';
import { requireSecretsKey } from './opened.ts';
import { becomeOwnerOf } from './unit/account.ts';

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
  { from, to, tables, rows, auditEntries, secrets, isRepeated }: Copied,
  { isEnded }: { isEnded: boolean },
): string {
  const [has, checked] = isRepeated
    ? ['was moved already, and has', 'compared one by one']
    : ['has', 'counted on both sides'];
  return `${to} ${has} all of ${from}: ${rows} rows of ${tables} tables, ${checked},
${auditEntries} entries of the audit trail, read through, and ${secrets} secrets.
${isEnded ? `${from} takes no writes any more: no server starts on it, and one that stood still meanwhile writes nothing there` : `${from} is as it was`}.
`;
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

const knownHosts = 'slurm/known_hosts.met';
const hostRecord = 'slurm/hosts.json';

function readServiceFiles(dataDir: string): FilesAndTables {
  const secrets = new Map<string, string>();
  for (const kind of keyKinds) {
    const set = readKeyFiles(dataDir, kind);
    if (set) secrets.set(serviceSecrets[kind].name, keySetText(set));
  }
  for (const [clusterId, text] of clusterFiles(dataDir, knownHosts))
    secrets.set(knownHostsName(clusterId), text);
  const managedHosts = new Map<string, { address: string; host: string }[]>();
  for (const [clusterId, text] of clusterFiles(dataDir, hostRecord))
    managedHosts.set(
      clusterId,
      text
        .split('\n')
        .filter(Boolean)
        .map((host) => ({ address: (JSON.parse(host) as { address: string }).address, host })),
    );
  return { secrets, managedHosts };
}

/** Writes secrets and host records from the tables to files. A key that is a file already was in use, and stays. */
function writeServiceFiles(dataDir: string, { secrets, managedHosts }: FilesAndTables): void {
  for (const kind of keyKinds) {
    const { name } = serviceSecrets[kind];
    const text = secrets.get(name);
    if (text !== undefined && !existsSync(keyFileOf(dataDir, kind)))
      writeKeyFiles(dataDir, kind, readKeySet(text, secretTitle(name)));
  }
  for (const [name, text] of secrets) {
    const [, clusterId] = /^known-hosts\/([\w-]+)$/.exec(name) ?? [];
    if (clusterId !== undefined) write(join(dataDir, 'clusters', clusterId, knownHosts), text);
  }
  for (const [clusterId, hosts] of managedHosts)
    write(join(dataDir, 'clusters', clusterId, hostRecord), hosts.map(({ host }) => `${host}\n`).join(''));
}

function clusterFiles(dataDir: string, name: string): [clusterId: string, text: string][] {
  return globSync(`clusters/*/${name}`, { cwd: dataDir }).map((path) => [
    path.split('/')[1] ?? '',
    readFileSync(join(dataDir, path), 'utf8'),
  ]);
}

function write(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  writeWhole(file, text);
}
