/** Makes one backup as configured: writes and checks it, stores it, reads it back, and removes the oldest. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../lib/error-message.ts';
import { writeBackup } from '../../store/data-dir/backup.ts';
import { requireSpaceForCopies } from '../../store/data-dir/before-upgrade.ts';
import { noteKeptBackup } from '../../store/data-dir/last-backup.ts';
import { listBackups, removeBackup, storeBackup, sweep } from './directory.ts';
import { backupName, installationId, tooMany } from './names.ts';
import { withWorkDir } from './work.ts';

/** The part of the configuration that a backup needs. */
export interface KeepSettings {
  keep: number;
  to: string;
  /** A shell command that gets each backup; undefined: none. */
  after: string | undefined;
}

export interface KeepOptions {
  settings: KeepSettings;
  dataDir: string;
  madeAt: string;
  version: string;
  /** Files of the installation outside the data directory. */
  elsewhere: readonly string[];
  onProgress?: ((part: number) => void) | undefined;
  signal?: AbortSignal | undefined;
}

export interface Kept {
  file: string;
  bytes: number;
  /** Files that belong into the backup and could not be read. */
  missing: string[];
  removed: number;
  /** A sentence why older backups could not be removed; undefined where all went well. */
  notRemoved: string | undefined;
}

/** Throws a `DomainError` with a sentence; no unfinished file counts as a backup then. */
export async function keepBackup({ settings, dataDir, ...making }: KeepOptions): Promise<Kept> {
  const { to, keep, after } = settings;
  // First of all: a full disk takes no directory either. Space for two copies, as one is rewritten as the other.
  requireSpaceForCopies(dataDir, 2);
  return withWorkDir(dataDir, async (workDir) => {
    const id = installationId(dataDir);
    await sweep(to, id);
    // Not made in the target directory: SQLite's locks do not work on every mount.
    const copy = join(workDir, 'copy');
    const { missing } = await writeBackup(dataDir, copy, making);
    const name = backupName(id, making.madeAt);
    const file = join(to, name);
    const bytes = await storeBackup(copy, to, name, making.signal);
    rmSync(copy);
    noteKeptBackup(dataDir, { at: making.madeAt, file, bytes, awaits: after !== undefined });
    return { file, bytes, missing, ...(await removeOld(to, { id, keep, good: name })) };
  });
}

/** A failure here does not invalidate the new backup. */
async function removeOld(
  directory: string,
  options: { id: string; keep: number; good: string },
): Promise<Pick<Kept, 'removed' | 'notRemoved'>> {
  let removed = 0;
  try {
    for (const name of tooMany(await listBackups(directory), options)) {
      await removeBackup(directory, name);
      removed += 1;
    }
    return { removed, notRemoved: undefined };
  } catch (error) {
    return { removed, notRemoved: messageOf(error) };
  }
}
