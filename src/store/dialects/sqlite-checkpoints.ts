/**
 * Checkpoints: what the log holds goes into the database file, and the log begins anew. That flushes both several times,
 * so a connection on another thread does it (`sqlite-checkpoint-worker.ts`), which starts when it is first needed. Writes
 * wait meanwhile, or the log would never be all in the file; reads go on.
 */
import type { Worker } from 'node:worker_threads';
import { startWorker } from '../../lib/packaging.ts';
import type { StatementCache } from './sqlite-kysely.ts';

export interface Checkpoints {
  /** Begins one when the log is long; the connection must not be in a transaction. */
  begin(connection: StatementCache): void;
  /** Resolves when none is under way. */
  done(): Promise<void> | undefined;
  close(): Promise<void>;
}

export interface CheckpointResult {
  /** Of the error, as SQLite calls it; undefined where there was none. */
  code: string | undefined;
  message: string;
}

/** Pages: 4 MiB, as SQLite has it. */
const longLog = 1000;

/** Checkpoints of a database. `onFailure` hears of a disk that fails. */
export function createCheckpoints(file: string, onFailure: (error: Error) => void): Checkpoints {
  let worker: Worker | undefined;
  let settle: (result: CheckpointResult) => void = () => {};
  let running: Promise<void> | undefined;
  /** After one that could not empty the log, for a long reading goes on or the disk is full, not at every commit again. */
  let next = longLog;

  function start(): Worker {
    const thread = startWorker('store/dialects/sqlite-checkpoint-worker', { file });
    thread.on('message', (result: CheckpointResult) => settle(result)).on('error', onFailure);
    // Nobody waits for it alone.
    thread.unref();
    return thread;
  }

  async function run(): Promise<void> {
    worker ??= start();
    worker.ref();
    const { code, message } = await new Promise<CheckpointResult>((resolve) => {
      settle = resolve;
      worker?.postMessage('checkpoint');
    });
    worker.unref();
    if (!code?.startsWith('SQLITE_IOERR')) return;
    onFailure(new Error(message));
    await new Promise(() => {});
  }

  return {
    begin(connection) {
      const pages = logPages(connection);
      if (pages < longLog) next = longLog;
      if (pages < next || running) return;
      next = pages + longLog;
      running = run().finally(() => {
        running = undefined;
      });
    },
    done: () => running,
    async close() {
      await running;
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
