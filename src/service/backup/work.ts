/** Where a backup is made before it is kept: as secret as the data directory it is in. */
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DomainError } from '../../domain/error.ts';
import { lockBackups } from '../../store/data-dir/lock.ts';

/**
 * Runs `work` with an empty directory under an exclusive lock, and removes it before and after, so also what a killed process has
 * left. Throws `invalid_state` while another process holds the lock.
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

/** Removes what was left behind, unless it is in use. */
export function clearWorkDir(dataDir: string): void {
  // A service on a full disk starts, too.
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
