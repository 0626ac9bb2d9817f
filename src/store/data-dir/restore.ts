/** Restores a data directory from a backup. */

import {
  accessSync,
  constants,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, isAbsolute, join } from 'node:path';
import { DomainError } from '../../domain/error.ts';
import { fileReason } from '../../lib/error-message.ts';
import { flush } from '../../lib/whole-file.ts';
import { files } from '../engine/engine.ts';
import { type CheckedBackup, checkBackup, readFiles, removeFiles } from './backup-file.ts';
import { lockDataDir } from './lock.ts';

export interface Restored extends CheckedBackup {
  /** The directory of the files that were there before; undefined where there were none. */
  aside: string | undefined;
  /** Files from outside the data directory, missing or changed there: their new paths below the data directory. */
  elsewhere: string[];
}

const databaseName = 'andromeda.db';
/** Nothing outside of the data directory is written to. */
const elsewhere = 'from-elsewhere';

/**
 * Replaces the content of the data directory, which is made if it is missing, by that of a backup; the former content is kept
 * in a subdirectory (`before-restore-…`). At every instant there is a database, the old or the new one, and an interrupted
 * restore can be repeated. Throws a `DomainError` with a sentence, also when the service runs.
 */
export function restoreBackup(file: string, dataDir: string, now: string): Restored {
  requireReadable(file);
  const unlock = lockDataDir(dataDir);
  if (!unlock)
    throw new DomainError(
      'invalid_state',
      `Andromeda serves from ${dataDir}. Stop it first; nothing was changed.`,
    );
  try {
    using staging = openStaging(dataDir, '.restore');
    const { info, names } = unpack(file, staging.path);
    const aside = join(dataDir, `before-restore-${now.replaceAll(/[-:]|\.\d+/g, '')}`);
    for (const name of names) keepAside(name, dataDir, aside);
    for (const name of [`${databaseName}-wal`, `${databaseName}-shm`]) {
      keepAside(name, dataDir, aside);
      // The log belongs to the old database, and SQLite would apply it to the new one.
      rmSync(join(dataDir, name), { force: true });
    }
    for (const name of names) {
      makeParents(name, dataDir);
      renameSync(join(staging.path, name), join(dataDir, name));
      flush(dirname(join(dataDir, name)));
    }
    return {
      ...info,
      aside: existsSync(aside) ? aside : undefined,
      elsewhere: names.filter((name) => name.startsWith(elsewhere)).map((name) => join(dataDir, name)),
    };
  } catch (error) {
    if (error instanceof DomainError) throw error;
    const message = `${dataDir} cannot be written: ${(error as Error).message}. Mend that, and restore again.`;
    throw new DomainError('invalid_state', message, { cause: error });
  } finally {
    unlock();
  }
}

/** An empty staging directory: what an interrupted command left there is removed. */
export function openStaging(directory: string, name: string): Disposable & { path: string } {
  const path = join(directory, name);
  const remove = () => rmSync(path, { recursive: true, force: true });
  remove();
  mkdirSync(path, { mode: 0o700 });
  return { path, [Symbol.dispose]: remove };
}

/** Checks a backup in place, as a restore does. Throws a `DomainError` with a sentence. */
export function verifyBackup(file: string): CheckedBackup {
  requireReadable(file);
  using database = files.openFile(file, { readonly: true });
  return checkBackup(database, file);
}

/** Keeps faults of the file from being taken for the data directory's, and a pipe from being waited for. */
function requireReadable(file: string): void {
  try {
    const stats = statSync(file, { throwIfNoEntry: false });
    if (!stats) throw new DomainError('not_found', `There is no file ${file}.`);
    if (!stats.isFile()) throw new DomainError('invalid_request', `${file} is not a backup of Andromeda.`);
    accessSync(file, constants.R_OK);
  } catch (error) {
    if (error instanceof DomainError) throw error;
    throw new DomainError('invalid_state', `${file} cannot be read: ${fileReason(error)}.`, { cause: error });
  }
}

/** Checks a copy of the backup, and unpacks it into the files to restore, each of mode 0600 and on the disk. */
function unpack(file: string, staging: string): { info: CheckedBackup; names: string[] } {
  const database = join(staging, databaseName);
  writeFileSync(database, '', { mode: 0o600 });
  copyFileSync(file, database);
  using copy = files.openFile(database);
  const info = checkBackup(copy, file);
  const names: string[] = [];
  for (const { path, content } of readFiles(copy)) {
    if (isAbsolute(path) && isThere(path, content)) continue;
    const name = isAbsolute(path) ? join(elsewhere, path) : path;
    mkdirSync(dirname(join(staging, name)), { recursive: true, mode: 0o700 });
    writeFileSync(join(staging, name), content, { mode: 0o600, flush: true });
    names.push(name);
  }
  removeFiles(copy);
  return { info, names: [databaseName, ...names] };
}

function isThere(path: string, content: Buffer): boolean {
  try {
    return readFileSync(path).equals(content);
  } catch {
    return false;
  }
}

function keepAside(name: string, dataDir: string, aside: string): void {
  if (!existsSync(join(dataDir, name))) return;
  const kept = join(aside, name);
  mkdirSync(dirname(kept), { recursive: true, mode: 0o700 });
  rmSync(kept, { force: true });
  try {
    linkSync(join(dataDir, name), kept);
  } catch {
    // Not every file system has links.
    copyFileSync(join(dataDir, name), kept);
  }
}

/** Other users traverse to the homes of simulated login nodes; keys are for the service alone. */
function makeParents(name: string, dataDir: string): void {
  const mode = name.startsWith('clusters/') ? 0o711 : 0o700;
  mkdirSync(dirname(join(dataDir, name)), { recursive: true, mode });
}
