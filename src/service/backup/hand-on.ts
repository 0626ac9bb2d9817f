/** The operator's command that gets each finished backup, such as one that copies it to another machine, and what is noted of it. */
import {
  type BackupFailure,
  type KeptBackup,
  noteBackupFailure,
  noteKeptBackup,
  readBackupFailure,
} from '../../store/data-dir/last-backup.ts';
import { lockBackups } from '../../store/data-dir/lock.ts';
import { runBackupTask } from './process.ts';

/** A slow line to another machine takes hours. */
const longestMs = 12 * 3_600_000;

export interface HandOnOptions {
  dataDir: string;
  kept: KeptBackup;
  command: string;
  /** How often backups are made. */
  everyMs: number;
  now(): number;
  /** Has it end; what then became of it is not noted. */
  signal: AbortSignal;
}

/**
 * Runs the command. It has until the next backup is due. Resolves to the failure; to undefined where it succeeded, was interrupted, or
 * another process is at it.
 */
export async function handOn(options: HandOnOptions): Promise<BackupFailure | undefined> {
  const { dataDir, kept, command, everyMs, now, signal } = options;
  const unlock = lockBackups(dataDir);
  if (!unlock) return undefined;
  try {
    const limitMs = Math.max(0, Math.min(longestMs, Date.parse(kept.at) + everyMs - now()));
    const late = AbortSignal.timeout(limitMs);
    const { file } = kept;
    const outcome = await runBackupTask({ command, file }, AbortSignal.any([signal, late]));
    if (signal.aborted) return undefined;
    if (!('failure' in outcome)) {
      noteKeptBackup(dataDir, { ...kept, awaits: false });
      return undefined;
    }
    const hung = `it had not ended after ${Math.round(limitMs / 60_000)} minutes, and was killed.`;
    const why = late.aborted ? hung : outcome.failure;
    return noteFailure(dataDir, { message: `backup.after failed for ${file}: ${why}`, file }, now());
  } finally {
    unlock();
  }
}

export function noteFailure(
  dataDir: string,
  failure: Pick<BackupFailure, 'message' | 'file'>,
  now: number,
): BackupFailure {
  const failures = (readBackupFailure(dataDir)?.failures ?? 0) + 1;
  const noted = { ...failure, failures, at: new Date(now).toISOString() };
  noteBackupFailure(dataDir, noted);
  return noted;
}
