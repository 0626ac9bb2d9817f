/**
 * The end of a PostgreSQL whose installation was copied elsewhere. Every write begins with the one row of `store_version`: without
 * it, no server writes, also none that stood still meanwhile and knows nothing of the copy, and none starts.
 */
import { type Kysely, sql } from 'kysely';
import { DomainError } from '../../domain/error.ts';
import type { Schema } from '../schema.ts';
import type { Connections } from './dialect.ts';
import { dataVersion } from './queries.ts';

/** The version that a moment is of; undefined where writes were ended before. */
export async function versionOf(moment: Kysely<Schema>): Promise<number | undefined> {
  const { rows } = await sql<{ version: number }>`select version from store_version`.execute(moment);
  return rows[0]?.version;
}

/** Ends writes for good. Throws `invalid_state`, and ends nothing, where somebody wrote since that version. */
export async function endWrites({ transact }: Pick<Connections, 'transact'>, since: number): Promise<void> {
  await transact(
    async (db) => {
      // This transaction is one more.
      if ((await dataVersion(db)) !== since + 1)
        throw new DomainError(
          'invalid_state',
          'A server wrote to the PostgreSQL while it was copied, so the copy is not all of it. Stop every server, and repeat this.',
        );
      await sql`delete from store_version`.execute(db);
    },
    { flush: true },
  );
}
