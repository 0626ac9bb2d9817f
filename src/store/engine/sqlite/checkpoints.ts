/**
 * Brings commits to the disk on other threads.
 *
 * Checkpoints: the content of the log goes into the database file, and the log restarts. That flushes both several
 * times, so a connection on another thread does it (`checkpoint-worker.ts`), which starts when it is first needed.
 * Writes wait meanwhile, or the log would never be all in the file; reads go on.
 */
import { type BigIntStats, closeSync, fdatasync, openSync, statSync } from 'node:fs';
import type { Worker } from 'node:worker_threads';
import Database from 'better-sqlite3';
import { startWorker } from '../../../lib/packaging.ts';
import type { StatementCache } from './kysely.ts';

export interface Checkpoints {
  /** Begins a checkpoint when the log is long; the connection must not be in a transaction. */
  begin(connection: StatementCache): void;
  /** Makes a checkpoint that empties the log; false where that is read. The connection must be in no transaction. */
  empty(): Promise<boolean>;
  done(): Promise<void> | undefined;
  close(): Promise<void>;
}

export interface CheckpointResult {
  /** SQLite's code of the error; undefined where there was none. */
  code: string | undefined;
  message: string;
}

type OnFailure = (error: Error) => void;

/** SQLite's own limit with pages of 4 KiB. */
export const longLogBytes = 4 * 2 ** 20;

/** Checkpoints of a database, whose log is long from so many pages on. `onFailure` is called when the disk fails. */
export function createCheckpoints(file: string, longLog: number, onFailure: OnFailure): Checkpoints {
  const thread = checkpointThread(file, onFailure);
  let running: Promise<void> | undefined;
  /** Raised by each checkpoint: one that failed for a long read or a full disk is not repeated at every commit. */
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

/** Makes one checkpoint at a time, on a thread that starts with the first. */
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
    /** Resolves to whether all of the log was moved. */
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
      // Only once: its number may be another file's by the next time.
      if (descriptor !== undefined) closeSync(descriptor);
      descriptor = undefined;
    },
  };
}

/**
 * SQLite goes on writing into files that were removed, and these writes are gone when it closes them. In WAL mode it
 * never checks (its own check, SQLITE_FCNTL_HAS_MOVED, is for rollback journals). So this remembers the files as they
 * are now, and returns a check, at the cost of one stat(2) a file, which throws SQLite's error for a database that was
 * moved where a name leads to no file, or to another one.
 *
 * It is made before each commit that is answered. Files that are removed between it and the answer, some milliseconds,
 * are found by the next commit only.
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
