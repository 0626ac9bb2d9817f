/** Databases of single stores on the PostgreSQL that a run has of its own (`postgres-server.ts`). */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import pg from 'pg';
import { openStore } from '../../src/store/data-dir/open-store.ts';
import { temporaryDirectory } from './directory.ts';
import { urlOf } from './postgres-server.ts';

export interface TestDatabase {
  url: string;
  drop(): Promise<void>;
}

const template = 'andromeda_template';

/**
 * A database of its own for one store, on the run's own PostgreSQL; undefined where the run is one on SQLite. It is copied
 * from one that is migrated already: to copy it costs a tenth of the migrations.
 */
export async function createTestDatabase(): Promise<TestDatabase | undefined> {
  const directory = process.env['ANDROMEDA_TEST_POSTGRES'];
  if (!directory) return undefined;
  const name = `test_${randomBytes(8).toString('hex')}`;
  const client = await connectTo(directory);
  try {
    await client.query('select pg_advisory_lock(1)');
    const made = await client.query('select 1 from pg_database where datname = $1', [template]);
    if (made.rows.length === 0) await createTemplate(client, directory);
    await client.query('select pg_advisory_unlock(1)');
    await client.query(`create database ${name} template ${template} strategy file_copy`);
  } finally {
    await client.end();
  }
  return {
    url: urlOf(directory, name),
    async drop() {
      const dropping = await connectTo(directory);
      await dropping.query(`drop database ${name} with (force)`);
      await dropping.end();
    },
  };
}

async function createTemplate(client: pg.Client, directory: string): Promise<void> {
  const making = `${template}_new`;
  await client.query(`drop database if exists ${making}`);
  await client.query(`create database ${making}`);
  using dataDir = temporaryDirectory();
  await (await openStore(dataDir.path, { database: urlOf(directory, making) })).close();
  await client.query(`alter database ${making} rename to ${template}`);
}

async function connectTo(directory: string): Promise<pg.Client> {
  const client = new pg.Client({ host: directory, user: 'postgres', database: 'postgres' });
  await client.connect();
  return client;
}

/** Commits a statement as another process would; `database` undefined: in SQLite's file. */
export async function commitElsewhere(
  database: string | undefined,
  dataDir: string,
  sql: string,
): Promise<void> {
  if (database === undefined) {
    const file = new Database(join(dataDir, 'andromeda.db'));
    file.exec(sql);
    file.close();
    return;
  }
  const client = new pg.Client(database);
  await client.connect();
  try {
    await client.query(`begin; update store_version set version = version + 1; ${sql}; commit`);
  } finally {
    await client.end();
  }
}
