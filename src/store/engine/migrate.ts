/** Brings a database to the schema of this version, or requires that it is there. */
import { type Kysely, sql } from 'kysely';
import { type Migration, Migrator } from 'kysely/migration';
import { DomainError } from '../../domain/error.ts';
import { migrations, oldestServed } from '../migrations/index.ts';
import { faultMessage } from './engine.ts';
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

export interface MigrateOptions {
  /** Whether the database may be a step further, where that says so: one that servers share. */
  isShared?: boolean;
  steps?: SchemaSteps | undefined;
  /** Is called before the first step in a database that has been served, with the last step that was taken there. */
  beforeSteps?(last: string): Promise<void>;
}

/**
 * Takes the steps that are missing, all of them or none: they and the list of them are one transaction. `name`: what the database is
 * called in messages.
 */
export async function migrate(
  writer: Kysely<Schema>,
  name: string,
  { isShared = false, steps = ownSteps, beforeSteps }: MigrateOptions = {},
): Promise<void> {
  const known = await migratorOf(writer, steps)
    .getMigrations()
    .catch((error: unknown) => {
      throw migrationError(error, name, isShared);
    });
  const last = known.findLast(({ executedAt }) => executedAt !== undefined)?.name;
  if (last !== undefined && known.some(({ executedAt }) => executedAt === undefined))
    await beforeSteps?.(last);
  try {
    await writer.transaction().execute(async (db) => {
      const { error } = await migratorOf(db, steps).migrateToLatest();
      if (error) throw error;
      if (isShared) await noteSupport(db, steps);
    });
  } catch (error) {
    if (isNewer(error) && isShared && (await isServed(writer, steps))) return;
    throw migrationError(error, name, isShared);
  }
}

function isNewer(error: unknown): boolean {
  return error instanceof Error && /previously executed migration .* is missing/.test(error.message);
}

function migrationError(error: unknown, name: string, isShared: boolean): unknown {
  if (isNewer(error)) {
    const message = `${name} was written by a newer version of Andromeda. ${adviceOf(isShared)}`;
    return new DomainError('invalid_state', message, { cause: error });
  }
  const fault = faultMessage(error);
  if (fault === undefined) return error;
  const message = `The database ${name} cannot be used: ${fault}.`;
  return new DomainError('service_unavailable', message, { cause: error });
}

function adviceOf(isShared: boolean): string {
  return isShared
    ? 'It serves the version before that and no older one: upgrade this server.'
    : 'Start that version, or restore a backup made by this one.';
}

/** Notes for older programs whether they can work with the schema as it is now. */
async function noteSupport(db: Kysely<Schema>, { oldestServed: oldest }: SchemaSteps): Promise<void> {
  if ((await findSupport(db)) === oldest) return;
  await db.deleteFrom('schema_support').execute();
  await db.insertInto('schema_support').values({ oldest }).execute();
}

/** Whether the schema, which has steps that this program does not know, serves it all the same. */
async function isServed(writer: Kysely<Schema>, steps: SchemaSteps): Promise<boolean> {
  if (!(await isMigrated(writer, steps))) return false;
  const support = await findSupport(writer);
  const newest = Object.keys(steps.migrations).sort().at(-1);
  return support !== undefined && newest !== undefined && support <= newest;
}

/** The last step of the oldest program that works with the schema as it is; undefined where nothing notes it. */
export async function findSupport(db: Kysely<Schema>): Promise<string | undefined> {
  return (await db.selectFrom('schema_support').select('oldest').executeTakeFirst())?.oldest;
}
