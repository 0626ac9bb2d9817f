/** When the last backup of a data directory was made: a file of its own, for a backup changes nothing in the database. */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface LastBackup {
  /** RFC 3339. */
  at: string;
  file: string;
  bytes: number;
}

/** Notes a backup. Where that cannot be written, the backup is as good. */
export function noteBackup(dataDir: string, backup: LastBackup): void {
  const file = nameOf(dataDir);
  try {
    writeFileSync(`${file}.new`, JSON.stringify(backup), { mode: 0o600 });
    renameSync(`${file}.new`, file);
  } catch {
    // It would then look older than it is, which whoever watches it finds out.
  }
}

/** The last backup; undefined where none is known. */
export function readLastBackup(dataDir: string): LastBackup | undefined {
  try {
    const { at, file, bytes } = JSON.parse(readFileSync(nameOf(dataDir), 'utf8')) as LastBackup;
    return Number.isNaN(Date.parse(at)) ? undefined : { at, file, bytes };
  } catch {
    return undefined;
  }
}

function nameOf(dataDir: string): string {
  return join(dataDir, 'last-backup');
}
