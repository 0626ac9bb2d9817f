/**
 * Notes about the last backup of a data directory, failures of the service's own backups, and drills: a file each, for
 * a backup changes nothing in the database.
 */
import { chownSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { writeWhole } from '../../lib/whole-file.ts';

export interface LastBackup {
  at: string;
  file: string;
  bytes: number;
}

/** A backup that lies where the configuration says, whole and verified. */
export interface KeptBackup extends LastBackup {
  /** Whether the command after it has yet to succeed. */
  awaits: boolean;
}

export interface BackupFailure {
  at: string;
  failures: number;
  message: string;
  /** The backup that is in place, where the command after it failed. */
  file?: string;
}

export interface Drill {
  at: string;
  file: string;
  /** Whether a restore would bring the installation back as it was. */
  isGood: boolean;
}

export const noteDrill = writes<Drill>('last-drill');
/** The last drill on this host; undefined where none is known. */
export const readDrill = reads<Drill>('last-drill');

/** Notes a backup. Where the note cannot be written, the backup is as good. */
export const noteBackup = writes<LastBackup>('last-backup');
/** The last backup, however it was made; undefined where none is known. */
export const readLastBackup = reads<LastBackup>('last-backup');

export const noteBackupFailure = writes<BackupFailure>('backup-failure');
export const readBackupFailure = reads<BackupFailure>('backup-failure');

const writeKeptBackup = writes<KeptBackup>('last-kept-backup');
export const readKeptBackup = reads<KeptBackup>('last-kept-backup');

/** Notes a kept backup, and removes the note of a failure; where the command failed, only its success does that. */
export function noteKeptBackup(dataDir: string, backup: KeptBackup): void {
  const { at, file, bytes, awaits } = backup;
  noteBackup(dataDir, { at, file, bytes });
  writeKeptBackup(dataDir, backup);
  if (!awaits || readBackupFailure(dataDir)?.file === undefined)
    rmSync(join(dataDir, 'backup-failure'), { force: true });
}

function writes<Note extends object>(name: string) {
  return (dataDir: string, content: Note): void => {
    try {
      const file = join(dataDir, name);
      writeWhole(file, JSON.stringify(content));
      // A rehearsal by root is read by the service.
      const { uid, gid } = statSync(dataDir);
      if (process.getuid?.() === 0) chownSync(file, uid, gid);
    } catch {
      // The last backup then looks older than it is, which monitoring of its age shows.
    }
  };
}

function reads<Note extends { at: string }>(name: string) {
  return (dataDir: string): Note | undefined => {
    try {
      const note = JSON.parse(readFileSync(join(dataDir, name), 'utf8')) as Note;
      return Number.isNaN(Date.parse(note.at)) ? undefined : note;
    } catch {
      return undefined;
    }
  };
}
