/** What a step may do to the schema: programs of the version before work with it during a rolling upgrade. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import Database from 'better-sqlite3';
import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';
import { openStore } from '../../src/store/data-dir/open-store.ts';
import { restoreBackup } from '../../src/store/data-dir/restore.ts';
import { migrations, oldestServed } from '../../src/store/migrations/index.ts';
import { fill, smallDisk, startBoth } from '../support/both-versions.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { laterVersion, newest, placeSchema } from '../support/schemas.ts';

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

const now = '2030-01-01T00:00:00.000Z';
const skip = process.getuid?.() !== 0 && 'needs root';

test('an upgrade is refused with a sentence where the disk has no room for the backup before it', {
  skip,
}, async () => {
  using disk = smallDisk(64);
  placeSchema(disk.path, newest);
  await assert.rejects(openStore(disk.path, { schema: laterVersion }), {
    code: 'service_unavailable',
    message:
      /^This version changes the database, and makes a backup of it first, which failed: The disk of .* has 6\d MiB left, and 1[23]\d MiB are needed\. Make room\. Nothing was changed: mend that and start again, or start the version before\.$/,
  });
  assert.ok(!existsSync(join(disk.path, 'before-upgrade')));
  await (await openStore(disk.path)).close();
  execFileSync('mount', ['-o', 'remount,size=256m', disk.path]);
  assert.equal(await startBoth(disk.path), 'before');
});

test('a disk that becomes full in the middle of an upgrade leaves the database as it was', {
  skip,
}, async () => {
  using disk = smallDisk(256);
  placeSchema(disk.path, newest);
  const filler = join(disk.path, 'filler');
  const half: Migration = {
    async up(db: Kysely<unknown>) {
      await sql.raw('create table rooms (content blob not null)').execute(db);
      fill(filler);
      await sql`insert into rooms values (zeroblob(${64 * 2 ** 20}))`.execute(db);
    },
  };
  const failing = { migrations: { ...migrations, '9998-half': half }, oldestServed: newest };
  await assert.rejects(openStore(disk.path, { schema: failing }), {
    code: 'service_unavailable',
    message: /cannot be used: the disk is full\.$/,
  });
  rmSync(filler);
  assert.equal(await startBoth(disk.path), 'before');
});

test('the backups of the last two upgrades are kept, and one of the same schema takes the place of the one before', async () => {
  using directory = temporaryDirectory();
  const backups = join(directory.path, 'before-upgrade');
  mkdirSync(backups);
  for (const [name, day] of [
    ['older', 1],
    ['old', 2],
  ] as const) {
    writeFileSync(join(backups, `${name}.backup`), '');
    utimesSync(join(backups, `${name}.backup`), day, day);
  }
  placeSchema(directory.path, newest);
  const upgrade = async () => (await openStore(directory.path, { schema: laterVersion })).close();
  const kept = () => readdirSync(backups).sort();
  await upgrade();
  assert.deepEqual(kept(), [`${newest}.backup`, 'old.backup']);
  restoreBackup(join(backups, `${newest}.backup`), directory.path, now);
  await upgrade();
  assert.deepEqual(kept(), [`${newest}.backup`, 'old.backup']);
});
