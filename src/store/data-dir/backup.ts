/** A backup of a data directory, made while the service runs or not. */

import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import type { AuditKey } from '../../domain/audit/audit.ts';
import { DomainError } from '../../domain/error.ts';
import { fileReason } from '../../lib/error-message.ts';
import { isAlive } from '../../lib/host-ids.ts';
import { type CopyOptions, databaseFault, files } from '../engine/engine.ts';
import {
  addFiles,
  type BackupInfo,
  checkBackup,
  isBackup,
  listClusterFiles,
  listKeptFiles,
} from './backup-file.ts';
import { readAuditKeys } from './key-files.ts';

export interface BackupOptions extends BackupInfo, CopyOptions {
  /** Absolute paths of the installation's files outside the data directory, except those that clusters name. */
  elsewhere?: readonly string[];
}

export interface Backup {
  bytes: number;
  /** Files that belong in the backup and could not be read. */
  missing: string[];
}

/** Keys, certificates and configurations are far smaller. */
const maxFileBytes = 16 * 1024 * 1024;

/**
 * Writes a backup of the data directory to `file` (mode 0600), whole or not at all, and checks it. Writes of the
 * service meanwhile are not in it and do not wait: the copy is one read transaction. Throws a `DomainError` with a
 * sentence. A symbolic link stays one: its target is replaced.
 */
export async function writeBackup(dataDir: string, file: string, options: BackupOptions): Promise<Backup> {
  const source = join(dataDir, 'andromeda.db');
  if (!existsSync(source)) {
    throw new DomainError('not_found', `There is no database in ${dataDir}; nothing to back up.`);
  }
  const target = existsSync(file) ? realpathSync(file) : file;
  const temporary = `${target}.${process.pid}.part`;
  const raw = `${temporary}-raw`;
  try {
    requireReplaceable(target, file);
    removeAbandoned(target);
    for (const name of [raw, temporary]) closeSync(openSync(name, 'wx', 0o600));
    await files.copy(source, raw, options);
    compact(raw, temporary, dataDir);
    rmSync(raw);
    options.signal?.throwIfAborted();
    const missing = fill(temporary, dataDir, options);
    await flush(temporary);
    renameSync(temporary, target);
    await flush(dirname(target));
    const bytes = statSync(file).size;
    return { bytes, missing };
  } catch (error) {
    for (const name of [raw, temporary]) {
      for (const end of ['', '-journal', '-wal', '-shm']) rmSync(`${name}${end}`, { force: true });
    }
    if (error instanceof DomainError || options.signal?.aborted) throw error;
    if (databaseFault(error) === 'damaged') throw damaged(dataDir);
    const reason = fileReason(error, 'the directory it should be in does not exist');
    throw new DomainError('invalid_state', `${file} cannot be written: ${reason}.`, { cause: error });
  }
}

/** Adds the files to a copy of the database, and checks it. Returns the files that could not be read. */
function fill(file: string, dataDir: string, options: BackupOptions): string[] {
  using copy = files.openFile(file);
  const missing: string[] = [];
  const outside = [...(options.elsewhere ?? []), ...listClusterFiles(copy)];
  const others = [...new Set(outside)].filter((path) => relative(dataDir, path).startsWith('..'));
  addFiles(copy, contents(dataDir, others, missing), options, signerOf(dataDir));
  checkBackup(copy, 'What was just written');
  return missing;
}

/** A key that cannot be read must not keep an installation from being backed up: restoring it says that nothing signed it. */
function signerOf(dataDir: string): AuditKey['signBackup'] | undefined {
  try {
    return readAuditKeys(dataDir)?.used.signBackup;
  } catch {
    return undefined;
  }
}

/**
 * Rewrites a copy without deleted data: freed parts of its pages still have old text, such as the names of erased
 * people. Pages are copied as they are, so damage in the copy is damage in the database.
 */
function compact(raw: string, file: string, dataDir: string): void {
  using copy = files.openFile(raw);
  if (!copy.isWhole()) throw damaged(dataDir);
  copy.compactInto(file);
}

function damaged(dataDir: string): DomainError {
  return new DomainError(
    'invalid_state',
    `The database in ${dataDir} is damaged, so no backup was written. Restore the last good one (\`andromeda restore\`), and have the disk checked.`,
  );
}

/** Removes the files of backups that were killed: they are large, and secret. */
function removeAbandoned(file: string): void {
  const directory = dirname(file);
  const before = `${basename(file)}.`;
  for (const name of readdirSync(directory).filter((one) => one.startsWith(before))) {
    const [, pid] = /^(\d+)\.part/.exec(name.slice(before.length)) ?? [];
    if (pid !== undefined && !isAlive(Number(pid))) rmSync(join(directory, name), { force: true });
  }
}

function* contents(
  dataDir: string,
  elsewhere: readonly string[],
  missing: string[],
): Generator<{ path: string; content: Buffer }> {
  for (const path of listKeptFiles(dataDir)) yield { path, content: readFileSync(join(dataDir, path)) };
  for (const path of elsewhere) {
    const stats = statSync(path, { throwIfNoEntry: false });
    const content = stats?.isFile() && stats.size <= maxFileBytes ? readable(path) : undefined;
    if (content) yield { path, content };
    else missing.push(path);
  }
}

function readable(path: string): Buffer | undefined {
  try {
    return readFileSync(path);
  } catch {
    return undefined;
  }
}

/** Refuses to replace a file that is no backup: a mistyped name must not cost a file. */
function requireReplaceable(file: string, name: string): void {
  if (!existsSync(file)) return;
  const refuse = () =>
    new DomainError('invalid_request', `${name} is there and is not a backup; give another name.`);
  if (!statSync(file).isFile()) throw refuse();
  using database = files.openFile(file, { readonly: true });
  if (!isBackup(database)) throw refuse();
}

async function flush(path: string): Promise<void> {
  await using handle = await open(path, 'r');
  await handle.sync();
}
