/** What a step may do to the schema: programs of the version before work with it during a rolling upgrade. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import Database from 'better-sqlite3';
import { openStore } from '../../src/store/data-dir/open-store.ts';
import { migrations, oldestServed } from '../../src/store/migrations/index.ts';
import { temporaryDirectory } from '../support/directory.ts';

interface Column {
  table: string;
  name: string;
  type: string;
  /** Whether a row can be written that says nothing of it. */
  optional: boolean;
}

/** Every column of the schema behind the steps up to one. */
async function columnsUpTo(last: string): Promise<Map<string, Column>> {
  using directory = temporaryDirectory();
  const steps = Object.fromEntries(Object.entries(migrations).filter(([name]) => name <= last));
  await (await openStore(directory.path, { schema: { migrations: steps, oldestServed: last } })).close();
  const file = new Database(join(directory.path, 'andromeda.db'), { readonly: true });
  const columns = file
    .prepare(
      `select t.name as "table", c.name, lower(c.type) as type, c."notnull" as needed, c.dflt_value as value
        from sqlite_master t, pragma_table_info(t.name) c where t.type = 'table' order by t.name, c.cid`,
    )
    .all() as { table: string; name: string; type: string; needed: number; value: string | null }[];
  file.close();
  return new Map(
    columns.map(({ table, name, type, needed, value }) => [
      `${table}.${name}`,
      { table, name, type, optional: needed === 0 || value !== null },
    ]),
  );
}

test('since the oldest program that is served, steps only added what it need not know', async () => {
  assert.ok(oldestServed in migrations);
  const before = await columnsUpTo(oldestServed);
  const now = await columnsUpTo(Object.keys(migrations).sort().at(-1) ?? '');
  const tables = new Set([...before.values()].map(({ table }) => table));
  const broken = [
    ...[...before].filter(([key, { type }]) => now.get(key)?.type !== type).map(([key]) => `${key} is gone`),
    ...[...now]
      .filter(([key, { table, optional }]) => !before.has(key) && tables.has(table) && !optional)
      .map(([key]) => `${key} has to be given`),
  ];
  assert.deepEqual(broken, [], 'what an older program needs goes a version later: see `oldestServed`');
});
