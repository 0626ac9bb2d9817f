/**
 * Databases of SQLite as files: backups, copies, locks, and read-only views while other processes use them. All calls but `copy`
 * are synchronous.
 */
import { closeSync, existsSync, openSync, readFileSync, readSync, statSync } from 'node:fs';
import Database from 'better-sqlite3';
import { type Kysely, sql } from 'kysely';
import type { Schema } from '../../generated/schema.ts';
import type { CopyOptions, SchemaObjects } from '../dialect.ts';
import { databaseFault } from './fault.ts';

export type DatabaseFile = ReturnType<typeof openFile>;
export type DatabaseView = ReturnType<typeof viewOf>;

/** Bytes of a step of a copy; between two steps, other work of this process goes on. */
const bytesPerStep = 4 * 2 ** 20;

/**
 * Sets pages of 1 KiB for a file that is new, or that a database is compacted into. With SQLite's own 4 KiB, the
 * registration of a key writes 74 kB instead of 31, and reads take the same (within 5 %). Existing files stay as they
 * are: VACUUM in place would leave the write-ahead log, need its size again, and delay the start.
 */
export function usePages(database: Database.Database): void {
  database.pragma('page_size = 1024');
}

export function pageBytesOf(database: Database.Database): number {
  return database.pragma('page_size', { simple: true }) as number;
}

/** Opens a file that is a whole database by itself, and that no other process has open; what is removed from it leaves no trace in it. */
export function openFile(file: string, { readonly } = { readonly: false }) {
  const database = new Database(file, { readonly });
  if (!readonly) database.pragma('secure_delete = on');
  return {
    run: (sql: string, ...values: unknown[]) => void database.prepare(sql).run(...values),
    /** Reads rows one after the other, so that not all of them need be in memory. */
    rows: <Row>(sql: string): Iterable<Row> => database.prepare<[], Row>(sql).iterate(),
    /** All of it or nothing, and on disk when this returns. */
    transaction(body: () => void): void {
      // Without a WAL it is one file, which another program can read where it may not write.
      database.pragma('journal_mode = delete');
      database.pragma('synchronous = full');
      database.transaction(body)();
    },
    /** The application ID that `setKind` wrote; undefined where the file is no database. */
    kind(): number | undefined {
      try {
        return Number(database.pragma('application_id', { simple: true }));
      } catch (error) {
        if (error instanceof Database.SqliteError && error.code === 'SQLITE_NOTADB') return undefined;
        throw error;
      }
    },
    setKind: (kind: number) => void database.pragma(`application_id = ${kind}`),
    /** Whether all pages and references are intact. */
    isWhole: () =>
      database.pragma('integrity_check(1)', { simple: true }) === 'ok' &&
      (database.pragma('foreign_key_check') as unknown[]).length === 0,
    /** Writes its content to an empty file, without traces of deleted data. */
    compactInto(target: string): void {
      usePages(database);
      database.prepare('vacuum into ?').run(target);
    },
    [Symbol.dispose]: () => void database.close(),
  };
}

/** Copies a database that others use, as it was at one instant. Their commits meanwhile wait for nothing. */
export async function copy(from: string, to: string, { onProgress, signal }: CopyOptions): Promise<void> {
  const database = new Database(from, { fileMustExist: true });
  try {
    database.pragma('busy_timeout = 5000');
    // A read transaction holds one snapshot: without it, a copy restarts whenever the service writes.
    database.exec('begin');
    database.prepare('select count(*) from sqlite_master').get();
    const pagesPerStep = bytesPerStep / pageBytesOf(database);
    await database.backup(to, {
      progress({ totalPages, remainingPages }) {
        signal?.throwIfAborted();
        onProgress?.(totalPages === 0 ? 0 : 1 - remainingPages / totalPages);
        return pagesPerStep;
      },
    });
    database.exec('commit');
  } finally {
    database.close();
  }
}

/**
 * Locks a file until released or until this process ends however it ends: the lock is the operating system's.
 * Undefined where another process holds it.
 */
export function lock(file: string): (() => void) | undefined {
  const database = new Database(file, { timeout: 0 });
  try {
    database.pragma('journal_mode = MEMORY');
    database.exec('begin exclusive');
  } catch (error) {
    database.close();
    if (databaseFault(error) !== 'held') throw error;
    return undefined;
  }
  return () => void database.close();
}

export function version(): string {
  const database = new Database(':memory:');
  const found = database.prepare<[], string>('select sqlite_version()').pluck().get();
  database.close();
  return found ?? 'unknown';
}

/** Larger files are not read into memory. */
const mostBytes = 512 * 2 ** 20;
/** The header of every database (https://sqlite.org/fileformat.html#the_database_header). */
const headerBytes = 100;
/** Faults of one table beyond these say nothing new. */
const mostFaults = 5;

/**
 * Whether a file begins as every database (https://sqlite.org/fileformat.html#magic_header_string). One that this
 * process may have open is not opened here: that would end its locks (https://sqlite.org/howtocorrupt.html).
 */
export function isDatabase(file: string): boolean {
  if (existsSync(`${file}-wal`)) return true;
  const head = Buffer.alloc(16);
  const fd = openSync(file, 'r');
  try {
    readSync(fd, head);
  } finally {
    closeSync(fd);
  }
  return head.toString('latin1') === 'SQLite format 3\0';
}

/**
 * Opens a view of a database that other processes may use. With `unchanged`, nothing is written, not even next to the file;
 * undefined where that is not possible.
 */
export function view(file: string, { unchanged }: { unchanged: boolean }): DatabaseView | undefined {
  const database = unchanged ? openUnchanged(file) : new Database(file, { readonly: true });
  return database && viewOf(database);
}

function viewOf(database: Database.Database) {
  database.pragma('busy_timeout = 5000');
  return {
    rows: <Row>(sql: string, ...values: unknown[]) => database.prepare<unknown[], Row>(sql).all(...values),
    tables: () =>
      database
        .prepare<[], string>("select name from sqlite_schema where type = 'table' order by name")
        .pluck()
        .all(),
    /** The first few faults of a table, its indexes and its references, in the engine's own text. */
    faultsOf: (table: string) => faultsOf(database, table),
    [Symbol.dispose]: () => void database.close(),
  };
}

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
 * While no process has an SQLite database in WAL mode open, opening it, even read-only, leaves two files next to it (-wal, -shm).
 * But then the whole database is in the file itself, and a copy in memory will do.
 */
function openUnchanged(file: string): Database.Database | undefined {
  if (existsSync(`${file}-wal`)) return new Database(file, { readonly: true });
  if (isTooLarge(file)) return undefined;
  const bytes = readFileSync(file);
  if (bytes.length < headerBytes) return undefined;
  // The write and read versions of the format, of which 1 is that without WAL.
  bytes.writeUInt8(1, 18);
  bytes.writeUInt8(1, 19);
  return new Database(bytes);
}

/** Whether a file is too large for a view with `unchanged`. */
export function isTooLarge(file: string): boolean {
  return !existsSync(`${file}-wal`) && statSync(file).size > mostBytes;
}

export interface TableShape {
  name: string;
  columns: readonly string[];
  /** The columns of its primary key, in order. */
  key: readonly string[];
}

/** The tables in the order in which they were made. */
export async function listTableShapes(db: Kysely<Schema>): Promise<TableShape[]> {
  const tables = await sql<{ name: string }>`
    select name from sqlite_schema where type = 'table' and name not like 'sqlite_%' order by rowid`.execute(
    db,
  );
  const shapes: TableShape[] = [];
  for (const { name } of tables.rows) {
    const columns = await sql<{ name: string; pk: number }>`
      select name, pk from pragma_table_info(${name}) order by cid`.execute(db);
    const key = columns.rows.filter(({ pk }) => pk > 0).sort((a, b) => a.pk - b.pk);
    shapes.push({
      name,
      columns: columns.rows.map((column) => column.name),
      key: key.map((column) => column.name),
    });
  }
  return shapes;
}

/** The objects in a database of SQLite that statements of migrations made, which are the same on every engine. */
export async function listSchemaObjects(db: Kysely<Schema>): Promise<SchemaObjects> {
  const named = async (type: 'index' | 'trigger') => {
    const { rows } = await sql<{ name: string }>`
      select name from sqlite_schema where type = ${type} and sql is not null`.execute(db);
    return new Set(rows.map(({ name }) => name));
  };
  const shapes = await listTableShapes(db);
  return {
    tables: new Map(shapes.map(({ name, columns }) => [name, columns])),
    indexes: await named('index'),
    triggers: await named('trigger'),
  };
}
