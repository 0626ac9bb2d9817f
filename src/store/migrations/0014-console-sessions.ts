import type { Kysely } from 'kysely';
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/** Browsers that are signed in to the web console. Their tokens are encrypted with what only the browser has. */
export const consoleSessions: Migration = {
  async up(db: Kysely<unknown>) {
    await sql
      .raw(
        `create table console_sessions (
          id text primary key not null,
          user_id text not null references users (id),
          sealed text not null,
          address text not null,
          program text not null,
          created_at text not null,
          seen_at text not null
        )`,
      )
      .execute(db);
    await sql.raw('create index console_sessions_of on console_sessions (user_id)').execute(db);
  },
};
