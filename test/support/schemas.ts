/**
 * A small database of each schema, with people and clusters in it, as it was when that schema was the newest; and the migrations
 * that a later version may bring.
 */
import { closeSync, existsSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync, gzipSync } from 'node:zlib';
import Database from 'better-sqlite3';
import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';
import { parseSshPublicKey } from '../../src/domain/access/ssh-key.ts';
import type { Lab } from '../../src/domain/clusters/lab.ts';
import { updateListedUsers } from '../../src/store/access/access-list-users.ts';
import { createAccessList } from '../../src/store/access/access-lists.ts';
import { findClusterByName } from '../../src/store/clusters/clusters.ts';
import { createInstallation } from '../../src/store/data-dir/lab.ts';
import { openStore } from '../../src/store/data-dir/open-store.ts';
import { files } from '../../src/store/engine/engine.ts';
import type { Store } from '../../src/store/engine/index.ts';
import type { KnownSchema } from '../../src/store/engine/migrate.ts';
import { migrations } from '../../src/store/migrations/index.ts';
import { createSshKey, revokeSshKey } from '../../src/store/people/ssh-keys.ts';
import { temporaryDirectory } from './directory.ts';
import { newPublicKey } from './ssh-keys.ts';
import { userId } from './store.ts';

export const schemas: readonly string[] = Object.keys(migrations).sort();
export const newest: string = schemas.at(-1) ?? '';

export function statements(...texts: string[]): Migration {
  return {
    async up(db: Kysely<unknown>) {
      for (const text of texts) await sql.raw(text).execute(db);
    },
  };
}

const later: Record<string, Migration> = {
  '9998-rooms': statements(
    'create table rooms (id text primary key not null, size integer not null)',
    "insert into rooms values ('hall', 3)",
  ),
  '9999-room-of-each': statements(
    'alter table organizations add column room text',
    "update organizations set room = 'hall'",
    'create index organizations_by_room on organizations (room)',
    "alter table users add column label text not null default 'person'",
  ),
};
/** What a version to come knows. */
export const laterVersion: KnownSchema = {
  migrations: { ...migrations, ...later },
  oldestServed: newest,
};

/** Makes a database look like one from before the first migration that there is now. */
export const ancient = "update kysely_migration set name = '0036-member-reviews'";

/** What the program knew whose newest schema this was. */
export function knownUpTo(last: string): KnownSchema {
  const known = Object.entries(migrations).filter(([name]) => name <= last);
  return { migrations: Object.fromEntries(known), oldestServed: last };
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
    const store = await openStore(directory.path, { schema: knownUpTo(schema) });
    if (before === undefined) await fill(store);
    await store.close();
    const compact = join(directory.path, 'compact');
    using database = files.openFile(join(directory.path, 'andromeda.db'));
    database.compactInto(compact);
    writeFileSync(fixtureOf(schema), gzipSync(readFileSync(compact), { level: 9 }));
  }
}

const lab: Lab = {
  organizations: [
    {
      slug: 'x',
      name: 'X',
      members: [
        { email: 'ada@x.example', role: 'owner', username: 'ada' },
        { email: 'bob@x.example', role: 'member', username: 'bob', permissions: ['clusters.ssh'] },
      ],
    },
  ],
  clusters: [
    { name: 'slurm', organization: 'x', scheduler: 'sunk', simulated: { computeNodes: 1, gpusPerNode: 1 } },
  ],
};

/** Two people, of whom one has a key and the other had one, and a cluster whose access list they are on. */
async function fill(store: Store): Promise<void> {
  await createInstallation(store, lab, 'test');
  const [ada, bob] = [await userId(store, 'ada@x.example'), await userId(store, 'bob@x.example')];
  const key = () => parseSshPublicKey(newPublicKey());
  await store.write((tx) => createSshKey(tx, { userId: ada, key: key(), commandId: 'c' }));
  await store.write(async (tx) => {
    const { key: made } = await createSshKey(tx, { userId: bob, key: key(), commandId: 'c' });
    await revokeSshKey(tx, { userId: bob, keyId: made.id });
  });
  const cluster = await findClusterByName(store.read, 'slurm');
  if (!cluster) throw new Error('there is no cluster');
  await createAccessList(store, cluster);
  await updateListedUsers(store, cluster.organizationId);
}

/** Overwrites the first page of a table in a database that is closed. */
export function damageTable(file: string, table: string): void {
  const database = new Database(file);
  database.pragma('wal_checkpoint(truncate)');
  const page = database.prepare('select rootpage from sqlite_master where name = ?').pluck().get(table);
  const bytes = Number(database.pragma('page_size', { simple: true }));
  database.close();
  const handle = openSync(file, 'r+');
  writeSync(handle, Buffer.alloc(bytes, 0x5a), 0, bytes, bytes * (Number(page) - 1));
  closeSync(handle);
}
