/**
 * What brings commits to the disk on other threads.
 *
 * Checkpoints: what the log holds goes into the database file, and the log begins anew. That flushes both several times,
 * so a connection on another thread does it (`checkpoint-worker.ts`), which starts when it is first needed. Writes
 * wait meanwhile, or the log would never be all in the file; reads go on.
 */
import { type BigIntStats, closeSync, fdatasync, openSync, statSync } from 'node:fs';
import type { Worker } from 'node:worker_threads';
import Database from 'better-sqlite3';
import { startWorker } from '../../../lib/packaging.ts';
import type { StatementCache } from './kysely.ts';

export interface Checkpoints {
  /** Begins one when the log is long; the connection must not be in a transaction. */
  begin(connection: StatementCache): void;
  /** Makes one that leaves nothing in the log; false where that is read. The connection must not be in a transaction. */
  empty(): Promise<boolean>;
  done(): Promise<void> | undefined;
  close(): Promise<void>;
}

export interface CheckpointResult {
  /** Of the error, as SQLite calls it; undefined where there was none. */
  code: string | undefined;
  message: string;
}

type OnFailure = (error: Error) => void;

/** As SQLite has it with pages of 4 KiB. */
export const longLogBytes = 4 * 2 ** 20;

/** Checkpoints of a database, whose log is long from so many pages on. `onFailure` is called when the disk fails. */
export function createCheckpoints(file: string, longLog: number, onFailure: OnFailure): Checkpoints {
  const thread = checkpointThread(file, onFailure);
  let running: Promise<void> | undefined;
  /** After one that could not empty the log, for a long reading goes on or the disk is full, not at every commit again. */
  let next = longLog;

  function begin(mode: 'restart' | 'truncate'): Promise<boolean> {
    const outcome = thread.run(mode);
    running = outcome.then(() => {
      running = undefined;
    });
    return outcome;
  }

  return {
    begin(connection) {
      const pages = logPages(connection);
      if (pages < longLog) next = longLog;
      if (pages < next || running) return;
      next = pages + longLog;
      void begin('restart');
    },
    async empty() {
      while (running) await running;
      return begin('truncate');
    },
    done: () => running,
    async close() {
      await running;
      await thread.close();
    },
  };
}

/** One at a time, on a thread that starts with the first. */
function checkpointThread(file: string, onFailure: OnFailure) {
  let worker: Worker | undefined;
  let settle: (result: CheckpointResult) => void = () => {};

  function start(): Worker {
    const thread = startWorker('store/engine/sqlite/checkpoint-worker', { file });
    thread.on('message', (result: CheckpointResult) => settle(result)).on('error', onFailure);
    // The idle thread does not keep the process alive.
    thread.unref();
    return thread;
  }

  return {
    /** Whether all of it was done. */
    async run(mode: 'restart' | 'truncate'): Promise<boolean> {
      worker ??= start();
      worker.ref();
      const { code, message } = await new Promise<CheckpointResult>((resolve) => {
        settle = resolve;
        worker?.postMessage(mode);
      });
      worker.unref();
      if (!code?.startsWith('SQLITE_IOERR')) return code === undefined;
      onFailure(new Error(message));
      return new Promise(() => {});
    },
    async close() {
      if (!worker) return;
      const ended = new Promise((resolve) => worker?.once('exit', resolve));
      worker.ref();
      worker.postMessage('close');
      await ended;
    },
  };
}

function logPages(connection: StatementCache): number {
  const state = connection.prepare('pragma wal_checkpoint(noop)').get() as { log: number };
  return state.log;
}

export interface Log {
  /** Resolves when all that was committed before is on disk. Where the disk fails, it never does. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

/**
 * SQLite's write-ahead log, flushed by a thread of libuv, while its connections are open. `onFailure` is called when the disk fails.
 *
 * It has a descriptor of its own for that. A second one of the database file or of the -shm file would be a danger: closing
 * it would drop the locks that SQLite holds on them in this process (fcntl(2)). On the -wal file it has none
 * (https://sqlite.org/walformat.html#locks). While a connection is open, the file is not replaced.
 */
export function createLog(file: string, onFailure: OnFailure): Log {
  let descriptor: number | undefined = openSync(`${file}-wal`, 'r');
  let flushing: Promise<void> | undefined;
  return {
    flush() {
      flushing = new Promise((resolve, reject) => {
        if (descriptor === undefined) return reject(new Error('the database is closed'));
        // Trying again would be of no use: Linux takes pages that it could not write for written (fsync(2)).
        fdatasync(descriptor, (error) => (error ? onFailure(error) : resolve()));
      });
      return flushing;
    },
    async close() {
      await flushing;
      // Once: its number may be another file's by the next time.
      if (descriptor !== undefined) closeSync(descriptor);
      descriptor = undefined;
    },
  };
}

/**
 * SQLite goes on in files that were removed, and what it writes there is gone when they are closed. In WAL mode it never looks (its
 * own check, SQLITE_FCNTL_HAS_MOVED, is for rollback journals). So this
 * takes files as they are now. Returns a check, at the cost of one stat(2) a file, which throws SQLite's error for a database that
 * was moved where a name leads to no file, or to another one.
 *
 * It is made before each commit that is answered. Files that go after it and before the answer, some milliseconds, are
 * found by the next commit only.
 */
export function watchFiles(files: readonly string[]): () => void {
  const opened = files.map((file) => ({ file, stats: statOf(file) }));
  return () => {
    for (const { file, stats } of opened) {
      const found = statOf(file);
      if (found && found.ino === stats?.ino && found.dev === stats.dev) continue;
      throw new Database.SqliteError(`${file} is not the file that was opened`, 'SQLITE_READONLY_DBMOVED');
    }
  };
}

function statOf(file: string): BigIntStats | undefined {
  try {
    return statSync(file, { bigint: true });
  } catch {
    return undefined;
  }
}
