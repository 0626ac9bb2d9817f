/** Where a backup is made before it is kept, and put before it is restored: as secret as the data directory it is in. */
import { existsSync, mkdirSync, rmSync, statfsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DomainError } from '../domain/error.ts';
import { lockBackups } from '../store/lock.ts';

/** The service itself needs room to go on. */
const spareBytes = 128 * 1024 * 1024;
const mebibyte = 1024 * 1024;

/**
 * Runs `work` with an empty directory that nobody else uses, and removes all but notes from it, also what one that was
 * killed has left. Throws `invalid_state` while another does.
 */
export async function withWorkDir<T>(dataDir: string, work: (directory: string) => Promise<T>): Promise<T> {
  const unlock = lockBackups(dataDir);
  if (!unlock)
    throw new DomainError(
      'invalid_state',
      `Another backup or restore of ${dataDir} is under way. Wait for it.`,
    );
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
  if (!existsSync(join(workDirOf(dataDir), 'content'))) return;
  const unlock = lockBackups(dataDir);
  if (unlock) clear(workDirOf(dataDir));
  unlock?.();
}

function workDirOf(dataDir: string): string {
  return join(dataDir, 'backup-work');
}

function clear(directory: string): void {
  rmSync(join(directory, 'content'), { recursive: true, force: true });
}

/** Where large and secret things go in a working directory. What lies beside is kept for the next attempt. */
export function contentDir(workDir: string): string {
  const directory = join(workDir, 'content');
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  return directory;
}

/** Throws `invalid_state` where two copies of the database, of which one is rewritten as the other, would take the room that the service needs. */
export function requireSpace(dataDir: string): void {
  const database = join(dataDir, 'andromeda.db');
  const sizes = [database, `${database}-wal`].map(
    (file) => statSync(file, { throwIfNoEntry: false })?.size ?? 0,
  );
  requireFree(dataDir, 2 * sizes.reduce((sum, size) => sum + size, 0));
}

/** Throws `invalid_state` where so much does not fit on a directory's disk beside what others need. */
export function requireFree(directory: string, bytes: number): void {
  const { bavail, bsize } = statfsSync(directory);
  const free = bavail * bsize;
  if (free >= bytes + spareBytes) return;
  const [needed, left] = [bytes + spareBytes, free].map((size) => `${Math.ceil(size / mebibyte)} MiB`);
  throw new DomainError(
    'invalid_state',
    `The disk of ${directory} has ${left} left, and ${needed} are needed. Make room.`,
  );
}
