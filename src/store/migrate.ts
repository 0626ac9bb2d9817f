/** Brings a database to the schema of this version, or requires that it is there. */
import type { Kysely } from 'kysely';
import { Migrator } from 'kysely/migration';
import { DomainError } from '../domain/error.ts';
import { faultMessage } from './fault.ts';
import { migrations } from './migrations/index.ts';
import type { Schema } from './schema.ts';

/** Whether it has every step of this version. */
export async function isMigrated(writer: Kysely<Schema>): Promise<boolean> {
  const migrator = new Migrator({ db: writer, provider: { getMigrations: async () => migrations } });
  return (await migrator.getMigrations()).every((step) => step.executedAt !== undefined);
}

export async function requireMigrated(writer: Kysely<Schema>): Promise<void> {
  if (await isMigrated(writer)) return;
  throw new DomainError('invalid_state', 'The server that runs is of another version. Stop it first.');
}

/** `name`: what the database is called in messages. */
export async function migrate(writer: Kysely<Schema>, name: string): Promise<void> {
  const migrator = new Migrator({ db: writer, provider: { getMigrations: async () => migrations } });
  const { error } = await migrator.migrateToLatest();
  if (!error) return;
  if (error instanceof Error && /missing/.test(error.message)) {
    throw new DomainError(
      'invalid_state',
      `${name} was written by a newer version of Andromeda. Start that version, or restore a backup made by this one.`,
      { cause: error },
    );
  }
  const fault = faultMessage(error);
  if (fault === undefined) throw error;
  throw new DomainError('service_unavailable', `The database ${name} cannot be used: ${fault}.`, {
    cause: error,
  });
}
