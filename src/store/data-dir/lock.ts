/** Allows one server per data directory: two would run two sync loops and two gateways on the same clusters. */

import { createHash, randomUUID } from 'node:crypto';
import { chmodSync, closeSync, existsSync, mkdirSync, openSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DomainError } from '../../domain/error.ts';
import { fileReason } from '../../lib/error-message.ts';
import { files, isDatabaseError } from '../engine/engine.ts';

/**
 * Locks the directory, making it if it is missing, until released or until this process ends however it ends: the lock
 * is the operating system's. Undefined when another process holds it.
 */
export function lockDataDir(dataDir: string): (() => void) | undefined {
  makeDataDir(dataDir);
  requireKinds(dataDir);
  return files.lock(makeLockFile(dataDir, 'lock'));
}

const ownDirectories = ['keys', 'run', 'clusters'];
const ownFiles = [
  ...['lock', 'backup-lock', 'key-lock', 'andromeda.db', 'andromeda.db-wal', 'andromeda.db-shm'],
  ...['installation-id', 'postgres-timeline', 'reload.sock', 'run/gateway.sock'],
];

/** Throws `invalid_state`, a line per path, where a directory stands in place of a file, or the other way round. */
export function requireKinds(dataDir: string): void {
  const isOther = (name: string) => {
    const path = join(dataDir, name);
    return existsSync(path) && statSync(path).isDirectory() !== ownDirectories.includes(name);
  };
  const faults = [...ownDirectories, ...ownFiles].filter(isOther).map((name) => {
    const kind = ownDirectories.includes(name)
      ? 'has to be a directory'
      : 'is a directory, and has to be none';
    return `${join(dataDir, name)} ${kind}. Move it away.`;
  });
  if (faults.length > 0) throw new DomainError('invalid_state', faults.join('\n'));
}

/** Locks the backups of a directory likewise. Undefined when another process makes one. */
export function lockBackups(dataDir: string): (() => void) | undefined {
  return files.lock(makeLockFile(dataDir, 'backup-lock'));
}

/** Locks the key files for a change. Throws `invalid_state` when another process changes them. */
export function lockKeys(dataDir: string): () => void {
  const unlock = files.lock(makeLockFile(dataDir, 'key-lock'));
  if (unlock) return unlock;
  throw new DomainError('invalid_state', `Another process changes the keys in ${dataDir}. Repeat this.`);
}

/** Whether another process holds the directory. Where none does, this call locks it for an instant. */
export function isHeld(dataDir: string): boolean {
  const file = join(dataDir, 'lock');
  if (!existsSync(file)) return false;
  try {
    const unlock = files.lock(file);
    unlock?.();
    return unlock === undefined;
  } catch (error) {
    if (!isDatabaseError(error)) throw error;
    return false;
  }
}

/**
 * Makes a data directory where there is none. Not its parents: Node never returns from that on some file systems.
 * Throws `invalid_state` with a sentence.
 */
export function makeDataDir(dataDir: string): void {
  try {
    // Others may traverse it (the embedded login node's homes lie below), not list it; secrets are 0600 files.
    mkdirSync(dataDir, { mode: 0o711 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw unusable(dataDir, error);
  }
}

/** Throws `invalid_state` for any user but the owner: files made by another user would lock the service out of its data. */
export function requireOwner(dataDir: string): void {
  const owner = statSync(dataDir, { throwIfNoEntry: false })?.uid;
  if (owner === undefined || owner === process.getuid?.()) return;
  throw new DomainError(
    'invalid_state',
    `${dataDir} belongs to the user with the ID ${owner}. Run this as that user, the one that the service runs as.`,
  );
}

function makeLockFile(dataDir: string, name: string): string {
  const file = join(dataDir, name);
  try {
    // Emptied: SQLite locks no file with other content, as a disk can leave it.
    closeSync(openSync(file, 'w', 0o600));
    chmodSync(file, 0o600);
    return file;
  } catch (error) {
    throw unusable(dataDir, error);
  }
}

function unusable(dataDir: string, error: unknown): DomainError {
  const reason = fileReason(error, 'the directory it should be in does not exist');
  const message = `The data directory ${dataDir} cannot be made or written: ${reason}.`;
  return new DomainError('invalid_state', message, { cause: error });
}

/**
 * Two servers have the same ID only if they ran one after the other, under the same kernel in the same directory, whose
 * lock lets in one at a time. A copy of a directory, or of a machine, has another ID.
 */
export function dataDirId(dataDir: string): string {
  try {
    const { dev, ino } = statSync(dataDir, { bigint: true });
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return createHash('sha256').update(`${boot} ${dev} ${ino}`).digest('hex').slice(0, 32);
  } catch {
    // With a random ID, this server waits until the one before counts as gone.
    return randomUUID();
  }
}
