import { createHash } from 'node:crypto';
import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';

const before = [
  'alter table audit_entries add column organization_id text',
  'alter table audit_entries add column cluster_id text',
  'alter table audit_entries add column subject_user_id text',
  "alter table audit_entries add column details text not null default ''",
  "alter table audit_entries add column hash text not null default ''",
];

const after = [
  'create index audit_entries_by_actor on audit_entries (actor_user_id, seq)',
  'create index audit_entries_by_subject on audit_entries (subject_user_id, seq)',
  'create index audit_entries_by_cluster on audit_entries (cluster_id, seq)',
  `create trigger audit_entries_stay before update on audit_entries
   begin select raise(abort, 'the audit trail is append-only'); end`,
  `create trigger audit_entries_remain before delete on audit_entries
   begin select raise(abort, 'the audit trail is append-only'); end`,
  `create table reservations (
    id text primary key,
    organization_id text not null references organizations (id),
    cluster_id text not null references clusters (id),
    node_count integer not null,
    state text not null,
    created_at text not null,
    ends_at text,
    ended_at text
  )`,
  'create index reservations_by_organization on reservations (organization_id)',
  'create index reservations_by_cluster on reservations (cluster_id)',
  `create table machines (
    id text primary key,
    cluster_id text not null references clusters (id),
    name text not null,
    lifecycle_state text not null,
    retired_at text,
    report text,
    report_generation integer not null,
    observed_at text,
    created_at text not null,
    updated_at text not null,
    unique (cluster_id, name)
  )`,
  `create table storage_quotes (
    id text primary key,
    organization_id text not null references organizations (id),
    cluster_id text not null references clusters (id),
    storage_type text not null,
    bytes integer not null,
    current_bytes integer not null,
    created_by_user_id text not null references users (id),
    created_at text not null,
    expires_at text not null
  )`,
  `create table storage_purchases (
    id text primary key,
    organization_id text not null references organizations (id),
    cluster_id text not null references clusters (id),
    quote_id text not null unique references storage_quotes (id),
    storage_type text not null,
    bytes integer not null,
    state text not null,
    created_by_user_id text not null references users (id),
    created_at text not null,
    decided_by_user_id text references users (id),
    decided_at text
  )`,
  'create index storage_purchases_by_organization on storage_purchases (organization_id)',
  'create index storage_purchases_by_cluster on storage_purchases (cluster_id)',
  'create index clusters_by_reservation on clusters (reservation_id)',
];

/** An entry as it was then. */
type Entry = Record<(typeof hashed)[number], string | number | null>;

const hashed = [
  'seq',
  'at',
  'actor_user_id',
  'command_id',
  'operation',
  'target',
  'organization_id',
  'cluster_id',
  'subject_user_id',
  'reason',
  'source_address',
  'result',
  'details',
] as const;

function hashOf(previous: string, entry: Entry): string {
  const fields = [previous, ...hashed.map((name) => entry[name])];
  return `sha256:${createHash('sha256').update(JSON.stringify(fields)).digest('hex')}`;
}

/** What operators work with, and the audit trail as a chain; entries from before are chained as they stand. */
export const operators: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of before) await sql.raw(statement).execute(db);
    const { rows } = await sql<Entry>`select * from audit_entries order by seq`.execute(db);
    let previous = '';
    for (const entry of rows) {
      previous = hashOf(previous, entry);
      await sql`update audit_entries set hash = ${previous} where seq = ${entry.seq}`.execute(db);
    }
    for (const statement of after) await sql.raw(statement).execute(db);
  },
};
