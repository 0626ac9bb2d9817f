/** `andromeda backup` and `andromeda restore`: an installation in one file, on the host itself. */
import { resolve } from 'node:path';
import manifest from '../../../package.json' with { type: 'json' };
import { DomainError } from '../../domain/error.ts';
import { formatBytes } from '../../domain/units.ts';
import { makeDataDir, requireOwner } from '../../store/data-dir/lock.ts';
import type { Restored } from '../../store/data-dir/restore.ts';
import type { BackupSettings } from '../config/backup.ts';
import { listConfigFiles, readConfig } from '../config/index.ts';
import { leadsInto } from '../config/secret-files.ts';
import { findConfig, refusal, runCommand } from './installation.ts';

/** Which installation: its file, or the data directory itself. */
export interface InstallationOptions {
  config?: string;
  data?: string;
}

export interface RestoreOptions extends InstallationOptions {
  /** The file with the private key. */
  identity?: string;
  /** Only try it, in a directory of its own. */
  drill?: true;
}

interface Installation {
  dataDir: string;
  files: string[];
  settings: BackupSettings | undefined;
}

/**
 * Writes a backup: to a file, or where the configuration keeps them. `onProgress` is called with how much is copied, from 0 to 1.
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
    requireOwner(dataDir);
    const from = {
      madeAt: new Date().toISOString(),
      version: manifest.version,
      elsewhere: files,
      ...waiting,
    };
    if (file === undefined) return keep(installation, from);
    requireOutside(resolve(file), dataDir);
    const { writeBackup } = await import('../../store/data-dir/backup.ts');
    const { bytes, missing } = await writeBackup(dataDir, resolve(file), from);
    sayMissing(missing);
    return `${file}: ${formatBytes(bytes)}, checked. It holds ${dataDir} and the files that the configuration and the clusters
name, keys included: keep it as secret.
`;
  });
}

/** What is in the data directory is lost with it, and would be in the next backup again. */
function requireOutside(file: string, dataDir: string): void {
  if (leadsInto(file, dataDir))
    throw new DomainError(
      'invalid_request',
      `${file} is in the data directory, and would be lost with it. Name a file elsewhere, better on another disk.`,
    );
}

async function keep(
  { dataDir, settings }: Installation,
  from: { madeAt: string; version: string; elsewhere: string[] },
): Promise<string> {
  const { keepBackup } = await import('../backup/keep.ts');
  const kept = await keepBackup({ settings: requireSettings(settings), dataDir, ...from });
  sayMissing(kept.missing);
  if (kept.notRemoved !== undefined)
    process.stderr.write(`Older backups were not removed: ${kept.notRemoved}\n`);
  const secret = settings?.encryptTo.length ? 'encrypted' : 'as secret as the installation itself';
  return `${kept.file}: ${formatBytes(kept.bytes)}, read back and checked; ${secret}.
`;
}

/** Prints what is kept where the configuration says. Resolves to the exit status. */
export async function listKept(options: InstallationOptions): Promise<number> {
  return runCommand(async () => {
    const { dataDir, settings } = installationOf(options);
    const { listBackups } = await import('../backup/obtain.ts');
    const { to } = requireSettings(settings);
    const all = await listBackups(to, dataDir);
    if (all.length === 0) process.stderr.write('There is none yet.\n');
    return all.map(({ name, bytes, at }) => `${at}  ${formatBytes(bytes).padStart(10)}  ${name}\n`).join('');
  });
}

/** Puts a backup in place, or tries whether that could be done. Resolves to the exit status. */
export async function restore(
  source: string | undefined,
  options: RestoreOptions,
  signal: AbortSignal,
): Promise<number> {
  const { drill: isDrill, identity } = options;
  const file = source ?? 'newest';
  return runCommand(async () => {
    const { dataDir, settings } = installationOf(options);
    if (isDrill) {
      const { drill } = await import('./drill.ts');
      return drill({ source: file, identity, dataDir, settings, signal });
    }
    requireOwner(dataDir);
    const { requireStopped, restoreBackup } = await import('../../store/data-dir/restore.ts');
    const { isPlainFile, obtainBackup } = await import('../backup/obtain.ts');
    const now = new Date().toISOString();
    const { auditKeyOf } = await import('./backup-seal.ts');
    const known = auditKeyOf(dataDir);
    if (isPlainFile(file)) return restored(dataDir, restoreBackup(resolve(file), dataDir, now), known);
    requireStopped(dataDir);
    makeDataDir(dataDir);
    const { withWorkDir } = await import('../backup/work.ts');
    return withWorkDir(dataDir, async (workDir) => {
      const to = settings?.to;
      const obtained = await obtainBackup(file, { to, identity, dataDir, workDir, signal });
      process.stderr.write(`This is ${obtained.name}.\n`);
      return restored(dataDir, restoreBackup(obtained.file, dataDir, now, obtained.name), known);
    });
  });
}

/** `known`: the key that it should be signed by. */
async function restored(
  dataDir: string,
  { madeAt, version, aside, elsewhere, seal }: Restored,
  known: string | undefined,
): Promise<string> {
  const { judgeSeal } = await import('./backup-seal.ts');
  const { verdict, text } = judgeSeal('the backup', seal, known);
  if (verdict !== 'ok') process.stderr.write(`${text}\n`);
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
  for (const path of missing) process.stderr.write(`${path} is not in it: it cannot be read.\n`);
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
