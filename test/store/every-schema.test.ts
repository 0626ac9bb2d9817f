/** Upgrades from every schema there was: `GOLDEN=write node --test test/store/every-schema.test.ts` adds those that are missing. */
import assert from 'node:assert/strict';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import Database from 'better-sqlite3';
import { inspectDatabase } from '../../src/store/data-dir/inspect.ts';
import { openStore } from '../../src/store/data-dir/open-store.ts';
import { restoreBackup } from '../../src/store/data-dir/restore.ts';
import { files } from '../../src/store/engine/engine.ts';
import { listMembersAt } from '../../src/store/organizations/member-history.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { hasFixture, placeSchema, schemas, stepsUpTo, writeFixtures } from '../support/schemas.ts';

const now = '2030-01-01T00:00:00.000Z';
if (process.env['GOLDEN'] === 'write') await writeFixtures();

/** Statements that made what is in a database. */
function schemaOf(dataDir: string): unknown[] {
  const file = new Database(join(dataDir, 'andromeda.db'), { readonly: true });
  const objects = file.prepare('select type, name, sql from sqlite_master order by type, name').all();
  file.close();
  return objects;
}

function pageBytesOf(dataDir: string): unknown {
  using file = files.openFile(join(dataDir, 'andromeda.db'), { readonly: true });
  const [row] = file.rows<{ page_size: number }>('pragma page_size');
  return row?.page_size;
}

/** Has a revoked key that a cluster may still have, where the schema knows of such. */
function addDrop(dataDir: string): object[] {
  const drop = { cluster_id: 'slurm', key_id: 'k2', user_id: 'user_2', version: 2, dropped_at: null };
  using file = files.openFile(join(dataDir, 'andromeda.db'));
  const [table] = file.rows("select 1 from sqlite_master where name = 'key_drops'");
  if (table === undefined) return [];
  file.run('insert into key_drops values (?, ?, ?, ?, ?)', ...Object.values(drop));
  return [drop];
}

test('every schema but the newest one has a database of its own here', () => {
  assert.deepEqual(
    schemas.slice(0, -1).filter((schema) => !hasFixture(schema)),
    [],
  );
});

for (const schema of schemas.filter(hasFixture))
  test(`a database of the schema ${schema} becomes one of this version, and the version before comes back from the backup made of it`, async () => {
    using directory = temporaryDirectory();
    using fresh = temporaryDirectory();
    const dataDir = join(directory.path);
    placeSchema(dataDir, schema);
    const drops = addDrop(dataDir);
    const store = await openStore(dataDir);
    const names = await store.read
      .selectFrom('users')
      .innerJoin('memberships', 'memberships.user_id', 'users.id')
      .select(['primary_email', 'role'])
      .orderBy('users.id')
      .execute();
    assert.deepEqual(names, [
      { primary_email: 'ada@x.example', role: 'owner' },
      { primary_email: 'bob@x.example', role: 'member' },
    ]);
    const keys = await store.read.selectFrom('ssh_keys').select(['id', 'lifecycle_state']).execute();
    assert.deepEqual(keys, [
      { id: 'k1', lifecycle_state: 'active' },
      { id: 'k2', lifecycle_state: 'revoked' },
    ]);
    const listed = await store.read.selectFrom('access_list_users').select('username').execute();
    assert.deepEqual(listed, [{ username: 'ada' }]);
    assert.deepEqual(await store.read.selectFrom('key_drops').selectAll().execute(), drops);
    const { org_id: organizationId } = await store.read
      .selectFrom('memberships')
      .select('org_id')
      .executeTakeFirstOrThrow();
    const members = await listMembersAt(store.read, organizationId, new Date().toISOString());
    assert.deepEqual(
      members.map(({ email, role }) => `${email} ${role}`),
      ['ada@x.example owner', 'bob@x.example member'],
    );
    await store.close();

    await (await openStore(fresh.path)).close();
    assert.deepEqual(schemaOf(dataDir), schemaOf(fresh.path));
    using inspection = inspectDatabase(join(dataDir, 'andromeda.db'));
    assert.deepEqual(await Array.fromAsync(inspection.faults()), []);
    assert.equal((await inspection.auditTrail()).fault, undefined);

    if (schema === schemas.at(-1)) return;
    const backups = join(dataDir, 'before-upgrade');
    assert.equal(statSync(backups).mode & 0o777, 0o700);
    assert.deepEqual(readdirSync(backups), [`${schema}.backup`]);
    const back = join(directory.path, 'back');
    restoreBackup(join(backups, `${schema}.backup`), back, now);
    await (await openStore(back, { schema: stepsUpTo(schema) })).close();
    // Small ones, as a new database has them since the step 28.
    const pageBytes = schema < '0028' ? 4096 : 1024;
    const found = [pageBytesOf(dataDir), pageBytesOf(back), pageBytesOf(fresh.path)];
    assert.deepEqual(found, [pageBytes, 1024, 1024]);
  });

test('of a database from before keys had labels, each key has its last login as far as sessions are kept', async () => {
  using directory = temporaryDirectory();
  placeSchema(directory.path, '0027-ended-reservations');
  const file = new Database(join(directory.path, 'andromeda.db'));
  const insert = file.prepare(`insert into ssh_sessions
    (seq, id, cluster_id, user_id, username, key_id, fingerprint, remote_address, login_node, opened_at, closed_at,
      end_reason, commands, forwards)
    values (?, ?, 'c', 'u', 'ada', 'k1', 'SHA256:x', ?, 'login', ?, ?, 'logout', '[]', '[]')`);
  insert.run(7, 's7', '192.0.2.1', now, now);
  insert.run(9, 's9', '192.0.2.2', '2030-01-02T00:00:00.000Z', now);
  file.close();
  const store = await openStore(directory.path);
  const keys = store.read.selectFrom('ssh_keys').select(['id', 'label', 'last_used_at', 'last_used_from']);
  assert.deepEqual(await keys.orderBy('id').execute(), [
    { id: 'k1', label: null, last_used_at: '2030-01-02T00:00:00.000Z', last_used_from: '192.0.2.2' },
    { id: 'k2', label: null, last_used_at: null, last_used_from: null },
  ]);
  await store.close();
});
