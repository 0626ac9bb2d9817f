/**
 * Copies what is in the tables of one database into those of another, whichever engines they are: page by page in the order of
 * primary keys, so that nothing but a page is in memory, and each table behind those that it refers to.
 */
import { type Kysely, sql, type Transaction } from 'kysely';
import { DomainError } from '../domain/error.ts';
import { withoutNuls } from '../domain/nul.ts';
import { isDatabaseError, type TableShape } from './engine.ts';
import { faultMessage } from './fault.ts';
import type { Schema } from './schema.ts';

/** What is of one database and its servers, and would be wrong in another. */
const left = new Set([
  'console_files',
  'kysely_migration',
  'kysely_migration_lock',
  'leases',
  'managed_hosts',
  'schema_support',
  'secrets',
  'server_keys',
  'servers',
]);
/** What a new database has rows in, besides the system's own person. */
const filled = new Set(['counters', 'users']);
/** Triggers write to it while others are copied. */
const last = 'member_versions';
const pageSize = 250;

type Row = Record<string, unknown>;
type AnyTables = Kysely<Record<string, Row>>;

/** The tables to copy, each behind those that it refers to. */
export function copyOrder(shapes: readonly TableShape[]): TableShape[] {
  const waiting = new Map(
    shapes.filter(({ name }) => !left.has(name) && name !== last).map((shape) => [shape.name, shape]),
  );
  const ordered: TableShape[] = [];
  while (waiting.size > 0) {
    const ready = [...waiting.values()].filter(
      ({ references }) => !references.some((one) => waiting.has(one)),
    );
    if (ready.length === 0) throw new Error(`tables refer to each other: ${[...waiting.keys()].join(', ')}`);
    for (const shape of ready) {
      ordered.push(shape);
      waiting.delete(shape.name);
    }
  }
  return [...ordered, ...shapes.filter(({ name }) => name === last)];
}

/** A table in which somebody has written; undefined where the database is as new. */
export async function findWrittenTable(
  db: Kysely<Schema>,
  shapes: readonly TableShape[],
): Promise<string | undefined> {
  const tables = db as unknown as AnyTables;
  const users = await db.selectFrom('users').select('id').where('kind', '!=', 'system').limit(1).execute();
  if (users.length > 0) return 'users';
  for (const { name } of shapes) {
    if (filled.has(name) || (left.has(name) && name !== 'secrets')) continue;
    if ((await tables.selectFrom(name).select(sql<number>`1`.as('one')).limit(1).execute()).length > 0)
      return name;
  }
  return undefined;
}

export interface CopyProgress {
  table: string;
  /** Rows so far, of all tables together. */
  rows: number;
  ofRows: number;
}

/**
 * Copies the tables. `to` is as new, and what is there is replaced. Resolves to the number of rows of each. Throws where what
 * arrived is not what is there.
 */
export async function copyTables(
  from: Kysely<Schema>,
  to: Transaction<Schema>,
  {
    shapes,
    mend,
    onProgress,
  }: {
    shapes: readonly TableShape[];
    /** Rows of a table as the target can store them. */
    mend(table: string, page: readonly Row[]): Row[];
    onProgress(progress: CopyProgress): void;
  },
): Promise<Map<string, number>> {
  const [source, target] = [from as unknown as AnyTables, to as unknown as AnyTables];
  const counts = new Map<string, number>();
  for (const { name } of shapes) counts.set(name, await countRows(source, name));
  const ofRows = [...counts.values()].reduce((sum, count) => sum + count, 0);
  let rows = 0;
  for (const { name } of shapes.toReversed()) await target.deleteFrom(name).execute();
  for (const shape of shapes) {
    const { name } = shape;
    if (name === last) await target.deleteFrom(name).execute();
    for await (const page of pagesOf(source, shape)) {
      await target
        .insertInto(name)
        .values(mend(name, page))
        .execute()
        .catch((error: unknown) => {
          throw refusedRow(name, error);
        });
      rows += page.length;
      onProgress({ table: name, rows, ofRows });
    }
  }
  for (const [name, count] of counts) {
    const arrived = await countRows(target, name);
    if (arrived !== count) throw new Error(`${arrived} of ${count} rows of ${name} arrived`);
  }
  return counts;
}

/** A row that the source has and the target refuses, such as one that refers to nothing. */
function refusedRow(table: string, error: unknown): unknown {
  if (!isDatabaseError(error) || faultMessage(error) !== undefined) return error;
  const message = `A row of ${table} cannot be copied: ${(error as Error).message}. Nothing was copied; \`andromeda doctor\` on the old database may say more.`;
  return new DomainError('invalid_state', message, { cause: error });
}

/**
 * Resolves to the number of rows where the target has exactly what a copy of the source would put there; undefined where
 * anything differs.
 */
export async function compareTables(
  from: Kysely<Schema>,
  to: Kysely<Schema>,
  shapes: readonly TableShape[],
): Promise<number | undefined> {
  const [source, target] = [from as unknown as AnyTables, to as unknown as AnyTables];
  let rows = 0;
  for (const shape of shapes) {
    const there = pagesOf(target, shape);
    for await (const page of pagesOf(source, shape)) {
      const { value: arrived } = await there.next();
      if (!arrived || arrived.length !== page.length) return undefined;
      if (!page.every((row, at) => isCopyOf(arrived[at], row, shape))) return undefined;
      rows += page.length;
    }
    if (!(await there.next()).done) return undefined;
  }
  return rows;
}

/** An entry of the trail that had NUL has a redaction of the time when it was copied (`copy-nul.ts`). */
function isCopyOf(arrived: Row | undefined, row: Row, { name, columns }: TableShape): boolean {
  const values = columns.map((column) => row[column]);
  const stored = withoutNuls(values);
  const isRedacted = name === 'audit_entries' && stored !== values;
  return columns.every(
    (column, at) => arrived?.[column] === stored[at] || (isRedacted && column === 'redaction'),
  );
}

async function* pagesOf(source: AnyTables, { name, columns, key }: TableShape): AsyncGenerator<Row[]> {
  const keyRow = sql`(${sql.join(key.map((column) => sql.ref(column)))})`;
  let after: Row | undefined;
  for (;;) {
    let query = source.selectFrom(name).select(columns).where(isCopied(name)).limit(pageSize);
    for (const column of key) query = query.orderBy(column);
    if (after) {
      const values = sql`(${sql.join(key.map((column) => after?.[column]))})`;
      query = query.where(sql<boolean>`${keyRow} > ${values}`);
    }
    const page = await query.execute();
    after = page.at(-1);
    if (page.length > 0) yield page;
    if (page.length < pageSize) return;
  }
}

async function countRows(db: AnyTables, name: string): Promise<number> {
  const query = db.selectFrom(name).select(({ fn }) => fn.countAll<number>().as('count'));
  return Number((await query.where(isCopied(name)).executeTakeFirstOrThrow()).count);
}

/** What there was of secrets stays with the secrets. */
function isCopied(name: string) {
  return name === 'counters' ? sql<boolean>`name not like 'secret %'` : sql<boolean>`1 = 1`;
}
