/**
 * Backups by themselves: when they are due, where they are kept, and the operator's command that gets each of them. What a backup is,
 * and how it is restored, is the store's; nothing here knows what the configuration looks like, or who asks.
 *
 * Flow: what is due goes by the last success, which is on the disk, and not by when the service started → a process of its own
 * (`process.ts`, `role.ts`) → `keep.ts`: copy, check, write and read back (`directory.ts`), remove the oldest (`names.ts`) → the
 * command, in such a process as well.
 */
import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { messageOf } from '../../lib/error-message.ts';
import { retryDelay } from '../../lib/limits.ts';
import type { Logger } from '../../lib/log.ts';
import { startRounds } from '../../lib/rounds.ts';
import {
  type BackupFailure,
  type KeptBackup,
  noteBackupFailure,
  noteKeptBackup,
  readBackupFailure,
  readKeptBackup,
} from '../../store/data-dir/last-backup.ts';
import { lockBackups } from '../../store/data-dir/lock.ts';
import type { KeepSettings } from './keep.ts';
import { runBackupTask } from './process.ts';
import { clearWorkDir } from './work.ts';

export interface Schedule extends KeepSettings {
  everyMs: number;
}

export interface ScheduleOptions {
  /** Undefined: none are made. */
  settings: Schedule | undefined;
  dataDir: string;
  version: string;
  /** Files of the installation outside the data directory, asked for at each backup. */
  elsewhere(): readonly string[];
  log: Logger;
  now(): number;
  times?: ScheduleTimes;
}

export interface ScheduleTimes {
  /** How often it is looked whether one is due: a clock may jump. */
  checkMs: number;
  /** After the start, which has other things to do. */
  startMs: number;
  /** After a first failure, doubled with each further one. */
  retryMs: number;
}

const usualTimes: ScheduleTimes = { checkMs: 30_000, startMs: 10_000, retryMs: 60_000 };
const longestRetryMs = 3_600_000;
/** A slow line to another machine takes hours. */
const longestMs = 12 * 3_600_000;

/** Starts to make backups when they are due. Returns how to stop: what is under way then leaves nothing that counts. */
export function startBackups(options: ScheduleOptions): () => Promise<void> {
  const { settings, dataDir, times = usualTimes, log } = options;
  clearWorkDir(dataDir);
  if (!settings) return async () => {};
  const onFault = (error: unknown) =>
    log.error('backup.failed', { message: messageOf(error), failures: 1, retryMs: 0 });
  const rounds = startRounds((stopping) => makeIfDue(options, settings, times, stopping), {
    firstMs: times.startMs,
    everyMs: times.checkMs,
    onFault,
  });
  return async () => {
    await rounds.stop();
    // One that had to be killed has not.
    clearWorkDir(dataDir);
  };
}

/** Resolves to how long to wait before the next look, where that is less than usual. */
async function makeIfDue(
  options: ScheduleOptions,
  settings: Schedule,
  times: ScheduleTimes,
  stopping: AbortSignal,
): Promise<number | undefined> {
  const { dataDir, now, log } = options;
  const noted = () => ({ kept: readKeptBackup(dataDir), failure: readBackupFailure(dataDir) });
  const fail = (message: string, { failures }: BackupFailure) => {
    const retryMs = retryMsAfter(failures, settings.everyMs, times);
    log.error('backup.failed', { message, failures, retryMs });
    return Math.min(retryMs, times.checkMs);
  };
  const isGone = await isKeptGone(noted().kept);
  const due = dueAt(settings, { ...noted(), ...(isGone && { kept: undefined }) }, now(), times);
  const next = Math.min(due.backup, due.command);
  if (next > now()) return Math.min(next - now(), times.checkMs);
  if (due.backup <= now()) {
    const failure = await makeBackup(options, settings, stopping);
    if (stopping.aborted) return undefined;
    if (failure !== undefined)
      return fail(`No backup was made: ${failure}`, noteFailure(dataDir, { message: failure }, now()));
  }
  const { kept } = noted();
  const { after: command, everyMs } = settings;
  if (command !== undefined && kept && dueAt(settings, noted(), now(), times).command <= now()) {
    const started = performance.now();
    const failure = await handOn({ dataDir, kept, command, everyMs, now, signal: stopping });
    if (failure) return fail(failure.message, failure);
    const ms = Math.round(performance.now() - started);
    if (!noted().kept?.awaits) log.info('backup.handed_on', { file: kept.file, ms });
  }
  // Also where it could not be noted.
  return times.checkMs;
}

/** A disk that does not answer keeps nothing else waiting. */
async function isKeptGone(kept: KeptBackup | undefined): Promise<boolean> {
  const missing = (error: NodeJS.ErrnoException) => error.code === 'ENOENT';
  return kept !== undefined && (await stat(kept.file).then(() => false, missing));
}

/** Makes one in a process of its own. Resolves to why it failed, if it did. */
async function makeBackup(
  { dataDir, version, elsewhere, log }: ScheduleOptions,
  settings: Schedule,
  stopping: AbortSignal,
): Promise<string | undefined> {
  const started = performance.now();
  const ending = AbortSignal.any([stopping, AbortSignal.timeout(longestMs)]);
  const outcome = await runBackupTask({ settings, dataDir, version, elsewhere: elsewhere() }, ending);
  if ('failure' in outcome) return outcome.failure;
  if (stopping.aborted || !outcome.kept) return undefined;
  const { file, bytes, removed, missing, notRemoved } = outcome.kept;
  log.info('backup.made', { file, bytes, ms: Math.round(performance.now() - started), removed });
  for (const path of missing)
    log.warn('backup.incomplete', { message: `${path} is not in the backup: it cannot be read.` });
  if (notRemoved !== undefined)
    log.warn('backup.incomplete', { message: `Older backups were not removed: ${notRemoved}` });
  return undefined;
}

interface Noted {
  kept: KeptBackup | undefined;
  failure: BackupFailure | undefined;
}

/**
 * When the next backup is to be made, and when the command for the last one is to run, in milliseconds since 1970; each may have passed.
 * A command that fails keeps no backup from being made.
 */
export function dueAt(
  { to, everyMs, after }: Schedule,
  { kept, failure }: Noted,
  now: number,
  times: Pick<ScheduleTimes, 'retryMs'> = usualTimes,
): { backup: number; command: number } {
  const last = kept && dirname(kept.file) === to ? Date.parse(kept.at) : undefined;
  // One from the future was made while the clock was wrong.
  const wanted = last === undefined || last > now ? 0 : last + everyMs;
  const retry = failure ? retryAt(everyMs, failure, now, times) : 0;
  const awaits = after !== undefined && kept?.awaits && wanted > now;
  return {
    backup: failure?.file === undefined ? Math.max(wanted, retry) : wanted,
    command: !awaits ? Number.POSITIVE_INFINITY : failure?.file === kept.file ? retry : 0,
  };
}

function retryAt(
  everyMs: number,
  { at, failures }: BackupFailure,
  now: number,
  times: Pick<ScheduleTimes, 'retryMs'>,
): number {
  const failed = Date.parse(at);
  return failed > now ? 0 : failed + retryMsAfter(failures, everyMs, times);
}

function retryMsAfter(
  failures: number,
  everyMs: number,
  { retryMs }: Pick<ScheduleTimes, 'retryMs'>,
): number {
  return retryDelay(failures, 1, Math.min(longestRetryMs, everyMs), retryMs);
}

interface HandOnOptions {
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
 * Runs the operator's command that gets each finished backup. It has until the next backup is due. Resolves to the failure; to undefined where it succeeded, was interrupted, or
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

function noteFailure(
  dataDir: string,
  failure: Pick<BackupFailure, 'message' | 'file'>,
  now: number,
): BackupFailure {
  const failures = (readBackupFailure(dataDir)?.failures ?? 0) + 1;
  const noted = { ...failure, failures, at: new Date(now).toISOString() };
  noteBackupFailure(dataDir, noted);
  return noted;
}
