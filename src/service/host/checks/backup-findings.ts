/** Findings of `check` and `doctor` about backups, and of them, `restore` and drills about a backup's manifest. */
import { constants, existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { trustedKeys } from '../../../domain/audit/audit.ts';
import { DomainError } from '../../../domain/error.ts';
import { formatBytes } from '../../../domain/units.ts';
import { messageOf } from '../../../lib/error-message.ts';
import type { Seal } from '../../../store/data-dir/backup-file.ts';
import { readAuditKeys } from '../../../store/data-dir/key-files.ts';
import { type LastBackup, readKeptBackup, readLastBackup } from '../../../store/data-dir/last-backup.ts';
import { verifyBackup } from '../../../store/data-dir/restore.ts';
import { listBackups } from '../../backup/directory.ts';
import { problemsOfBackups } from '../../compose/installation-state.ts';
import type { BackupSettings } from '../../config/backup.ts';
import type { Config } from '../../config/index.ts';
import { isAllowed, whyNot } from '../files.ts';
import { type Finding, findingOf, ok, orWrong, warn, wrong } from './findings.ts';

const about = 'backup';

/** `away`: the verdict where no backup can be stored now, which does not keep the service from starting. */
export function* checkBackupSettings({ backup }: Config, away: typeof wrong): Generator<Finding> {
  if (backup) yield checkDirectory(backup.to, away);
}

function checkDirectory(directory: string, away: typeof wrong): Finding {
  const stats = statSync(directory, { throwIfNoEntry: false });
  if (!stats?.isDirectory())
    return away(about, `backup.to: ${directory} is not there. Make the directory, or mount what it lies on.`);
  if (!isAllowed(directory, constants.R_OK | constants.W_OK | constants.X_OK))
    return away(about, `backup.to: ${directory} cannot be written: ${whyNot(directory, stats)}.`);
  try {
    // Finds faults that modes do not show, as of /proc, a full disk or a mount without its server.
    const probe = mkdtempSync(join(directory, '.andromeda-check-'));
    try {
      writeFileSync(join(probe, 'probe'), 'check');
    } finally {
      rmSync(probe, { recursive: true });
    }
  } catch (error) {
    return away(about, `backup.to: ${directory} cannot be written: ${messageOf(error)}.`);
  }
  if (stats.mode & 0o022)
    return warn(
      about,
      `backup.to: ${directory} can be written by ${stats.mode & 0o002 ? 'everybody' : 'its group'}, who can then put a backup of their own there. chmod go-w ${directory}`,
    );
  return ok(about, `To ${directory}.`);
}

export async function* checkBackups(config: Config): AsyncGenerator<Finding> {
  const { backup, dataDir } = config;
  const last = backup ? readKeptBackup(dataDir) : readLastBackup(dataDir);
  if (last) yield* orWrong('manifest', checkBackupFile(last.file, dataDir));
  const problems = problemsOfBackups(config, Date.now());
  for (const problem of problems) yield findingOf(about, problem);
  if (backup) yield await checkKept(backup, last);
  else if (last && !existsSync(last.file))
    yield warn(about, `${textOf(last)}. It is not there any more: was it moved to another machine?`);
  else if (last && problems.length === 0) yield ok(about, `${textOf(last)}.`);
  if (backup && backup.after === undefined && sameDisk(backup.to, dataDir))
    yield warn(
      about,
      `${backup.to} and ${dataDir} are on one disk: when that is lost, both are. \`backup.after\` can copy backups elsewhere.`,
    );
}

function textOf({ at, file, bytes }: LastBackup): string {
  return `The last one is of ${at}: ${file}, ${formatBytes(bytes)}`;
}

/** Checks that the last backup is still in the directory. */
async function checkKept({ to }: BackupSettings, last: LastBackup | undefined): Promise<Finding> {
  const known = last && dirname(last.file) === to ? last : undefined;
  const text = known ? textOf(known) : `This service has made none in ${to} yet`;
  let stored: { name: string; bytes: number }[];
  try {
    stored = await listBackups(to);
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    return wrong(about, `${text}. What is there cannot be listed: ${error.message}`);
  }
  if (!known) return warn(about, `${text}; ${stored.length} are there.`);
  const found = stored.find(({ name }) => name === basename(known.file));
  if (found?.bytes === known.bytes) return ok(about, `${text}, of ${stored.length} that are there.`);
  const present = found ? `It has ${formatBytes(found.bytes)} now` : 'It is not there any more';
  return wrong(about, `${text}. ${present}. \`andromeda backup\` makes another.`);
}

function sameDisk(a: string, b: string): boolean {
  const [one, other] = [a, b].map((path) => statSync(path, { throwIfNoEntry: false })?.dev);
  return one !== undefined && one === other;
}

/** The public keys of an installation's audit trail, the current one first; empty where none can be read. */
export function auditKeysOf(dataDir: string): string[] {
  try {
    const held = readAuditKeys(dataDir);
    return held ? trustedKeys(held) : [];
  } catch {
    return [];
  }
}

/** `known`: the installation's keys, one of which should have signed the backup. */
export function judgeSeal(name: string, seal: Seal, known: readonly string[]): Finding {
  const whole = `All ${seal.parts} parts of ${name} are as they were made`;
  if (seal.key === undefined)
    return warn(
      'manifest',
      `${whole}, and nothing signed that: the installation had no key for its audit trail.`,
    );
  const [key] = known;
  if (key === undefined)
    return ok(
      'manifest',
      `${whole}, signed by ${seal.key}. Is that the key that you noted (admin audit key)?`,
    );
  return known.includes(seal.key)
    ? ok('manifest', `${whole}, signed by the key of this installation.`)
    : warn(
        'manifest',
        `${whole}, signed by ${seal.key}, and the key of this installation is ${key}. Was it made by another installation, or before the key was replaced?`,
      );
}

/** For `doctor`: verifies a backup on this host. Throws where it was changed. */
function* checkBackupFile(file: string, dataDir: string): Generator<Finding> {
  const isHere = statSync(file, { throwIfNoEntry: false })?.isFile() && isAllowed(file, constants.R_OK);
  if (isHere) yield judgeSeal(file, verifyBackup(file).seal, auditKeysOf(dataDir));
}
