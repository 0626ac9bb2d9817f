/**
 * The process that makes one backup, or runs the command after it: `andromeda backup-process`, an internal command that the
 * service starts. Copying and checking a large database would block the service's thread, and a command may take any time.
 *
 * The service sends the task over the IPC channel and receives the outcome. The process ends when the service is gone.
 */
import { spawn } from 'node:child_process';
import { setPriority } from 'node:os';
import { DomainError } from '../../domain/error.ts';
import { visibleName } from '../../domain/text.ts';
import { messageOf } from '../../lib/error-message.ts';
import { type KeepSettings, type Kept, keepBackup } from './keep.ts';

export type BackupTask =
  | { settings: KeepSettings; dataDir: string; version: string; elsewhere: readonly string[] }
  | AfterTask;

/** A shell command, which gets the path of the backup as `$1`. */
interface AfterTask {
  command: string;
  file: string;
}

/** `kept`: the backup, where the task was one. */
export type BackupOutcome = { kept?: Kept } | { failure: string };

const lowest = 19;

export async function runBackupProcess(): Promise<void> {
  const ending = new AbortController();
  const end = () => ending.abort();
  // The service is gone, or stops.
  process.once('disconnect', end).on('SIGTERM', end).on('SIGINT', end);
  process.on('SIGHUP', () => {});
  try {
    setPriority(lowest);
  } catch {
    // Not permitted on every host.
  }
  const task = await new Promise<BackupTask | undefined>((resolve) => {
    process.once('message', (message) => resolve(message as BackupTask));
    ending.signal.addEventListener('abort', () => resolve(undefined));
  });
  if (task) await report(await perform(task, ending.signal));
  // Does not wait for work on other threads.
  process.exit(0);
}

async function perform(task: BackupTask, signal: AbortSignal): Promise<BackupOutcome> {
  if ('command' in task) return runCommand(task, signal);
  try {
    return { kept: await keepBackup({ ...task, madeAt: new Date().toISOString(), signal }) };
  } catch (error) {
    if (error instanceof DomainError) return { failure: error.message };
    return {
      failure: signal.aborted ? 'It was interrupted.' : `A fault of the program: ${messageOf(error)}`,
    };
  }
}

/** Limit on kept output: one line of it is shown. */
const mostOutput = 4_000;

async function runCommand({ command, file }: AfterTask, signal: AbortSignal): Promise<BackupOutcome> {
  // The service that would end the process group is gone.
  process.once('disconnect', () => process.kill(-process.pid, 'SIGKILL'));
  const { NODE_COMPILE_CACHE: _, ...env } = process.env;
  const child = spawn('/bin/sh', ['-c', command, 'sh', file], { stdio: ['ignore', 'ignore', 'pipe'], env });
  let output = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    if (output.length < mostOutput) output += text;
  });
  const how = await new Promise<string>((resolve) => {
    const ended = (code: number | null, by: string | null) =>
      resolve(code === 0 ? '' : by ? `it was ended by ${by}` : `it ended with status ${code}`);
    child.once('error', (error) => resolve(error.message));
    // Does not wait for processes that the command left running, unless they are being ended as well.
    child.once('exit', (...status) => !signal.aborted && setTimeout(ended, outputMs, ...status));
    child.once('close', ended);
  });
  if (how === '') return {};
  const [line] = output.split('\n').filter((one) => one.trim() !== '');
  return { failure: line === undefined ? `${how}.` : `${how}: ${visibleName(line, 300)}` };
}

/** How long the last output is waited for after the exit: a process that the command left running may hold the pipe. */
const outputMs = 500;

function report(outcome: BackupOutcome): Promise<void> {
  return new Promise((resolve) => {
    if (process.connected) process.send?.(outcome, () => resolve());
    else resolve();
  });
}
