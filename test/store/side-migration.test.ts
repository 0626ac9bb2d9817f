/** Reports of an earlier version become reports of the sides that they are of; nobody loses access by an upgrade. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { sql } from 'kysely';
import { findPersonOnCluster } from '../../src/store/access/access-facts.ts';
import { findCluster } from '../../src/store/clusters/clusters.ts';
import { findClusterReport, findObservation } from '../../src/store/clusters/observations.ts';
import { openStore } from '../../src/store/data-dir/open-store.ts';
import { openSqlite } from '../../src/store/engine/sqlite/index.ts';
import { migrations } from '../../src/store/migrations/index.ts';
import { temporaryDirectory } from '../support/directory.ts';

const now = Date.parse('2026-01-01T00:01:00.000Z');
const at = '2026-01-01T00:00:00.000Z';
const loginNode = { name: 'l', host: '10.0.0.5', port: 22, hostKey: 'ssh-ed25519 AAAA', up: true };
const report = JSON.stringify({
  manifestGeneration: 1,
  desiredGeneration: 1,
  controlPlaneReady: true,
  loginNodes: [loginNode],
  kubernetes: { server: 'https://10.0.0.5:6443', ready: true },
  machines: [{ name: 'm', ready: true, phase: 'idle' }],
  kubernetesFailure: 'no right',
});
const cluster = (id: string, scheduler: string, driver: object) =>
  `insert into clusters values ('${id}', 'org_1', '${id}', 's', 's', '${scheduler}', '${JSON.stringify(driver)}', 'active',
  null, null, 1, null, null, null, null, null, 1, '', 0, 1, 0, 2, '', '${at}', '${at}')`;
const before = [
  `insert into users values ('user_1', 'person', 'a@x.example', 'A', null, '/bin/bash', 'active', '${at}', '${at}')`,
  `insert into organizations values ('org_1', 'x', 'X', 'active', 'user_1', '${at}', '${at}')`,
  `insert into memberships values ('org_1', 'user_1', 'owner', 'active', '${at}', '${at}')`,
  `insert into organization_usernames values ('n', 'org_1', 'user_1', 'ada', 'email', 'frozen', 20000, '${at}', '${at}')`,
  `insert into ssh_keys values ('k1', 'user_1', 'ssh-ed25519', 'k1', 'SHA256:k1', 'active', null, '${at}', 'user_1', 'c', 1)`,
  `insert into organization_access_lists values ('org_1', 3)`,
  `insert into access_list_users values ('org_1', 'user_1', 1, null, 'ada', 'use', 'ready', 1, '["SHA256:k1"]', '/bin/bash')`,
  cluster('both', 'sunk', { slurm: {}, kubernetes: {} }),
  cluster('slurm', 'sunk', { simulated: {} }),
  cluster('kubernetes', 'kubernetes', { kubernetes: {} }),
  ...['both', 'slurm', 'kubernetes'].map(
    (
      id,
    ) => `insert into observations (cluster_id, observed_at, manifest_generation, desired_generation, list_version, failure, report)
      values ('${id}', '${at}', 1, 1, ${id === 'kubernetes' ? 0 : 3}, null, '${report}')`,
  ),
];

test('each side keeps its part of the report that was on record', async () => {
  using directory = temporaryDirectory();
  const { writer, [Symbol.asyncDispose]: close } = openSqlite(join(directory.path, 'andromeda.db'));
  await sql.raw('create table kysely_migration (name text primary key, timestamp text)').execute(writer);
  for (const [name, migration] of Object.entries(migrations)) {
    if (name.startsWith('0008')) break;
    await migration.up(writer);
    await sql`insert into kysely_migration values (${name}, ${at})`.execute(writer);
  }
  for (const statement of before) await sql.raw(statement).execute(writer);
  close();

  const store = await openStore(directory.path);
  const sides = async (id: string) =>
    Promise.all(
      (['slurm', 'kubernetes'] as const).map(
        async (side) => (await findObservation(store.read, id, side))?.listVersion,
      ),
    );
  assert.deepEqual(await sides('both'), [3, 0]);
  assert.deepEqual(await sides('slurm'), [3, undefined]);
  assert.deepEqual(await sides('kubernetes'), [undefined, 0]);
  for (const id of ['both', 'slurm']) {
    const { facts } = (await findPersonOnCluster(store, id, 'user_1')) ?? {};
    assert.deepEqual(facts?.confirmed, { loginState: 'ready', keyFingerprints: ['SHA256:k1'] });
    assert.equal(facts?.loginNodes.length, 1);
  }
  for (const id of ['both', 'slurm', 'kubernetes']) {
    const row = await findCluster(store.read, id);
    assert.ok(row);
    assert.equal((await findClusterReport(store.read, row, now)).kubernetes?.ready, true);
  }
  await store.close();
});
