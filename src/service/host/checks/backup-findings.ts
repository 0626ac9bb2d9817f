/** What `check` and `doctor` say of backups. */
import { constants, statSync } from 'node:fs';
import { DomainError } from '../../../domain/error.ts';
import { formatBytes } from '../../../domain/units.ts';
import { readBackupFailure, readKeptBackup, readLastBackup } from '../../../store/data-dir/last-backup.ts';
import type { BackupSettings } from '../../config/backup.ts';
import type { Config } from '../../config/index.ts';
import { checkBackupFile } from '../backup-seal.ts';
import { isAllowed, whyNot } from '../files.ts';
import { type Finding, ok, orWrong, warn, wrong } from './findings.ts';

const dayMs = 86_400_000;
const about = 'backup';

/** For `check`: whether backups could be made by the settings. Nothing is asked over the network. */
export async function* checkBackupSettings({ backup }: Config): AsyncGenerator<Finding> {
  if (backup) yield* orWrong(about, checkSettings(backup));
}

async function* checkSettings({ encryptTo, to }: BackupSettings): AsyncGenerator<Finding> {
  if (encryptTo.length > 0) await (await import('../../backup/encryption.ts')).requireRecipients(encryptTo);
  if ('directory' in to) return yield checkDirectory(to.directory);
  (await import('../../backup/key-files.ts')).readS3Credentials(to.credentials);
  yield ok(about, `To the bucket ${to.bucket} at ${to.endpoint}; \`andromeda doctor\` asks there.`);
}

function checkDirectory(directory: string): Finding {
  const stats = statSync(directory, { throwIfNoEntry: false });
  if (!stats?.isDirectory())
    return wrong(
      about,
      `backup.to: ${directory} is not there. Make the directory, or mount what it lies on.`,
    );
  if (!isAllowed(directory, constants.R_OK | constants.W_OK | constants.X_OK))
    return wrong(about, `backup.to: ${directory} cannot be written: ${whyNot(directory, stats)}.`);
  if (stats.mode & 0o022)
    return warn(
      about,
      `backup.to: ${directory} can be written by ${stats.mode & 0o002 ? 'everybody' : 'its group'}, who can then put a backup of their own there. chmod go-w ${directory}`,
    );
  return ok(about, `To ${directory}.`);
}

/** For `doctor`: when the last one was made, and whether it is where it was put. */
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
  if ('directory' in backup.to && sameDisk(backup.to.directory, dataDir))
    yield warn(
      about,
      `${backup.to.directory} and ${dataDir} are on one disk: when that is lost, both are. Copy backups elsewhere.`,
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
  return days > 2 ? warn(about, `${text} That is ${Math.floor(days)} days ago.`) : ok(about, text);
}

async function checkKept(settings: BackupSettings, dataDir: string): Promise<Finding> {
  const kept = readKeptBackup(dataDir);
  const { describeStorage } = await import('../../backup/storage.ts');
  const storage = describeStorage(settings.to);
  const known = kept?.storage === storage ? kept : undefined;
  const text = known
    ? `The last one is of ${known.at}: ${known.file}, ${formatBytes(known.bytes)}`
    : `This service has made none in ${storage} yet`;
  let stored: { name: string; bytes: number }[];
  try {
    stored = await (await import('../../backup/obtain.ts')).listBackups(settings.to, dataDir);
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    return wrong(about, `${text}. What is there cannot be asked: ${error.message}`);
  }
  if (stored.length === 0 && !known) return warn(about, `None is in ${storage} yet.`);
  if (!known) return warn(about, `${text}; ${stored.length} are there.`);
  const found = stored.find(({ name }) => name === known.file);
  if (!found) return wrong(about, `${text}. It is not there any more. \`andromeda backup\` makes another.`);
  if (found.bytes !== known.bytes)
    return wrong(
      about,
      `${text}. It has ${formatBytes(found.bytes)} now. \`andromeda backup\` makes another.`,
    );
  if (Date.now() - Date.parse(known.at) > 2 * settings.everyMs)
    return wrong(about, `${text}. That is longer ago than it should be: does the service run?`);
  return ok(about, `${text}, of ${stored.length} that are there.`);
}

function sameDisk(a: string, b: string): boolean {
  const [one, other] = [a, b].map((path) => statSync(path, { throwIfNoEntry: false })?.dev);
  return one !== undefined && one === other;
}
