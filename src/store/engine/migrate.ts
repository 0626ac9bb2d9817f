/** Migrates a database to the schema of this version, or requires that it was migrated. */
import { type Kysely, sql } from 'kysely';
import { type Migration, Migrator } from 'kysely/migration';
import { DomainError } from '../../domain/error.ts';
import type { Schema } from '../generated/schema.ts';
import { firstMigration, migrations, oldestServed } from '../migrations/index.ts';
import { faultMessage } from './engine.ts';

export interface KnownSchema {
  migrations: Readonly<Record<string, Migration>>;
  /** The last migration of the oldest program that works with the schema behind all of them. */
  oldestServed: string;
}

const own: KnownSchema = { migrations, oldestServed };

/**
 * The state of a database for a program. `new`: there is nothing in it. `ancient`: from before 0.3.0, which no
 * migration leads from. `older`: migrations are missing. `newer`: it has some that the program does not know.
 */
type SchemaState = 'new' | 'ancient' | 'older' | 'current' | 'newer';

/** The state of a database, by the names of the migrations that were made in it. */
export function schemaState(made: readonly string[], known: KnownSchema = own): SchemaState {
  if (made.length === 0) return 'new';
  if (!made.includes(firstMigration)) return 'ancient';
  if (made.some((name) => !(name in known.migrations))) return 'newer';
  return Object.keys(known.migrations).every((name) => made.includes(name)) ? 'current' : 'older';
}

export const ancientText = 'was written by a version of Andromeda before 0.3.0, which this one cannot read';

/** `name`: the name of the database in messages. */
export function refuseAncient(name: string): DomainError {
  return new DomainError(
    'invalid_state',
    `${name} ${ancientText}. Start that version again; or have it write a lab file (\`andromeda admin export\`), and start this one with a new data directory or database, and that file as \`seed\`.`,
  );
}

/** The names of the migrations that were made in a database. */
export async function listMigrations(db: Kysely<Schema>): Promise<string[]> {
  const tables = await db.introspection.getTables({ withInternalKyselyTables: true });
  if (!tables.some(({ name }) => name === 'kysely_migration')) return [];
  const { rows } = await sql<{ name: string }>`select name from kysely_migration order by name`.execute(db);
  return rows.map(({ name }) => name);
}

/** Throws a `DomainError` with a sentence where migrations are missing, or the database cannot be read. */
export async function requireMigrated(db: Kysely<Schema>, name: string, known?: KnownSchema): Promise<void> {
  const state = schemaState(await migrationsIn(db, name), known);
  if (state === 'ancient') throw refuseAncient(name);
  if (state === 'current' || state === 'newer') return;
  throw new DomainError(
    'invalid_state',
    'The database is not as this version has it: it is new, or of a server of another version. Start a server of this version first.',
  );
}

export interface MigrateOptions {
  /** Whether servers share the database, which may then be a migration ahead if that serves this program. */
  isShared?: boolean;
  known?: KnownSchema | undefined;
  /** Is called before the first migration in a database that has been served, with the last one that was made there. */
  beforeMigrations?(last: string): Promise<void>;
}

/**
 * Runs the missing migrations, all or none: they and the list of them are one transaction. `name`: the name of the
 * database in messages.
 */
export async function migrate(
  db: Kysely<Schema>,
  name: string,
  { isShared = false, known = own, beforeMigrations }: MigrateOptions = {},
): Promise<void> {
  const made = await migrationsIn(db, name);
  const state = schemaState(made, known);
  if (state === 'ancient') throw refuseAncient(name);
  if (state === 'newer') {
    if (isShared && (await isServed(db, known))) return;
    throw refuseNewer(name, isShared);
  }
  if (state === 'older') await beforeMigrations?.(made.at(-1) ?? '');
  try {
    await db.transaction().execute(async (tx) => {
      const provider = { getMigrations: async () => ({ ...known.migrations }) };
      const { error } = await new Migrator({ db: tx, provider }).migrateToLatest();
      if (error) throw error;
      if (isShared) await noteSupport(tx, known);
    });
  } catch (error) {
    throw migrationError(error, name);
  }
}

function migrationsIn(db: Kysely<Schema>, name: string): Promise<string[]> {
  return listMigrations(db).catch((error: unknown) => {
    throw migrationError(error, name);
  });
}

function refuseNewer(name: string, isShared: boolean): DomainError {
  const advice = isShared
    ? 'It serves the version before that and no older one: upgrade this server.'
    : 'Start that version, or restore a backup made by this one.';
  return new DomainError('invalid_state', `${name} was written by a newer version of Andromeda. ${advice}`);
}

function migrationError(error: unknown, name: string): unknown {
  const fault = faultMessage(error);
  if (fault === undefined) return error;
  const message = `The database ${name} cannot be used: ${fault}.`;
  return new DomainError('service_unavailable', message, { cause: error });
}

/** Notes for older programs whether they can work with the schema as it is now. */
async function noteSupport(db: Kysely<Schema>, { oldestServed: oldest }: KnownSchema): Promise<void> {
  if ((await findSupport(db)) === oldest) return;
  await db.deleteFrom('schema_support').execute();
  await db.insertInto('schema_support').values({ oldest }).execute();
}

/** Whether this program can use the schema, although that has migrations unknown to it. */
async function isServed(db: Kysely<Schema>, known: KnownSchema): Promise<boolean> {
  const support = await findSupport(db);
  const newest = Object.keys(known.migrations).sort().at(-1);
  return support !== undefined && newest !== undefined && support <= newest;
}

/** The last migration of the oldest program that works with the schema as it is; undefined where nothing notes it. */
export async function findSupport(db: Kysely<Schema>): Promise<string | undefined> {
  return (await db.selectFrom('schema_support').select('oldest').executeTakeFirst())?.oldest;
}
