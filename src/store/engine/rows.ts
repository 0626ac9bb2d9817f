/**
 * What most queries are: rows of one table that have these values in these columns, read or written. Each is compiled once for
 * its table and columns (`prepared`). Where a write fails, a later statement of its transaction or the commit may be what says so.
 */
import type { CompiledQuery, Insertable, Kysely } from 'kysely';
import { prepared } from './queries.ts';
import type { Schema } from './schema.ts';

type Table = keyof Schema;
type Column<T extends Table> = keyof Schema[T] & string;
type Where<T extends Table> = { [C in Column<T>]?: NonNullable<Schema[T][C]> };

type AnyRow = Record<string, string | number | null>;
type AnyTables = Kysely<Record<string, AnyRow>>;

/** As many as the code has tables and sets of columns. */
const queries = new Map<string, (db: Kysely<Schema>, ...args: object[]) => Promise<unknown[]>>();

async function ask(
  db: Kysely<Schema>,
  { verb, table, args }: { verb: string; table: string; args: object[] },
  build: (tables: AnyTables, table: string, args: AnyRow[]) => { compile(): CompiledQuery<unknown> },
): Promise<unknown[]> {
  const key = [verb, table, ...args.map((values) => Object.keys(values))].join(' ');
  const query =
    queries.get(key) ??
    prepared((any, ...given: object[]) => build(any as unknown as AnyTables, table, given as AnyRow[]));
  queries.set(key, query);
  return query(db, ...args);
}

/** Ordered by these columns, where they are given. */
export async function listRows<T extends Table>(
  db: Kysely<Schema>,
  table: T,
  where: Where<T>,
  ...order: Column<T>[]
): Promise<Schema[T][]> {
  const verb = `list by ${order} from`;
  const rows = await ask(db, { verb, table, args: [where] }, (tables, name, [values = {}]) => {
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
  await ask(db, { verb: 'insert into', table, args: [row] }, (tables, name, [values = {}]) =>
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
  await ask(db, { verb: `save by ${key} in`, table, args: [row] }, (tables, name, [values = {}]) => {
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
  const args = [where, change];
  await ask(db, { verb: 'update', table, args }, (tables, name, [values = {}, changed = {}]) => {
    const query = tables.updateTable(name).set(changed);
    return query.where((are) => are.and(values));
  });
}

export async function deleteRows<T extends Table>(
  db: Kysely<Schema>,
  table: T,
  where: Where<T>,
): Promise<void> {
  await ask(db, { verb: 'delete from', table, args: [where] }, (tables, name, [values = {}]) =>
    tables.deleteFrom(name).where((are) => are.and(values)),
  );
}
