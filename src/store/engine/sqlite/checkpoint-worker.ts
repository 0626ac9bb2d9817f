/**
 * A thread that makes a checkpoint on each request, with a connection of its own. It must run in the same library of
 * SQLite as the other connections of this process, which then share their locks.
 */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import Database from 'better-sqlite3';
import type { CheckpointResult } from './checkpoints.ts';

if (parentPort) serve(parentPort, workerData as { file: string });

function serve(port: MessagePort, { file }: { file: string }): void {
  const database = new Database(file, { fileMustExist: true });
  // Flushes the log before the database file is written, the file before the log restarts, and the restarted log.
  database.pragma('synchronous = FULL');
  // The wait for old read transactions; writes wait as long.
  database.pragma('busy_timeout = 100');
  port.on('message', (what: 'restart' | 'truncate' | 'close') => {
    if (what !== 'close') return port.postMessage(checkpoint(database, what));
    database.close();
    port.close();
  });
}

function checkpoint(database: Database.Database, mode: 'restart' | 'truncate'): CheckpointResult {
  try {
    const [state] = database.pragma(`wal_checkpoint(${mode})`) as { busy: number }[];
    // The first commit into a restarted log flushes the log's header: this one does, and changes nothing.
    if (state?.busy !== 0) return { code: 'SQLITE_BUSY', message: 'the log is read' };
    database.pragma('user_version = 0');
    return { code: undefined, message: '' };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return { code, message };
  }
}
