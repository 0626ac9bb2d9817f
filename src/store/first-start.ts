/**
 * What a data directory has that speaks against a new database: a service that knows nobody, in the place of one that knew people,
 * is nothing that an operator would want.
 */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Kysely } from 'kysely';
import { DomainError } from '../domain/error.ts';
import type { Schema } from './schema.ts';

/** Whether there is nothing in the database but what every new one has. */
export async function isEmpty(db: Kysely<Schema>): Promise<boolean> {
  const person = await db.selectFrom('users').select('id').where('kind', '=', 'person').executeTakeFirst();
  const organization = await db.selectFrom('organizations').select('id').executeTakeFirst();
  return person === undefined && organization === undefined;
}

/**
 * Throws `invalid_state` where a data directory has keys and no database, or an empty one. A new database in its place
 * would make a service that knows nobody, under the host key that people trust.
 */
export function refuseLost(dataDir: string, file: string): void {
  if (sizeOf(file) > 0) return;
  const keys = join(dataDir, 'keys');
  if (!existsSync(keys) || readdirSync(keys).length === 0) return;
  const state = existsSync(file) ? 'is empty' : 'is missing';
  throw new DomainError(
    'invalid_state',
    `The database ${file} ${state}, and there are keys beside it, so there was one. Bring it back, or restore a backup (\`andromeda restore\`). To begin anew on purpose, move ${keys} away first.`,
  );
}

/**
 * Throws `invalid_state` where a PostgreSQL is as new, and the data directory has the database of before. Keys say nothing:
 * with a PostgreSQL, a data directory has some that an operator put there, and a list of those in use.
 */
export async function refuseNotCopied(db: Kysely<Schema>, name: string, file: string): Promise<void> {
  if (sizeOf(file) === 0 || !(await isEmpty(db))) return;
  throw new DomainError(
    'invalid_state',
    `The database ${name} is empty, and ${file} has the installation of before. Copy it: andromeda migrate --from sqlite --to postgres. To begin anew on purpose, move ${file} away first.`,
  );
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}
