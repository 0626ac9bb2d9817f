/**
 * Backups by themselves: when they are due, where they are kept, how they are encrypted, and how they are fetched again. What a
 * backup is, and how it is restored, is the store's; nothing here knows what the configuration looks like, or who asks.
 *
 * Flow: what is due goes by the last success, which is on the disk, and not by when the service started → a process of its own
 * (`role.ts`) → `keep.ts`: copy, check, encrypt (`encryption.ts`), write and read back (`directory.ts`, `s3.ts`), remove the oldest
 * (`names.ts`). A restore begins with `obtain.ts`.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { messageOf } from '../../lib/error-message.ts';
import { retryDelay } from '../../lib/limits.ts';
import type { Logger } from '../../lib/log.ts';
import { backupArguments, inheritedEnvironment } from '../../lib/packaging.ts';
import { startRounds } from '../../lib/rounds.ts';
import {
  type BackupFailure,
  type KeptBackup,
  noteBackupFailure,
  readBackupFailure,
  readKeptBackup,
} from '../../store/data-dir/last-backup.ts';
import type { BackupOutcome, BackupTask } from './role.ts';
import { describeStorage, type KeepSettings } from './storage.ts';
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
/** A process that does not end when it is asked to. */
const stopMs = 300;
/** One that hangs. A slow line to a large storage takes hours. */
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
  const known = { kept: readKeptBackup(dataDir), failure: readBackupFailure(dataDir) };
  const due = dueAt(settings, known, now(), times);
  if (due > now()) return Math.min(due - now(), times.checkMs);
  const started = performance.now();
  const task = { settings, dataDir, version: options.version, elsewhere: options.elsewhere() };
  const outcome = await attempt(task, stopping);
  if (stopping.aborted) return undefined;
  if ('kept' in outcome) {
    const { file, bytes, removed, missing, notRemoved } = outcome.kept;
    log.info('backup.made', { file, bytes, ms: Math.round(performance.now() - started), removed });
    for (const path of missing)
      log.warn('backup.incomplete', { message: `${path} is not in the backup: it cannot be read.` });
    if (notRemoved !== undefined)
      log.warn('backup.incomplete', { message: `Older backups were not removed: ${notRemoved}` });
    // Also where it could not be noted.
    return times.checkMs;
  }
  const failures = (readBackupFailure(dataDir)?.failures ?? 0) + 1;
  noteBackupFailure(dataDir, { at: new Date(now()).toISOString(), failures, message: outcome.failure });
  const retryMs = retryMsAfter(failures, settings, times);
  log.error('backup.failed', { message: `No backup was made: ${outcome.failure}`, failures, retryMs });
  return Math.min(retryMs, times.checkMs);
}

/** When the next one is to be made, in milliseconds since 1970; it may have passed. */
export function dueAt(
  settings: Schedule,
  { kept, failure }: { kept: KeptBackup | undefined; failure: BackupFailure | undefined },
  now: number,
  times: Pick<ScheduleTimes, 'retryMs'> = usualTimes,
): number {
  const last = kept?.storage === describeStorage(settings.to) ? Date.parse(kept.at) : undefined;
  // One from the future was made while the clock was wrong.
  const wanted = last === undefined || last > now ? 0 : last + settings.everyMs;
  const failed = failure && Date.parse(failure.at);
  if (failed === undefined || failed > now) return wanted;
  return Math.max(wanted, failed + retryMsAfter(failure?.failures ?? 1, settings, times));
}

function retryMsAfter(
  failures: number,
  { everyMs }: Schedule,
  { retryMs }: Pick<ScheduleTimes, 'retryMs'>,
): number {
  return retryDelay(failures, 1, Math.min(longestRetryMs, everyMs), retryMs);
}

/** Makes one in a process of its own. */
async function attempt(task: BackupTask, stopping: AbortSignal): Promise<BackupOutcome> {
  const env = { PATH: process.env['PATH'] ?? '/usr/bin:/bin', ...inheritedEnvironment(), ...forwarded() };
  const child = spawn(process.execPath, backupArguments(), {
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    cwd: '/',
    env,
  });
  let lastOutput = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    lastOutput = (lastOutput + text).slice(-2_000);
  });
  let outcome: BackupOutcome | undefined;
  child.on('message', (message) => {
    outcome = message as BackupOutcome;
  });
  const stop = () => end(child);
  const ending = AbortSignal.any([stopping, AbortSignal.timeout(longestMs)]);
  ending.addEventListener('abort', stop, { once: true });
  const ended = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('close', (code, signal) => resolve(signal ? `signal ${signal}` : `status ${code}`));
  });
  child.send(task, () => {});
  if (stopping.aborted) stop();
  const how = await ended;
  ending.removeEventListener('abort', stop);
  return outcome ?? { failure: `Its process ended with ${how}. ${lastOutput.trim()}`.trim() };
}

function end(child: ChildProcess): void {
  child.kill('SIGTERM');
  // During a long check it does not handle SIGTERM.
  setTimeout(() => child.kill('SIGKILL'), stopMs).unref();
}

/** Where temporary files go, whom to trust, and a proxy: of our environment what a request needs. */
function forwarded(): Record<string, string> {
  const names = [
    'TZ',
    'NODE_EXTRA_CA_CERTS',
    'SSL_CERT_FILE',
    'SSL_CERT_DIR',
    'NODE_USE_ENV_PROXY',
    'HTTPS_PROXY',
    'NO_PROXY',
  ];
  return Object.fromEntries(names.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));
}
