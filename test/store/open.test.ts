import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import Database from 'better-sqlite3';
import { sql } from 'kysely';
import { isEmpty } from '../../src/store/data-dir/first-start.ts';
import { createInstallation } from '../../src/store/data-dir/lab.ts';
import { openStore } from '../../src/store/data-dir/open-store.ts';
import { migrations } from '../../src/store/migrations/index.ts';
import { physics } from '../support/app.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { fieldsOf } from '../support/fields.ts';
import { ancient } from '../support/schemas.ts';
import { openTestStore } from '../support/store.ts';

test('an empty directory becomes a database of this version, and opening it again changes nothing', async () => {
  using directory = temporaryDirectory();
  const path = join(directory.path, 'data');
  const versions = async () => {
    const store = await openStore(path);
    const rows = await sql<{ name: string }>`select name, timestamp from kysely_migration`.execute(
      store.read,
    );
    assert.equal(await isEmpty(store.read), true);
    await store.close();
    return rows.rows;
  };
  const first = await versions();
  assert.deepEqual(fieldsOf(first, 'name'), Object.keys(migrations));
  assert.deepEqual(await versions(), first);
});

test('a database of a newer version, or of one before 0.3.0, is refused with a sentence, and is left as it is', async () => {
  using directory = temporaryDirectory();
  await (await openStore(directory.path)).close();
  const file = join(directory.path, 'andromeda.db');
  const database = new Database(file);
  database.exec("insert into kysely_migration values ('9999-from-the-future', '2099-01-01')");
  const tables = () => database.prepare('select name, sql from sqlite_master order by name').all();
  const before = tables();
  await assert.rejects(openStore(directory.path), {
    code: 'invalid_state',
    message: `${file} was written by a newer version of Andromeda. Start that version, or restore a backup made by this one.`,
  });
  assert.deepEqual(tables(), before);
  database.exec(`delete from kysely_migration where name like '9999%'; ${ancient}`);
  await assert.rejects(openStore(directory.path), {
    code: 'invalid_state',
    message: `${file} was written by a version of Andromeda before 0.3.0, which this one cannot read. Start that version again; or have it write a lab file (\`andromeda admin export\`), and start this one with a new data directory or database, and that file as \`seed\`.`,
  });
  assert.deepEqual(tables(), before);
  database.close();
});

test('a file that is no database, and a directory in its place, are refused with a sentence', async () => {
  using directory = temporaryDirectory();
  const file = join(directory.path, 'andromeda.db');
  writeFileSync(file, 'not a database, whatever its name says\n'.repeat(100));
  await assert.rejects(openStore(directory.path), {
    code: 'invalid_state',
    message: `The database ${file} cannot be opened: file is not a database.`,
  });
  mkdirSync(join(directory.path, 'other/andromeda.db'), { recursive: true });
  await assert.rejects(openStore(join(directory.path, 'other')), {
    code: 'invalid_state',
    message: /is a directory, and has to be none/,
  });
});

test('only the owner can read the database and the files next to it', async () => {
  await using opened = await openTestStore(physics);
  const { dataDir } = opened;
  const modes = Object.fromEntries(
    readdirSync(dataDir).map((name) => [name, (statSync(join(dataDir, name)).mode & 0o777).toString(8)]),
  );
  assert.deepEqual(modes, {
    'andromeda.db': '600',
    'andromeda.db-shm': '600',
    'andromeda.db-wal': '600',
    lock: '600',
  });
});

test('a database that others could read is closed to them when it is opened', async () => {
  using directory = temporaryDirectory();
  const file = join(directory.path, 'andromeda.db');
  writeFileSync(file, '', { mode: 0o644 });
  const store = await openStore(directory.path);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  await store.close();
});

test('the log is flushed by the server itself (1, NORMAL), and by SQLite in other programs (2, FULL)', async () => {
  await using opened = await openTestStore();
  await using beside = await openBeside(opened.dataDir);
  const pragma = (name: string, { store } = opened) =>
    store.write(async ({ db }) => {
      const { rows } = await sql.raw<Record<string, unknown>>(`pragma ${name}`).execute(db);
      return Object.values(rows[0] ?? {})[0];
    });
  assert.equal(await pragma('journal_mode'), 'wal');
  assert.equal(await pragma('synchronous'), 1);
  assert.equal(await pragma('synchronous', { ...opened, ...beside }), 2);
  assert.equal(await pragma('foreign_keys'), 1);
});

async function openBeside(dataDir: string) {
  const store = await openStore(dataDir, { beside: true });
  return { store, [Symbol.asyncDispose]: () => store.close() };
}

test('the reading connection cannot write', async () => {
  await using opened = await openTestStore();
  await assert.rejects(opened.store.read.deleteFrom('users').execute(), /readonly/);
});

test('a lab is applied once, to an empty database, and recorded as made by the installation', async () => {
  await using store = await openTestStore(physics);
  const count = async () => (await store.read.selectFrom('users').select('id').execute()).length;
  const before = await count();
  assert.equal(await createInstallation(store, physics, 'again'), false);
  assert.equal(await createInstallation(store, {}, 'again'), false);
  assert.equal(await count(), before);
  const audit = await store.read.selectFrom('audit_entries').selectAll().execute();
  assert.equal(audit.length, 1);
  assert.equal(audit[0]?.actor_user_id, 'user_00000000000000000000000000');
  assert.equal(audit[0]?.target, 'test');
});

test('a permission given twice in a lab is one permission', async () => {
  const permissions = ['clusters.read', 'clusters.read'] as const;
  await using opened = await openTestStore({
    organizations: [
      {
        slug: 'x',
        name: 'X',
        members: [
          { email: 'a@x.example', role: 'owner' },
          { email: 'b@x.example', role: 'member', permissions: [...permissions] },
        ],
      },
    ],
  });
  const rows = await opened.store.read
    .selectFrom('holdings')
    .select('what')
    .where('kind', '=', 'permission')
    .execute();
  assert.deepEqual(rows, [{ what: 'clusters.read' }]);
});
