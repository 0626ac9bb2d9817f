/** Steps 35 and 36 of the schema: what an identity provider pushes over SCIM, and reviews of members' access. */
import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';

const statements = [
  `create table scim_tokens (
    hash text primary key,
    created_at text not null
  )`,
  `create table scim_users (
    user_id text primary key references users (id),
    user_name text not null unique,
    external_id text,
    attributes text not null,
    is_behind integer not null default 0,
    created_at text not null,
    updated_at text not null
  )`,
  'create index scim_users_by_external_id on scim_users (external_id)',
  `create table scim_groups (
    id text primary key,
    display_name text not null,
    external_id text,
    created_at text not null,
    updated_at text not null
  )`,
  `create table scim_group_members (
    group_id text not null references scim_groups (id),
    user_id text not null references users (id),
    primary key (group_id, user_id)
  )`,
  'create index scim_group_members_by_user on scim_group_members (user_id)',
];

/** Tokens of identity providers, the people that they push, and groups with their members. */
export const scim: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of statements) await sql.raw(statement).execute(db);
  },
};

/** When a member's access was confirmed last, since when that is asked for, and the end that a missed review gave. */
export const memberReviews: Migration = {
  async up(db: Kysely<unknown>) {
    for (const column of ['confirmed_at', 'review_asked_at', 'review_ends_at'])
      await sql.raw(`alter table memberships add column ${column} text`).execute(db);
  },
};
