/**
 * The process that makes one backup: `andromeda backup-process`, an internal command that the service starts. Copying,
 * checking and encrypting a large database would block everything else on the same thread.
 *
 * The service sends the task over the IPC channel and receives the outcome. The process ends when the service is gone.
 */
import { setPriority } from 'node:os';
import { DomainError } from '../../domain/error.ts';
import { messageOf } from '../../lib/error-message.ts';
import { type Kept, keepBackup } from './keep.ts';
import type { KeepSettings } from './storage.ts';

/** What the service asks for. */
export interface BackupTask {
  settings: KeepSettings;
  dataDir: string;
  version: string;
  elsewhere: readonly string[];
}

export type BackupOutcome = { kept: Kept } | { failure: string };

const lowest = 19;

/** Does what it is asked, once, and ends the process. */
export async function runBackupProcess(): Promise<void> {
  const ending = new AbortController();
  const end = () => ending.abort();
  // The service is gone, or stops.
  process.once('disconnect', end).on('SIGTERM', end).on('SIGINT', end);
  process.on('SIGHUP', () => {});
  try {
    setPriority(lowest);
  } catch {
    // Not everywhere it may.
  }
  const task = await new Promise<BackupTask | undefined>((resolve) => {
    process.once('message', (message) => resolve(message as BackupTask));
    ending.signal.addEventListener('abort', () => resolve(undefined));
  });
  if (task) await report(await perform(task, ending.signal));
  // What is under way on other threads is nothing to wait for.
  process.exit(0);
}

async function perform(task: BackupTask, signal: AbortSignal): Promise<BackupOutcome> {
  try {
    return { kept: await keepBackup({ ...task, madeAt: new Date().toISOString(), signal }) };
  } catch (error) {
    if (error instanceof DomainError) return { failure: error.message };
    return {
      failure: signal.aborted ? 'It was interrupted.' : `A fault of the program: ${messageOf(error)}`,
    };
  }
}

function report(outcome: BackupOutcome): Promise<void> {
  return new Promise((resolve) => {
    if (process.connected) process.send?.(outcome, () => resolve());
    else resolve();
  });
}
