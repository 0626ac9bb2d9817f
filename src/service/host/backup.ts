/** `andromeda backup` and `andromeda restore`: an installation in one file, on the host itself. */
import { join, resolve } from 'node:path';
import manifest from '../../../package.json' with { type: 'json' };
import { DomainError } from '../../domain/error.ts';
import { formatBytes } from '../../domain/units.ts';
import { commandIo } from '../../lib/command-io.ts';
import { writeBackup } from '../../store/data-dir/backup.ts';
import { noteBackup, readKeptBackup } from '../../store/data-dir/last-backup.ts';
import { requireOwner } from '../../store/data-dir/lock.ts';
import { type Restored, restoreBackup } from '../../store/data-dir/restore.ts';
import { listBackups } from '../backup/directory.ts';
import { handOn } from '../backup/index.ts';
import { keepBackup } from '../backup/keep.ts';
import { knownId, madeAt, newestOf } from '../backup/names.ts';
import type { BackupSettings } from '../config/backup.ts';
import { listConfigFiles, readConfig } from '../config/index.ts';
import { leadsInto } from '../config/secret-files.ts';
import { auditKeysOf, judgeSeal } from './checks/backup-findings.ts';
import { findConfig, jsonText, refusal, runCommand } from './installation.ts';
import { becomeOwnerOf } from './unit/account.ts';

export interface InstallationOptions {
  config?: string;
  data?: string;
}

export interface RestoreOptions extends InstallationOptions {
  drill?: true;
}

interface Installation {
  dataDir: string;
  files: string[];
  settings: BackupSettings | undefined;
}

/**
 * Writes a backup: to a file, or to the configured directory. `onProgress` gets the copied share, from 0 to 1.
 * Resolves to the exit status.
 */
export async function backup(
  file: string | undefined,
  options: InstallationOptions,
  waiting: { onProgress(part: number): void; signal: AbortSignal },
): Promise<number> {
  return runCommand(async () => {
    const installation = installationOf(options);
    const { dataDir, files } = installation;
    becomeOwnerOf(dataDir);
    requireOwner(dataDir);
    const from = {
      madeAt: new Date().toISOString(),
      version: manifest.version,
      elsewhere: files,
      ...waiting,
    };
    if (file === undefined) return keep(installation, from);
    requireOutside(resolve(file), dataDir);
    const { bytes, missing } = await writeBackup(dataDir, resolve(file), from);
    noteBackup(dataDir, { at: from.madeAt, file: resolve(file), bytes });
    sayMissing(missing);
    return `${file}: ${formatBytes(bytes)}, checked. It holds ${dataDir} and the files that the configuration and the clusters
name, keys included: keep it as secret.
`;
  });
}

/** A file in the data directory is lost with it, and would be in the next backup again. */
function requireOutside(file: string, dataDir: string): void {
  if (leadsInto(file, dataDir))
    throw new DomainError(
      'invalid_request',
      `${file} is in the data directory, and would be lost with it. Name a file elsewhere, better on another disk.`,
    );
}

async function keep(
  { dataDir, settings }: Installation,
  from: { madeAt: string; version: string; elsewhere: string[]; signal: AbortSignal },
): Promise<string> {
  const wanted = requireSettings(settings);
  const { after: command, everyMs } = wanted;
  const { file, bytes, missing, notRemoved } = await keepBackup({ settings: wanted, dataDir, ...from });
  sayMissing(missing);
  if (notRemoved !== undefined) commandIo().stderr.write(`Older backups were not removed: ${notRemoved}\n`);
  const made = `${file}: ${formatBytes(bytes)}, read back and checked; as secret as the installation itself.\n`;
  if (command === undefined) return made;
  commandIo().stdout.write(made);
  const kept = { at: from.madeAt, file, bytes, awaits: true };
  const failure = await handOn({ dataDir, kept, command, everyMs, now: Date.now, signal: from.signal });
  if (failure) throw refusal(failure.message);
  if (from.signal.aborted) throw refusal('Cancelled while backup.after ran; the backup is made.');
  return readKeptBackup(dataDir)?.awaits
    ? 'The service runs backup.after for it.\n'
    : 'backup.after has run for it.\n';
}

export async function listKept({
  json,
  ...options
}: InstallationOptions & { json?: boolean }): Promise<number> {
  return runCommand(async () => {
    const { to } = requireSettings(installationOf(options).settings);
    const all = await listBackups(to);
    if (json)
      return jsonText({
        backups: all.map(({ name, bytes }) => ({ file: join(to, name), madeAt: madeAt(name), bytes })),
      });
    if (all.length === 0) commandIo().stderr.write('There is none yet.\n');
    const row = ({ name, bytes }: (typeof all)[number]) =>
      `${madeAt(name)}  ${formatBytes(bytes).padStart(10)}  ${join(to, name)}\n`;
    return all.map(row).join('');
  });
}

export async function restore(
  source: string | undefined,
  { drill: isDrill, ...options }: RestoreOptions,
  signal: AbortSignal,
): Promise<number> {
  return runCommand(async () => {
    const { dataDir, settings } = installationOf(options);
    if (isDrill) {
      const { drill } = await import('./drill.ts');
      return drill({ find: () => fileOf(source, dataDir, settings), dataDir, settings, signal });
    }
    becomeOwnerOf(dataDir);
    requireOwner(dataDir);
    const known = auditKeysOf(dataDir);
    const file = await fileOf(source, dataDir, settings);
    if (source === newest) commandIo().stderr.write(`This is ${file}.\n`);
    return restored(dataDir, restoreBackup(file, dataDir, new Date().toISOString()), known);
  });
}

const newest = 'newest';

/** The backup to restore; where none is named, the newest of the kept ones. */
async function fileOf(
  source: string = newest,
  dataDir: string,
  settings: BackupSettings | undefined,
): Promise<string> {
  if (source !== newest) return resolve(source);
  const { to } = requireSettings(settings);
  return join(to, newestOf(await listBackups(to), to, knownId(dataDir)).name);
}

async function restored(
  dataDir: string,
  { madeAt, version, aside, elsewhere, seal }: Restored,
  known: readonly string[],
): Promise<string> {
  const { verdict, text } = judgeSeal('the backup', seal, known);
  if (verdict !== 'ok') commandIo().stderr.write(`${text}\n`);
  const before =
    aside === undefined ? '' : `What was there before is in ${aside}; remove it when all is well.\n`;
  const list = elsewhere.map((path) => `  ${path}\n`).join('');
  const others =
    list &&
    `\nThese belong elsewhere, and are not there as they were. Put them there, or remove them:\n\n${list}`;
  return `${dataDir} is as it was at ${madeAt}, under Andromeda ${version}.
${verdict === 'ok' ? `${text}\n` : ''}${before}${others}
Next:

  1. Start the service. It brings the clusters to what the backup says within seconds.
  2. What changed after that time is not in it: revoke again the keys, and remove again the people, that must not get in.
`;
}

function sayMissing(missing: readonly string[]): void {
  for (const path of missing) commandIo().stderr.write(`${path} is not in it: it cannot be read.\n`);
}

function requireSettings(settings: BackupSettings | undefined): BackupSettings {
  if (settings) return settings;
  throw new DomainError(
    'invalid_request',
    'The configuration does not say where backups are kept (`backup: { to: … }`); name a file.',
  );
}

function installationOf({ config, data }: InstallationOptions): Installation {
  if (data !== undefined) return { dataDir: resolve(data), files: [], settings: undefined };
  const file = findConfig(config, ', or --data DIR');
  const { dataDir, backup: settings, database } = readConfig(file);
  if (database !== undefined)
    throw refusal(
      'The database is a PostgreSQL, for which there is pg_dump, and pg_restore for the way back; this command is for SQLite. Keep with the dumps, but apart from them: the secrets key (secretsKeyFile), and the configuration with the files that it names. The page "Backup and restore" has the lines.',
    );
  return { dataDir, files: listConfigFiles(file), settings };
}
