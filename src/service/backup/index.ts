/**
 * Scheduled backups: when they are due, where they are kept, and the operator's command that gets each of them. The store defines
 * what a backup contains and how it is restored; this folder knows neither the configuration's format nor its callers.
 *
 * Flow: the schedule counts from the last success, which is noted on disk, and not from the start of the service → a process of
 * its own (`process.ts`, `role.ts`) → `keep.ts`: copy, check, write and read back (`directory.ts`), remove the oldest
 * (`names.ts`) → the command, in such a process as well.
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
  /** Undefined: no backups are made. */
  settings: Schedule | undefined;
  dataDir: string;
  version: string;
  /** Files of the installation outside the data directory, listed again at each backup. */
  elsewhere(): readonly string[];
  log: Logger;
  now(): number;
  times?: ScheduleTimes;
}

export interface ScheduleTimes {
  /** Interval of checks whether a backup is due: a clock may jump. */
  checkMs: number;
  /** Delay of the first check after the start, which has other work to do. */
  startMs: number;
  /** Retry delay after a first failure, doubled with each further one. */
  retryMs: number;
}

const usualTimes: ScheduleTimes = { checkMs: 30_000, startMs: 10_000, retryMs: 60_000 };
const longestRetryMs = 3_600_000;
/** Timeout of a backup. A slow line to another machine takes hours. */
const longestMs = 12 * 3_600_000;

/** Starts the schedule. Returns a function that stops it: an unfinished backup is discarded. */
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
    // A backup process that had to be killed leaves its work directory.
    clearWorkDir(dataDir);
  };
}

/** Resolves to the wait before the next check, where it is shorter than usual. */
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
  // Also where the success could not be noted.
  return times.checkMs;
}

/** A disk that does not answer blocks nothing else. */
async function isKeptGone(kept: KeptBackup | undefined): Promise<boolean> {
  const missing = (error: NodeJS.ErrnoException) => error.code === 'ENOENT';
  return kept !== undefined && (await stat(kept.file).then(() => false, missing));
}

/** Makes a backup in a process of its own. Resolves to the reason of a failure. */
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

interface BackupNotes {
  kept: KeptBackup | undefined;
  failure: BackupFailure | undefined;
}

/**
 * The times of the next backup and of the command for the last one, in milliseconds since 1970; each may have passed.
 * A failing command does not prevent backups.
 */
export function dueAt(
  { to, everyMs, after }: Schedule,
  { kept, failure }: BackupNotes,
  now: number,
  times: Pick<ScheduleTimes, 'retryMs'> = usualTimes,
): { backup: number; command: number } {
  const last = kept && dirname(kept.file) === to ? Date.parse(kept.at) : undefined;
  // A backup from the future was made while the clock was wrong.
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
  /** Interval of backups. */
  everyMs: number;
  now(): number;
  /** Ends the command; its outcome is not noted then. */
  signal: AbortSignal;
}

/**
 * Runs the operator's command that gets each finished backup, with a timeout when the next backup is due. Resolves to
 * the failure; to undefined where it succeeded, was interrupted, or another process holds the lock.
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
