/** What `check` and `doctor` say of backups, and they, `restore` and drills of a backup's manifest. */
import { constants, existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { trustedKeys } from '../../../domain/audit/audit.ts';
import { DomainError } from '../../../domain/error.ts';
import { formatBytes } from '../../../domain/units.ts';
import { messageOf } from '../../../lib/error-message.ts';
import type { Seal } from '../../../store/data-dir/backup-file.ts';
import { readAuditKeys } from '../../../store/data-dir/key-files.ts';
import { readBackupFailure, readKeptBackup, readLastBackup } from '../../../store/data-dir/last-backup.ts';
import { verifyBackup } from '../../../store/data-dir/restore.ts';
import type { BackupSettings } from '../../config/backup.ts';
import type { Config } from '../../config/index.ts';
import { isAllowed, whyNot } from '../files.ts';
import { type Finding, ok, orWrong, warn, wrong } from './findings.ts';

const dayMs = 86_400_000;
const about = 'backup';

/** `away`: what it is that no backup can be kept there now, without which the service starts all the same. */
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
    // What modes do not show, as of /proc, a full disk or a mount without its server.
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

export async function* checkBackups({ backup, dataDir }: Config): AsyncGenerator<Finding> {
  const file = (backup ? readKeptBackup(dataDir) : readLastBackup(dataDir))?.file;
  if (!backup) yield checkByHand(dataDir);
  if (file !== undefined) yield* orWrong('manifest', checkBackupFile(file, dataDir));
  if (!backup) return;
  const failure = readBackupFailure(dataDir);
  if (failure)
    yield wrong(
      about,
      `${failure.failures === 1 ? 'The last attempt' : `The last ${failure.failures} attempts`} failed, at ${failure.at}: ${failure.message}`,
    );
  yield await checkKept(backup, dataDir);
  if (backup.after === undefined && sameDisk(backup.to, dataDir))
    yield warn(
      about,
      `${backup.to} and ${dataDir} are on one disk: when that is lost, both are. \`backup.after\` can copy backups elsewhere.`,
    );
}

function checkByHand(dataDir: string): Finding {
  const last = readLastBackup(dataDir);
  if (!last)
    return warn(
      about,
      'None is known. `andromeda backup FILE` makes one, and the setting `backup` one each day.',
    );
  const days = (Date.now() - Date.parse(last.at)) / dayMs;
  const text = `The last one is of ${last.at}: ${last.file}, ${formatBytes(last.bytes)}.`;
  if (!existsSync(last.file))
    return warn(about, `${text} It is not there any more: was it moved to another machine?`);
  return days > 2 ? warn(about, `${text} That is ${Math.floor(days)} days ago.`) : ok(about, text);
}

async function checkKept({ to, everyMs }: BackupSettings, dataDir: string): Promise<Finding> {
  const kept = readKeptBackup(dataDir);
  const known = kept && dirname(kept.file) === to ? kept : undefined;
  const text = known
    ? `The last one is of ${known.at}: ${known.file}, ${formatBytes(known.bytes)}`
    : `This service has made none in ${to} yet`;
  let stored: { name: string; bytes: number }[];
  try {
    stored = await (await import('../../backup/directory.ts')).listBackups(to);
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    return wrong(about, `${text}. What is there cannot be listed: ${error.message}`);
  }
  if (stored.length === 0 && !known) return warn(about, `None is in ${to} yet.`);
  if (!known) return warn(about, `${text}; ${stored.length} are there.`);
  const found = stored.find(({ name }) => name === basename(known.file));
  if (!found) return wrong(about, `${text}. It is not there any more. \`andromeda backup\` makes another.`);
  if (found.bytes !== known.bytes)
    return wrong(
      about,
      `${text}. It has ${formatBytes(found.bytes)} now. \`andromeda backup\` makes another.`,
    );
  if (Date.now() - Date.parse(known.at) > 2 * everyMs)
    return wrong(about, `${text}. That is longer ago than it should be: does the service run?`);
  return ok(about, `${text}, of ${stored.length} that are there.`);
}

function sameDisk(a: string, b: string): boolean {
  const [one, other] = [a, b].map((path) => statSync(path, { throwIfNoEntry: false })?.dev);
  return one !== undefined && one === other;
}

/** The public keys of an installation for its audit trail, that in use first; none where none can be read. */
export function auditKeysOf(dataDir: string): string[] {
  try {
    const held = readAuditKeys(dataDir);
    return held ? trustedKeys(held) : [];
  } catch {
    return [];
  }
}

/** `known`: the keys that it should be signed by one of, where the installation has any. */
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

/** For `doctor`: whether a backup that lies here is as it was made. Throws where it is not. */
function* checkBackupFile(file: string, dataDir: string): Generator<Finding> {
  const isHere = statSync(file, { throwIfNoEntry: false })?.isFile() && isAllowed(file, constants.R_OK);
  if (isHere) yield judgeSeal(file, verifyBackup(file).seal, auditKeysOf(dataDir));
}
