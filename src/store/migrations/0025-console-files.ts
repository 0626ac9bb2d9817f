import type { Kysely } from 'kysely';
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/** Files of the console's pages, which servers of other versions answer for as well. */
export const consoleFiles: Migration = {
  async up(db: Kysely<unknown>) {
    await sql
      .raw(
        `create table console_files (
          path text primary key not null,
          type text not null,
          tag text not null,
          packed text not null,
          named_at text not null
        )`,
      )
      .execute(db);
  },
};
