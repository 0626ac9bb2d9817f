import type { Kysely } from 'kysely';
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/** Permissions of members that end by themselves, and what members ask for. */
export const accessRequests: Migration = {
  async up(db: Kysely<unknown>) {
    const statements = [
      'alter table member_permissions add column expires_at text',
      `create index member_permissions_that_end on member_permissions (expires_at, org_id)
       where expires_at is not null`,
      `create table access_requests (
        id text primary key not null,
        org_id text not null references organizations (id),
        user_id text not null references users (id),
        cluster_id text references clusters (id),
        permissions text not null,
        hours integer,
        reason text not null,
        state text not null check (state in ('open', 'approved', 'declined', 'withdrawn')),
        created_at text not null,
        decided_at text,
        decided_by_user_id text references users (id),
        decision_reason text,
        expires_at text
      )`,
      'create index access_requests_of_organization on access_requests (org_id, state)',
      'create index access_requests_of_person on access_requests (user_id)',
    ];
    for (const statement of statements) await sql.raw(statement).execute(db);
  },
};
