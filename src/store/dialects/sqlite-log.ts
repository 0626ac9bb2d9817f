/**
 * SQLite's write-ahead log, flushed by a thread of libuv.
 *
 * It has a descriptor of its own for that. A second one of the database file or of the -shm file would be a danger: closing
 * it would drop the locks that SQLite holds on them in this process (fcntl(2)). On the -wal file it has none
 * (https://sqlite.org/walformat.html#locks). While a connection is open, the file is not replaced.
 */
import { closeSync, fdatasync, openSync } from 'node:fs';

export interface Log {
  /** Resolves when all that was committed before is on disk. Where the disk fails, it never does. */
  flush(): Promise<void>;
  /** Resolves when nothing is being flushed. */
  close(): Promise<void>;
}

/** The log of a database whose connections are open. `onFailure` hears of a disk that fails. */
export function createLog(file: string, onFailure: (error: Error) => void): Log {
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
