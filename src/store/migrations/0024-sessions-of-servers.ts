import type { Kysely } from 'kysely';
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/** Which server has an open session, who wants it closed, and limits that servers count together. */
export const sessionsOfServers: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of statements) await sql.raw(statement).execute(db);
  },
};

const statements = [
  'alter table open_sessions add column server_id text',
  // The word to the person.
  'alter table open_sessions add column closing text',
  // Of the entry that closed it in its server's place, and when that was.
  'alter table open_sessions add column presumed_seq integer',
  'alter table open_sessions add column presumed_at text',
  'alter table console_sessions add column renewing_until text',
  `create table limit_counts (
    name text not null,
    key text not null,
    failures integer not null,
    at integer not null,
    expires_at integer not null,
    primary key (name, key)
  )`,
  'create index limit_counts_by_end on limit_counts (expires_at)',
];
