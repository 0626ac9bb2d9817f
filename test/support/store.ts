/** A store in a directory of its own, filled from a lab. */
import { type TestContext, test } from 'node:test';
import type { Kysely } from 'kysely';
import type { AccessPolicy } from '../../src/domain/access/lapse.ts';
import type { SlurmReport } from '../../src/domain/access/manifest.ts';
import type { Lab } from '../../src/domain/clusters/lab.ts';
import { createClock } from '../../src/lib/clock.ts';
import { createInstallation } from '../../src/store/data-dir/lab.ts';
import { openStore } from '../../src/store/data-dir/open-store.ts';
import type { Change, Store } from '../../src/store/engine/index.ts';
import { findRow } from '../../src/store/engine/rows.ts';
import type { Schema } from '../../src/store/generated/schema.ts';
import { systemUserId } from '../../src/store/people/people.ts';
import { temporaryDirectory } from './directory.ts';
import { commitElsewhere, createTestDatabase } from './postgres.ts';
import { placeDatabase } from './template.ts';

/** For who listens to all that commits announce. */
export const everyKind: readonly Change['kind'][] = [
  'person',
  'organization',
  'cluster',
  'report',
  'browsers',
  'sessions',
  'requests',
  'service',
  'closing',
  'everything',
];

export interface TestStore extends Store, AsyncDisposable {
  /** Itself. */
  store: Store;
  dataDir: string;
  /** The URL of its PostgreSQL; undefined: it is SQLite's file in `dataDir`. */
  database: string | undefined;
  /** Commits a statement as another process would. */
  elsewhere(sql: string): Promise<void>;
}

/** Whether stores of this run are files of SQLite's: what a test does to the file itself is not done on PostgreSQL. */
export const isOnFile = !process.env['ANDROMEDA_TEST_POSTGRES'];

/** Whether this is a run before a release, which takes its time. */
export const isFull = process.env['ANDROMEDA_TEST_FULL'] !== undefined;

/** A test of what SQLite's file is to the service; on PostgreSQL there is none. */
export const testOnFile: (name: string, body: (t: TestContext) => Promise<void>) => void = isOnFile
  ? test
  : () => {};

/**
 * On PostgreSQL where the run says so, in a schema of its own. `now`: the clock of its writes. `access`: when access lapses.
 */
export async function openTestStore(
  lab?: Lab,
  now?: () => number,
  access: AccessPolicy = {},
): Promise<TestStore> {
  const directory = temporaryDirectory();
  const database = await createTestDatabase();
  if (!database) await placeDatabase(directory.path);
  const store = await openStore(directory.path, {
    clock: createClock({ now }),
    access,
    database: database?.url,
  });
  if (lab) await createInstallation(store, lab, 'test');
  return Object.assign(store, {
    store,
    dataDir: directory.path,
    database: database?.url,
    elsewhere: (sql: string) => commitElsewhere(database?.url, directory.path, sql),
    async [Symbol.asyncDispose]() {
      await store.close();
      await database?.drop();
      directory[Symbol.dispose]();
    },
  });
}

/** A row of the ledger of what members hold: a permission that was given by hand just now. */
export function granting(
  { organizationId, userId }: { organizationId: string; userId: string },
  permission: string,
) {
  return {
    ...({ org_id: organizationId, user_id: userId, kind: 'permission', what: permission } as const),
    ...({ source: 'hand', since: new Date().toISOString() } as const),
  };
}

/** The only row of a table that has these values. */
export async function requireRow<T extends keyof Schema>(
  db: Kysely<Schema>,
  table: T,
  where: Partial<Schema[T]>,
): Promise<Schema[T]> {
  const row = await findRow(db, table, where);
  if (!row) throw new Error(`${table} has no ${JSON.stringify(where)}`);
  return row;
}

/** The ID of a person in it. */
export async function userId(store: Store, email: string): Promise<string> {
  return (await requireRow(store.read, 'users', { primary_email: email })).id;
}

/** An entry of the audit trail that says nothing. */
export const testEntry = (target: string) => ({
  ...{ actorUserId: systemUserId, operation: 'test', target, reason: 'r', sourceAddress: '', result: 'done' },
});

/** What a cluster reports that is well and has nothing. */
export const slurmReport = (more: Partial<SlurmReport> = {}): SlurmReport => ({
  ...{ manifestGeneration: 0, desiredGeneration: 1, controlPlaneReady: true, failure: null },
  ...{ machines: [], runningJobs: [], loginNodes: [], accounts: [], ...more },
});
