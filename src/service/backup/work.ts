/** The work directory in which a backup is made before it is stored: as secret as the data directory around it. */
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DomainError } from '../../domain/error.ts';
import { lockBackups } from '../../store/data-dir/lock.ts';

/**
 * Runs `work` with an empty directory under an exclusive lock, and removes the directory before and after, so also
 * one that a killed process has left. Throws `invalid_state` while another process holds the lock.
 */
export async function withWorkDir<T>(dataDir: string, work: (directory: string) => Promise<T>): Promise<T> {
  const unlock = lockBackups(dataDir);
  if (!unlock)
    throw new DomainError('invalid_state', `Another backup of ${dataDir} is under way. Wait for it.`);
  try {
    const directory = workDirOf(dataDir);
    clear(directory);
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    try {
      return await work(directory);
    } finally {
      clear(directory);
    }
  } finally {
    unlock();
  }
}

/** Removes a leftover work directory, unless it is in use. */
export function clearWorkDir(dataDir: string): void {
  // Without it no lock file is made: a service on a full disk must start, too.
  if (!existsSync(workDirOf(dataDir))) return;
  const unlock = lockBackups(dataDir);
  if (unlock) clear(workDirOf(dataDir));
  unlock?.();
}

function workDirOf(dataDir: string): string {
  return join(dataDir, 'backup-work');
}

function clear(directory: string): void {
  rmSync(directory, { recursive: true, force: true });
}
