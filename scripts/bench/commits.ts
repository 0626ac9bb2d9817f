/**
 * The reference for writes: `node commits.ts <JSON of CommitOrder>` has SQLite commit rows of random text one after the
 * other, as durably as the service does, and prints one `CommitResult`.
 */
import { randomBytes } from 'node:crypto';
import Database from 'better-sqlite3';
import { percentile } from './percentile.ts';
import { writtenBytes } from './usage.ts';

export interface CommitOrder {
  file: string;
  /** The length of a row's text. */
  bytes: number;
  seconds: number;
}

export interface CommitResult {
  perSecond: number;
  medianMs: number;
  /** Of files, each. */
  writtenBytes: number;
}

const { file, bytes, seconds } = JSON.parse(process.argv[2] ?? '') as CommitOrder;
const database = new Database(file);
database.pragma('journal_mode = WAL');
database.pragma('synchronous = FULL');
database.exec('create table if not exists row (id integer primary key, text text not null) strict');
// Outside of a transaction, a statement is one: it returns when the row is on disk.
const insert = database.prepare('insert into row (text) values (?)');
const times: number[] = [];
const before = writtenBytes('self');
const began = performance.now();
while (performance.now() - began < seconds * 1000) {
  const text = randomBytes(bytes / 2).toString('hex');
  const at = performance.now();
  insert.run(text);
  times.push(performance.now() - at);
}
const result: CommitResult = {
  perSecond: times.length / ((performance.now() - began) / 1000),
  medianMs: percentile(times, 0.5),
  writtenBytes: (writtenBytes('self') - before) / times.length,
};
database.close();
process.stdout.write(`${JSON.stringify(result)}\n`);
