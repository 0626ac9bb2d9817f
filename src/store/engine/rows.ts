/**
 * The most common queries: reads and writes of one table's rows by values of columns. Each is compiled once for its
 * table and columns (`prepared`). A failed write may surface only in a later statement or the commit.
 */
import { type CompiledQuery, type Insertable, type Kysely, sql } from 'kysely';
import type { Schema } from '../generated/schema.ts';
import { prepared } from './queries.ts';

type Table = keyof Schema;
type Column<T extends Table> = keyof Schema[T] & string;
type Where<T extends Table> = Partial<Schema[T]>;

export type AnyRow = Record<string, string | number | null>;
type AnyTables = Kysely<Record<string, AnyRow>>;

/** The tables by name, where the code that asks knows only their names. */
export function tablesOf(db: Kysely<Schema>): AnyTables {
  return db as unknown as AnyTables;
}

/** Compiled queries: as many as the code has tables and sets of columns. */
const queries = new Map<string, (db: Kysely<Schema>, ...args: object[]) => Promise<unknown[]>>();

async function ask(
  db: Kysely<Schema>,
  { verb, table, where = {}, row = {} }: { verb: string; table: string; where?: object; row?: object },
  build: (
    tables: AnyTables,
    table: string,
    where: AnyRow,
    row: AnyRow,
  ) => { compile(): CompiledQuery<unknown> },
): Promise<unknown[]> {
  // `is null` is a part of the query, and no value that it is given.
  const nulls: string[] = [];
  let key = `${verb} ${table}`;
  for (const [column, value] of Object.entries(where)) {
    key += value === null ? ` ${column} null` : ` ${column}`;
    if (value === null) nulls.push(column);
  }
  key += ' set';
  for (const column in row) key += ` ${column}`;
  let query = queries.get(key);
  if (!query) {
    query = prepared((any, given: object, written: object) => {
      const conditions = { ...given, ...Object.fromEntries(nulls.map((column) => [column, null])) };
      return build(tablesOf(any), table, conditions, written as AnyRow);
    });
    queries.set(key, query);
  }
  return query(db, where, row);
}

/** The rows with these values, in `order`. */
export async function listRows<T extends Table>(
  db: Kysely<Schema>,
  table: T,
  where: Where<T>,
  ...order: Column<T>[]
): Promise<Schema[T][]> {
  const rows = await ask(db, { verb: `list by ${order} from`, table, where }, (tables, name, values) => {
    let query = tables.selectFrom(name).selectAll();
    query = query.where((are) => are.and(values));
    for (const column of order) query = query.orderBy(column);
    return query;
  });
  return rows as Schema[T][];
}

export async function findRow<T extends Table>(
  db: Kysely<Schema>,
  table: T,
  where: Where<T>,
): Promise<Schema[T] | undefined> {
  return (await listRows(db, table, where))[0];
}

export async function insertRow<T extends Table>(
  db: Kysely<Schema>,
  table: T,
  row: Insertable<Schema[T]>,
): Promise<void> {
  await ask(db, { verb: 'insert into', table, row }, (tables, name, _, values) =>
    tables.insertInto(name).values(values),
  );
}

/** Inserts a row, or updates the one that has the same values in the columns `key`. */
export async function saveRow<T extends Table>(
  db: Kysely<Schema>,
  table: T,
  key: readonly Column<T>[],
  row: Insertable<Schema[T]>,
): Promise<void> {
  await ask(db, { verb: `save by ${key} in`, table, row }, (tables, name, _, values) => {
    const others = Object.entries(values).filter(([column]) => !key.some((one) => one === column));
    const change = Object.fromEntries(others);
    const query = tables.insertInto(name).values(values);
    return query.onConflict((conflict) => conflict.columns([...key]).doUpdateSet(change));
  });
}

export async function updateRows<T extends Table>(
  db: Kysely<Schema>,
  table: T,
  where: Where<T>,
  change: Partial<Schema[T]>,
): Promise<void> {
  await ask(db, { verb: 'update', table, where, row: change }, (tables, name, values, changed) => {
    const query = tables.updateTable(name).set(changed);
    return query.where((are) => are.and(values));
  });
}

export async function deleteRows<T extends Table>(
  db: Kysely<Schema>,
  table: T,
  where: Where<T>,
): Promise<void> {
  await ask(db, { verb: 'delete from', table, where }, (tables, name, values) =>
    tables.deleteFrom(name).where((are) => are.and(values)),
  );
}

/** Deletes rows that have this value or less in a column, at most so many; returns how many. */
export async function deleteUpTo<T extends Table>(
  db: Kysely<Schema>,
  table: T,
  key: readonly Column<T>[],
  { column, end, most }: { column: Column<T>; end: string | number; most: number },
): Promise<number> {
  const tables = tablesOf(db);
  const name: string = table;
  const old = tables
    .selectFrom(name)
    .select([...key])
    .limit(most)
    .where(sql.ref(column), '<=', end);
  const keyRow = sql`(${sql.join(key.map((one) => sql.ref(one)))})`;
  const deleted = tables.deleteFrom(name).where(sql<boolean>`${keyRow} in ${old}`);
  return Number((await deleted.executeTakeFirstOrThrow()).numDeletedRows);
}

type CamelCase<Name extends string> = Name extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<CamelCase<Rest>>}`
  : Name;

/** Converts a row into fields of a type of the domain: its columns in camel case. */
export function inCamelCase<Row extends object>(row: Row) {
  const fields: Record<string, unknown> = {};
  for (const [column, value] of Object.entries(row)) fields[fieldNameOf(column)] = value;
  return fields as { [Name in keyof Row & string as CamelCase<Name>]: Row[Name] };
}

const fieldNames = new Map<string, string>();

function fieldNameOf(column: string): string {
  let name = fieldNames.get(column);
  if (name === undefined) {
    name = column.replaceAll(/_(.)/g, (_, letter) => letter.toUpperCase());
    fieldNames.set(column, name);
  }
  return name;
}
