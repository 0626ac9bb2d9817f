import type { Kysely } from 'kysely';
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/** The service's own secrets, encrypted, where several servers share the database; and which keys each server uses. */
export const secrets: Migration = {
  async up(db: Kysely<unknown>) {
    await sql
      .raw(
        `create table secrets (
          name text primary key not null,
          ciphertext text not null,
          key_id text not null,
          version integer not null,
          created_at text not null,
          updated_at text not null
        )`,
      )
      .execute(db);
    await sql
      .raw(
        `create table server_keys (
          server_id text not null,
          kind text not null,
          in_use text not null,
          primary key (server_id, kind)
        )`,
      )
      .execute(db);
  },
};
