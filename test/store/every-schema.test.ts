/**
 * Upgrades from every schema there was. `GOLDEN=write node --test test/store/every-schema.test.ts` adds a database of each
 * schema that has none yet; remove the one of a migration that was changed before its release.
 */

import assert from 'node:assert/strict';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import Database from 'better-sqlite3';
import { inspectDatabase } from '../../src/store/data-dir/inspect.ts';
import { openStore } from '../../src/store/data-dir/open-store.ts';
import { restoreBackup } from '../../src/store/data-dir/restore.ts';
import { listMembersAt } from '../../src/store/organizations/holdings.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { fieldsOf } from '../support/fields.ts';
import {
  hasFixture,
  knownUpTo,
  laterVersion,
  newest,
  placeSchema,
  schemas,
  writeFixtures,
} from '../support/schemas.ts';

const now = '2030-01-01T00:00:00.000Z';
if (process.env['GOLDEN'] === 'write') await writeFixtures();

/** Statements that made what is in a database. */
function schemaOf(dataDir: string): unknown[] {
  const file = new Database(join(dataDir, 'andromeda.db'), { readonly: true });
  const objects = file.prepare('select type, name, sql from sqlite_master order by type, name').all();
  file.close();
  return objects;
}

test('every schema has a database of its own here', () => {
  assert.deepEqual(
    schemas.filter((schema) => !hasFixture(schema)),
    [],
  );
});

for (const schema of schemas)
  for (const [version, known] of [
    ['this version', knownUpTo(newest)],
    ['a later version', laterVersion],
  ] as const)
    test(`a database of the schema ${schema} becomes one of ${version}, and the version before comes back from the backup made of it`, async () => {
      using directory = temporaryDirectory();
      using fresh = temporaryDirectory();
      const dataDir = directory.path;
      placeSchema(dataDir, schema);
      const store = await openStore(dataDir, { schema: known });
      const people = await store.read
        .selectFrom('users')
        .innerJoin('memberships', 'memberships.user_id', 'users.id')
        .select(['primary_email as email', 'role', 'org_id'])
        .orderBy('primary_email')
        .execute();
      const roles = ['ada@x.example owner', 'bob@x.example member'];
      assert.deepEqual(
        people.map(({ email, role }) => `${email} ${role}`),
        roles,
      );
      const keys = await store.read.selectFrom('ssh_keys').select('lifecycle_state').orderBy('id').execute();
      assert.deepEqual(keys, [{ lifecycle_state: 'active' }, { lifecycle_state: 'revoked' }]);
      const listed = await store.read.selectFrom('access_list_users').select('username').execute();
      assert.deepEqual(fieldsOf(listed, 'username'), ['ada', 'bob']);
      const members = await listMembersAt(store.read, people[0]?.org_id ?? '', new Date().toISOString());
      assert.deepEqual(
        members.map(({ email, role }) => `${email} ${role}`),
        roles,
      );
      await store.close();

      await (await openStore(fresh.path, { schema: known })).close();
      assert.deepEqual(schemaOf(dataDir), schemaOf(fresh.path));
      const backups = join(dataDir, 'before-upgrade');
      if (known !== laterVersion && schema === newest) return assert.ok(!existsSync(backups));
      assert.equal(statSync(backups).mode & 0o777, 0o700);
      assert.deepEqual(readdirSync(backups), [`${schema}.backup`]);
      const back = join(directory.path, 'back');
      restoreBackup(join(backups, `${schema}.backup`), back, now);
      await (await openStore(back, { schema: knownUpTo(schema) })).close();
      using inspection = inspectDatabase(join(back, 'andromeda.db'));
      assert.deepEqual(await Array.fromAsync(inspection.faults()), []);
      assert.equal((await inspection.auditTrail()).fault, undefined);
    });
