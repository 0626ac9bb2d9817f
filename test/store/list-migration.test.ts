import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { sql } from 'kysely';
import { findPersonOnCluster } from '../../src/store/access/access-facts.ts';
import { updateListedUsers } from '../../src/store/access/access-list-users.ts';
import {
  acceptAccessLists,
  findAccessList,
  findManifest,
  readAccessList,
} from '../../src/store/access/access-lists.ts';
import { openStore } from '../../src/store/data-dir/open-store.ts';
import { openSqlite } from '../../src/store/engine/sqlite/index.ts';
import { firstSchema, operators } from '../../src/store/migrations/0001-0002.ts';
import { temporaryDirectory } from '../support/directory.ts';

const at = '2026-01-01T00:00:00.000Z';
const cluster = (
  id: string,
) => `insert into clusters values ('${id}', 'org_1', '${id}', 's', 's', 'sunk', '{}', 'active',
  null, null, 1, null, null, null, null, null, 1, '', 0, 1, 0, 2, '', '${at}', '${at}')`;
const listed = (clusterId: string, generation: number) =>
  `insert into access_list_users values ('${clusterId}', 'user_1', 'ada', 'use', 'ready', ${generation}, '/bin/bash')`;
/** As version 0.1 left it: two clusters with the newest list, and one that has not got it yet. */
const before = [
  `insert into users values ('user_1', 'person', 'a@x.example', 'A', null, '/bin/bash', 'active', '${at}', '${at}')`,
  `insert into organizations values ('org_1', 'x', 'X', 'active', 'user_1', '${at}', '${at}')`,
  `insert into memberships values ('org_1', 'user_1', 'member', 'active', '${at}', '${at}')`,
  "insert into member_permissions values ('org_1', 'user_1', 'clusters.ssh')",
  `insert into organization_usernames values ('n', 'org_1', 'user_1', 'ada', 'email', 'frozen', 20000, '${at}', '${at}')`,
  ...['k1', 'k2'].map(
    (id) =>
      `insert into ssh_keys values ('${id}', 'user_1', 'ssh-ed25519', '${id}', 'SHA256:${id}', 'active', null, '${at}', 'user_1', 'c', 1)`,
  ),
  `insert into ssh_key_sets values ('user_1', 2, 'h', '${at}')`,
  ...['alpha', 'beta', 'gamma'].map(cluster),
  `insert into access_lists values ('alpha', 7, 'new', 7, 1, null, '2026-01-02T00:00:00.000Z')`,
  `insert into access_lists values ('beta', 3, 'new', 3, 1, null, '2026-01-02T00:00:00.000Z')`,
  `insert into access_lists values ('gamma', 5, 'old', 5, 1, null, '${at}')`,
  listed('alpha', 2),
  listed('beta', 2),
  listed('gamma', 1),
  `insert into observations values ('alpha', '${at}', 7, 1, null, '{"loginNodes":[]}')`,
  `insert into observed_accounts values ('alpha', 'user_1', 2, '["SHA256:k1","SHA256:k2"]', '/bin/bash', 'ready')`,
];

test('lists of an earlier version keep their generation unless they were behind', async () => {
  using directory = temporaryDirectory();
  const sqlite = openSqlite(join(directory.path, 'andromeda.db'));
  const database = sqlite.writer;
  for (const migration of [firstSchema, operators]) await migration.up(database);
  for (const statement of before) await sql.raw(statement).execute(database);
  await sql.raw('create table kysely_migration (name text primary key, timestamp text)').execute(database);
  for (const name of ['0001-first-schema', '0002-operators']) {
    await sql`insert into kysely_migration values (${name}, ${at})`.execute(database);
  }
  await sqlite[Symbol.asyncDispose]();

  const store = await openStore(directory.path);
  assert.equal(await updateListedUsers(store, 'org_1'), false, 'nothing on it has changed');
  const generations = async () =>
    Promise.all(
      ['alpha', 'beta', 'gamma'].map(async (id) => {
        const list = await findAccessList(store.read, id);
        return [list?.generation, list?.acceptedGeneration];
      }),
    );
  assert.deepEqual(await generations(), [
    [7, 7],
    [3, 3],
    [6, 5],
  ]);
  await acceptAccessLists(store, 'org_1');
  for (const id of ['alpha', 'beta', 'gamma']) {
    const manifest = await findManifest(store, id);
    assert.deepEqual(manifest?.accounts[0]?.keyFingerprints, ['SHA256:k1', 'SHA256:k2']);
    const found = await readAccessList(store, id);
    assert.deepEqual(
      found?.users.map(({ username, keySetGeneration, uid }) => [username, keySetGeneration, uid]),
      [['ada', 2, 20000]],
    );
  }
  const person = await findPersonOnCluster(store, 'alpha', 'user_1');
  assert.equal(person?.observed.keySetGeneration, 2, 'what a cluster confirmed stays confirmed');
  await store.close();
});
