import type { Kysely } from 'kysely';
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/** What a server says of itself that the others compare: how its clock and its configuration are. */
export const whatServersSay: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of statements) await sql.raw(statement).execute(db);
  },
};

const statements = [
  // In ms, by which the database's clock is ahead of the server's.
  'alter table servers add column clock_differs_ms integer',
  // What has to be the same on all of them, as JSON.
  'alter table servers add column settings text',
];
