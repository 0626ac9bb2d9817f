/** Views of a database of SQLite from outside of the service: read-only, beside whoever uses it. */
import { closeSync, existsSync, openSync, readFileSync, readSync, statSync } from 'node:fs';
import Database from 'better-sqlite3';
import type { DatabaseView } from './dialect.ts';
import { databaseFault } from './sqlite-fault.ts';

/** More is not read into memory. */
const mostBytes = 512 * 2 ** 20;
/** Faults of one table beyond these say nothing new. */
const mostFaults = 5;

/** Whether a file begins as every database does (https://sqlite.org/fileformat.html#magic_header_string). */
export function isDatabase(file: string): boolean {
  const head = Buffer.alloc(16);
  const fd = openSync(file, 'r');
  try {
    readSync(fd, head);
  } finally {
    closeSync(fd);
  }
  return head.toString('latin1') === 'SQLite format 3\0';
}

export function view(file: string, { unchanged }: { unchanged: boolean }): DatabaseView | undefined {
  const database = unchanged ? openUnchanged(file) : new Database(file, { readonly: true });
  if (!database) return undefined;
  database.pragma('busy_timeout = 5000');
  return {
    rows: <Row>(sql: string, ...values: unknown[]) => database.prepare<unknown[], Row>(sql).all(...values),
    tables: () =>
      database
        .prepare<[], string>("select name from sqlite_schema where type = 'table' order by name")
        .pluck()
        .all(),
    faultsOf: (table) => faultsOf(database, table),
    close: () => void database.close(),
  };
}

/** What is wrong with one table, its indexes and what it refers to. */
function faultsOf(database: Database.Database, table: string): string[] {
  const name = `"${table.replaceAll('"', '""')}"`;
  try {
    const found = database.pragma(`integrity_check(${name})`) as { integrity_check: string }[];
    const faults = found.map((row) => row.integrity_check).filter((text) => text !== 'ok');
    const references = database.pragma(`foreign_key_check(${name})`) as { rowid: number; parent: string }[];
    return [
      ...faults,
      ...references.map(({ rowid, parent }) => `row ${rowid} refers to nothing in ${parent}`),
    ].slice(0, mostFaults);
  } catch (error) {
    if (databaseFault(error) !== 'damaged') throw error;
    return [(error as Error).message];
  }
}

/**
 * While nobody has a database of SQLite open in WAL mode, to open it leaves two files beside it, also read-only. Then all of
 * it is in the file itself, and a copy in memory will do.
 */
function openUnchanged(file: string): Database.Database | undefined {
  if (existsSync(`${file}-wal`)) return new Database(file, { readonly: true });
  if (statSync(file).size > mostBytes) return undefined;
  const bytes = readFileSync(file);
  // The versions of the format, of which 1 is that without WAL.
  bytes.writeUInt8(1, 18);
  bytes.writeUInt8(1, 19);
  return new Database(bytes);
}
