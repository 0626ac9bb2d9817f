/** Brings a database to the schema of this version, or requires that it is there. */
import { type Kysely, sql } from 'kysely';
import { type Migration, Migrator } from 'kysely/migration';
import { DomainError } from '../domain/error.ts';
import { faultMessage } from './fault.ts';
import { migrations, oldestServed } from './migrations/index.ts';
import type { Schema } from './schema.ts';

/** The steps that a program knows. */
export interface SchemaSteps {
  migrations: Readonly<Record<string, Migration>>;
  /** The last step of the oldest program that works with the schema behind all of them. */
  oldestServed: string;
}

const ownSteps: SchemaSteps = { migrations, oldestServed };

function migratorOf(db: Kysely<Schema>, { migrations: steps }: SchemaSteps): Migrator {
  return new Migrator({ db, provider: { getMigrations: async () => ({ ...steps }) } });
}

/** Whether it has every step of this version. */
export async function isMigrated(writer: Kysely<Schema>, steps: SchemaSteps = ownSteps): Promise<boolean> {
  const known = await migratorOf(writer, steps).getMigrations();
  return known.every((step) => step.executedAt !== undefined);
}

/** The steps that were taken in a database that has any. */
export async function listSteps(db: Kysely<Schema>): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`select name from kysely_migration`.execute(db);
  return rows.map(({ name }) => name);
}

export async function requireMigrated(writer: Kysely<Schema>, steps?: SchemaSteps): Promise<void> {
  if (await isMigrated(writer, steps)) return;
  throw new DomainError(
    'invalid_state',
    'The database is not as this version has it: it is new, or of a server of another version. Start a server of this version first.',
  );
}

/** `name`: what the database is called in messages. A database that servers share may be a step further, where that says so. */
export async function migrate(
  writer: Kysely<Schema>,
  name: string,
  { isShared = false, steps = ownSteps }: { isShared?: boolean; steps?: SchemaSteps | undefined } = {},
): Promise<void> {
  const { error } = await migratorOf(writer, steps).migrateToLatest();
  if (!error) {
    if (isShared) await noteSupport(writer, steps);
    return;
  }
  if (error instanceof Error && /missing/.test(error.message)) {
    if (isShared && (await isServed(writer, steps))) return;
    throw new DomainError(
      'invalid_state',
      `${name} was written by a newer version of Andromeda. ${adviceOf(isShared)}`,
      {
        cause: error,
      },
    );
  }
  const fault = faultMessage(error);
  if (fault === undefined) throw error;
  throw new DomainError('service_unavailable', `The database ${name} cannot be used: ${fault}.`, {
    cause: error,
  });
}

function adviceOf(isShared: boolean): string {
  return isShared
    ? 'It serves the version before that and no older one: upgrade this server.'
    : 'Start that version, or restore a backup made by this one.';
}

/** Notes for older programs whether they can work with the schema as it is now. */
async function noteSupport(writer: Kysely<Schema>, { oldestServed: oldest }: SchemaSteps): Promise<void> {
  const row = await writer.selectFrom('schema_support').select('oldest').executeTakeFirst();
  if (row?.oldest === oldest) return;
  await writer.transaction().execute(async (db) => {
    await db.deleteFrom('schema_support').execute();
    await db.insertInto('schema_support').values({ oldest }).execute();
  });
}

/** Whether the schema, which has steps that this program does not know, serves it all the same. */
async function isServed(writer: Kysely<Schema>, steps: SchemaSteps): Promise<boolean> {
  if (!(await isMigrated(writer, steps))) return false;
  const row = await writer.selectFrom('schema_support').select('oldest').executeTakeFirst();
  const newest = Object.keys(steps.migrations).sort().at(-1);
  return row !== undefined && newest !== undefined && row.oldest <= newest;
}
