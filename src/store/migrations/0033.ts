/** Step 33 of the schema. A released step is never edited. */
import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/** The groups that the issuer said of people, the clients it says them to, and what rules gave for them. */
export const groups: Migration = {
  async up(db: Kysely<unknown>) {
    await sql`create table person_groups (
      user_id text primary key references users (id),
      issuer text not null,
      claim text not null,
      groups text,
      token_at text not null,
      seen_at text,
      fault text,
      fault_at text
    )`.execute(db);
    await sql`create table group_clients (
      issuer text not null,
      claim text not null,
      client text not null,
      seen_at text not null,
      primary key (issuer, claim, client)
    )`.execute(db);
    await sql`create table rule_memberships (
      org_id text not null references organizations (id),
      user_id text not null references users (id),
      role text not null,
      permissions text not null,
      groups text not null,
      by_hand text,
      kept_since text,
      updated_at text not null,
      primary key (org_id, user_id)
    )`.execute(db);
    await sql`create index rule_memberships_by_user on rule_memberships (user_id)`.execute(db);
  },
};
