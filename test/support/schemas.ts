/** A small database of each schema so far, with people and clusters in it, as the steps made it when that schema was the newest. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync, gzipSync } from 'node:zlib';
import { sql } from 'kysely';
import { files, openSqlite } from '../../src/store/engine/engine.ts';
import { migrate, type SchemaSteps } from '../../src/store/engine/migrate.ts';
import { migrations } from '../../src/store/migrations/index.ts';
import { temporaryDirectory } from './directory.ts';

export const schemas: readonly string[] = Object.keys(migrations).sort();

/** What the program knew whose newest schema this was. */
export function stepsUpTo(last: string): SchemaSteps {
  const steps = Object.entries(migrations).filter(([name]) => name <= last);
  return { migrations: Object.fromEntries(steps), oldestServed: last };
}

function fixtureOf(schema: string): string {
  return fileURLToPath(new URL(`../store/schemas/${schema}.db.gz`, import.meta.url));
}

export function hasFixture(schema: string): boolean {
  return existsSync(fixtureOf(schema));
}

/** Puts the database of a schema into a data directory. */
export function placeSchema(dataDir: string, schema: string): void {
  writeFileSync(join(dataDir, 'andromeda.db'), gunzipSync(readFileSync(fixtureOf(schema))), { mode: 0o600 });
}

/** Makes those that are missing, from the one before; what is there stays, for it is what that version made. */
export async function writeFixtures(): Promise<void> {
  for (const [index, schema] of schemas.entries()) {
    if (hasFixture(schema)) continue;
    using directory = temporaryDirectory();
    const before = schemas[index - 1];
    if (before !== undefined) placeSchema(directory.path, before);
    const connections = openSqlite(join(directory.path, 'andromeda.db'));
    await connections.migrating(async (db) => {
      await migrate(db, schema, { steps: stepsUpTo(schema) });
      if (before === undefined) for (const row of rows) await sql.raw(row).execute(db);
    });
    await connections[Symbol.asyncDispose]();
    const compact = join(directory.path, 'compact');
    const database = files.openFile(join(directory.path, 'andromeda.db'));
    database.compactInto(compact);
    database[Symbol.dispose]();
    writeFileSync(fixtureOf(schema), gzipSync(readFileSync(compact), { level: 9 }));
  }
}

const at = '2026-01-01T00:00:00.000Z';
const cluster = (id: string, scheduler: string, driver: object) =>
  `insert into clusters values ('${id}', 'org_1', '${id}', 's', 's', '${scheduler}', '${JSON.stringify(driver)}', 'active',
  null, null, 1, null, null, null, null, null, 1, '', 0, 1, 0, 2, '', '${at}', '${at}')`;
const person = (id: string, name: string) => [
  `insert into users values ('${id}', 'person', '${name}@x.example', '${name}', null, '/bin/bash', 'active', '${at}', '${at}')`,
  `insert into identities values ('https://issuer.example', '${name}', '${id}', '${at}')`,
];

/** As the first schema has them: two people, of whom one has a key, and three clusters with an access list. */
const rows = [
  ...person('user_1', 'ada'),
  ...person('user_2', 'bob'),
  "insert into staff_permissions values ('user_1', 'staff.operate')",
  `insert into organizations values ('org_1', 'x', 'X', 'active', 'user_1', '${at}', '${at}')`,
  "insert into auto_join_domains values ('x.example', 'org_1')",
  `insert into memberships values ('org_1', 'user_1', 'owner', 'active', '${at}', '${at}')`,
  `insert into memberships values ('org_1', 'user_2', 'member', 'active', '${at}', '${at}')`,
  "insert into member_permissions values ('org_1', 'user_2', 'clusters.ssh')",
  `insert into organization_usernames values ('n1', 'org_1', 'user_1', 'ada', 'email', 'frozen', 20000, '${at}', '${at}')`,
  `insert into organization_usernames values ('n2', 'org_1', 'user_2', 'bob', 'email', 'frozen', 20001, '${at}', '${at}')`,
  `insert into ssh_keys values ('k1', 'user_1', 'ssh-ed25519', 'k1', 'SHA256:k1', 'active', null, '${at}', 'user_1', 'c', 1)`,
  `insert into ssh_keys values ('k2', 'user_2', 'ssh-ed25519', 'k2', 'SHA256:k2', 'revoked', '${at}', '${at}', 'user_2', 'c', 1)`,
  `insert into ssh_key_sets values ('user_1', 1, 'h', '${at}')`,
  cluster('both', 'sunk', { slurm: {}, kubernetes: {} }),
  cluster('slurm', 'sunk', { simulated: {} }),
  cluster('kubernetes', 'kubernetes', { kubernetes: {} }),
  `insert into resource_grants values ('g1', 'cluster', 'kubernetes', 'user_2', 'kubernetes.developer', 'team', null, null, 'user_1', '${at}', null)`,
  ...['both', 'slurm'].flatMap((id) => [
    `insert into access_lists values ('${id}', 3, 'h', 3, 1, null, '${at}')`,
    `insert into access_list_users values ('${id}', 'user_1', 'ada', 'use', 'ready', 1, '/bin/bash')`,
    `insert into observations values ('${id}', '${at}', 3, 1, null, '{"loginNodes":[],"kubernetes":{"ready":true}}')`,
    `insert into observed_accounts values ('${id}', 'user_1', 1, '["SHA256:k1"]', '/bin/bash', 'ready')`,
  ]),
  `insert into commands values ('c', 'user_1', 'i', 'registerSshKey', 'h', '{}', '${at}')`,
  ...[1, 2].map(
    (seq) =>
      `insert into audit_entries values (${seq}, '${at}', 'user_1', 'c', 'registerSshKey', 'k${seq}', 'first key', '', 'ok')`,
  ),
  `insert into passwords values ('user_1', 'hash', '${at}')`,
  "insert into issuer_records values ('Session', 's1', '{}', null, null, null, null, null)",
  "update counters set value = 20002 where name = 'uid'",
];
