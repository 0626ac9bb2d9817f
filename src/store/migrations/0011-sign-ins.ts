import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/** When each person last signed in. Nobody knows of the past, so that everyone counts as having done so now. */
export const signIns: Migration = {
  async up(db: Kysely<unknown>) {
    await sql.raw('alter table users add column last_sign_in_at text').execute(db);
    await sql`update users set last_sign_in_at = ${new Date().toISOString()}`.execute(db);
  },
};
