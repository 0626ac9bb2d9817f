/** Whether the migrations make the same of a PostgreSQL as of SQLite's file. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { openStore } from '../../../src/store/data-dir/open-store.ts';
import { temporaryDirectory } from '../../support/directory.ts';
import { postgres, test, usePostgres } from './server.ts';

usePostgres();

/** Each gives lines of text. Kysely's own tables, and the two that PostgreSQL alone has, are left out. */
const ofSqlite = {
  columns: `
    select t.name || '.' || c.name || ' ' || lower(c.type) || iif(c."notnull", ' not null', '')
      || coalesce(' default ' || c.dflt_value, '')
    from sqlite_schema t, pragma_table_info(t.name) c where t.type = 'table' and t.name not like 'kysely%'`,
  primaryKeys: `
    select t.name || ' ' || group_concat(c.name order by c.pk)
    from sqlite_schema t, pragma_table_info(t.name) c
    where t.type = 'table' and t.name not like 'kysely%' and c.pk > 0 group by t.name`,
  unique: `
    select t.name || ' ' || (select group_concat(name order by seqno) from pragma_index_info(i.name))
    from sqlite_schema t, pragma_index_list(t.name) i
    where t.type = 'table' and t.name not like 'kysely%' and i.origin = 'u'`,
  references: `
    select t.name || ' ' || group_concat(f."from" order by f.seq) || ' to ' || f."table" || ' '
      || group_concat(f."to" order by f.seq)
    from sqlite_schema t, pragma_foreign_key_list(t.name) f where t.type = 'table' group by t.name, f.id`,
  indexes: `
    select i.tbl_name || ' ' || i.name || ' ' || l."unique" || ' ' || l.partial || ' '
      || (select group_concat(name order by seqno) from pragma_index_info(i.name))
    from sqlite_schema i, pragma_index_list(i.tbl_name) l
    where i.type = 'index' and l.name = i.name and i.sql is not null`,
  triggers: `select tbl_name || ' ' || name from sqlite_schema where type = 'trigger'`,
};

const own = `relnamespace = (select oid from pg_namespace where nspname = 'same') and relkind = 'r'
  and relname not like 'kysely%' and relname not in ('store_version', 'store_channel')`;
const names = (columns: string, table: string) => `(
  select string_agg(a.attname, ',' order by k.at) from unnest(${columns}) with ordinality as k (number, at)
  join pg_attribute a on a.attrelid = ${table} and a.attnum = k.number)`;
const constraints = (type: string) => `
  select t.relname || ' ' || ${names('c.conkey', 't.oid')} as line
  from pg_constraint c join pg_class t on t.oid = c.conrelid where ${own} and c.contype = '${type}'`;
const ofPostgres: Record<keyof typeof ofSqlite, string> = {
  columns: `
    select t.relname || '.' || a.attname || ' ' || replace(format_type(a.atttypid, a.atttypmod), 'bigint', 'integer')
      || case when a.attnotnull then ' not null' else '' end
      || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '') as line
    from pg_class t join pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped
    left join pg_attrdef d on d.adrelid = t.oid and d.adnum = a.attnum where ${own}`,
  primaryKeys: constraints('p'),
  unique: constraints('u'),
  references: `
    select t.relname || ' ' || ${names('c.conkey', 't.oid')} || ' to ' || o.relname || ' '
      || ${names('c.confkey', 'o.oid')} as line
    from pg_constraint c join pg_class o on o.oid = c.confrelid
    join (select oid, relname from pg_class where ${own}) t on t.oid = c.conrelid where c.contype = 'f'`,
  indexes: `
    select t.relname || ' ' || n.relname || ' ' || i.indisunique::int || ' ' || (i.indpred is not null)::int || ' '
      || ${names('i.indkey::int[]', 't.oid')} as line
    from pg_index i join pg_class n on n.oid = i.indexrelid
    join (select oid, relname from pg_class where ${own}) t on t.oid = i.indrelid
    where not exists (select 1 from pg_constraint c where c.conindid = n.oid and c.contype in ('p', 'u'))`,
  triggers: `
    select t.relname || ' ' || g.tgname as line from pg_trigger g join pg_class t on t.oid = g.tgrelid
    where ${own} and not g.tgisinternal`,
};

test('a PostgreSQL has the tables, columns, keys, references, indexes and triggers of SQLite’s file', async () => {
  using directory = temporaryDirectory();
  await (await openStore(directory.path)).close();
  using other = temporaryDirectory();
  await (await openStore(other.path, { database: postgres.url({ schema: 'same' }) })).close();
  const file = new Database(join(directory.path, 'andromeda.db'), { readonly: true });
  for (const what of Object.keys(ofSqlite) as (keyof typeof ofSqlite)[]) {
    const expected = file.prepare<[], string>(ofSqlite[what]).pluck().all().sort();
    assert.ok(expected.length > 5, what);
    const rows = await postgres.query<{ line: string }>(ofPostgres[what]);
    assert.deepEqual(rows.map(({ line }) => line).sort(), expected, what);
  }
  file.close();
});
