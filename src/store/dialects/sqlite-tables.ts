/** What tables a database of SQLite has, which are the same on every engine. */
import { type Kysely, sql } from 'kysely';
import type { Schema } from '../schema.ts';
import type { SchemaObjects } from './dialect.ts';

export interface TableShape {
  name: string;
  columns: readonly string[];
  /** The columns of its primary key, in order. */
  key: readonly string[];
  /** The tables that its rows refer to. */
  references: readonly string[];
}

export async function listTableShapes(db: Kysely<Schema>): Promise<TableShape[]> {
  const tables = await sql<{ name: string }>`
    select name from sqlite_schema where type = 'table' and name not like 'sqlite_%' order by name`.execute(
    db,
  );
  const shapes: TableShape[] = [];
  for (const { name } of tables.rows) {
    const columns = await sql<{ name: string; pk: number }>`
      select name, pk from pragma_table_info(${name}) order by cid`.execute(db);
    const references = await sql<{ other: string }>`
      select distinct "table" as other from pragma_foreign_key_list(${name})`.execute(db);
    const key = columns.rows.filter(({ pk }) => pk > 0).sort((a, b) => a.pk - b.pk);
    shapes.push({
      name,
      columns: columns.rows.map((column) => column.name),
      key: key.map((column) => column.name),
      references: references.rows.map(({ other }) => other).filter((other) => other !== name),
    });
  }
  return shapes;
}

/** What a database of SQLite has that statements of migrations made, which is the same on every engine. */
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
