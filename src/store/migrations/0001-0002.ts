/** The first two steps of the schema. A released step is never edited. */
import { createHash } from 'node:crypto';
import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/** A step that is statements alone. */
function step(statements: readonly string[]): Migration {
  return {
    async up(db: Kysely<unknown>) {
      for (const statement of statements) await sql.raw(statement).execute(db);
    },
  };
}

export const firstSchema = step([
  `create table users (
    id text primary key,
    kind text not null,
    primary_email text not null unique,
    display_name text not null,
    preferred_username text,
    login_shell text not null,
    lifecycle_state text not null,
    created_at text not null,
    updated_at text not null
  )`,
  `create table identities (
    issuer text not null,
    subject text not null,
    user_id text not null references users (id),
    created_at text not null,
    primary key (issuer, subject)
  )`,
  'create index identities_by_user on identities (user_id)',
  `create table staff_permissions (
    user_id text not null references users (id),
    permission text not null,
    primary key (user_id, permission)
  )`,
  `create table organizations (
    id text primary key,
    slug text not null unique,
    display_name text not null,
    lifecycle_state text not null,
    created_by_user_id text not null references users (id),
    created_at text not null,
    updated_at text not null
  )`,
  `create table auto_join_domains (
    domain text primary key,
    org_id text not null references organizations (id)
  )`,
  `create table memberships (
    org_id text not null references organizations (id),
    user_id text not null references users (id),
    role text not null,
    lifecycle_state text not null,
    created_at text not null,
    updated_at text not null,
    primary key (org_id, user_id)
  )`,
  'create index memberships_by_user on memberships (user_id)',
  `create table member_permissions (
    org_id text not null,
    user_id text not null,
    permission text not null,
    primary key (org_id, user_id, permission),
    foreign key (org_id, user_id) references memberships (org_id, user_id)
  )`,
  `create table organization_usernames (
    id text primary key,
    org_id text not null references organizations (id),
    user_id text not null references users (id),
    username text not null,
    source text not null,
    lifecycle_state text not null,
    uid integer unique,
    created_at text not null,
    frozen_at text,
    unique (org_id, user_id),
    unique (org_id, username)
  )`,
  `create table ssh_keys (
    id text primary key,
    user_id text not null references users (id),
    key_type text not null,
    public_material text not null unique,
    fingerprint text not null unique,
    lifecycle_state text not null,
    revoked_at text,
    created_at text not null,
    created_by_user_id text not null references users (id),
    created_command_id text not null,
    source_revision integer not null
  )`,
  'create index ssh_keys_by_user on ssh_keys (user_id, id)',
  `create table ssh_key_sets (
    user_id text primary key references users (id),
    generation integer not null,
    source_hash text not null,
    created_at text not null
  )`,
  `create table commands (
    id text primary key,
    actor_user_id text not null references users (id),
    idempotency_key text not null,
    operation text not null,
    request_hash text not null,
    result text not null,
    created_at text not null,
    unique (actor_user_id, idempotency_key)
  )`,
  `create table audit_entries (
    seq integer primary key,
    at text not null,
    actor_user_id text not null references users (id),
    command_id text,
    operation text not null,
    target text not null,
    reason text not null,
    source_address text not null,
    result text not null
  )`,
  `create table clusters (
    id text primary key,
    organization_id text not null references organizations (id),
    name text not null unique,
    site_id text not null,
    site_name text not null,
    scheduler text,
    driver text not null,
    state text not null,
    reason_code text,
    expected_node_count integer,
    assigned_node_count integer not null,
    reservation_id text,
    infrastructure_ready_at text,
    teardown_completed_at text,
    cleanup_state text,
    end_command_id text,
    version integer not null,
    kubernetes_version text not null,
    version_generation integer not null,
    desired_generation integer not null,
    scheduler_generation integer not null,
    lifecycle_version integer not null,
    kubelet_version text not null,
    created_at text not null,
    updated_at text not null
  )`,
  'create index clusters_by_organization on clusters (organization_id, created_at, id)',
  `create table resource_grants (
    id text primary key,
    resource_kind text not null,
    resource_id text not null references clusters (id),
    user_id text not null references users (id),
    relation text not null,
    scope text,
    role_id text,
    expires_at text,
    granted_by text not null references users (id),
    granted_at text not null,
    revoked_at text
  )`,
  'create index resource_grants_by_user on resource_grants (user_id, resource_id)',
  'create index resource_grants_by_resource on resource_grants (resource_id)',
  `create table access_lists (
    cluster_id text primary key references clusters (id),
    generation integer not null,
    source_hash text not null,
    accepted_generation integer not null,
    desired_generation integer not null,
    rejection text,
    updated_at text not null
  )`,
  `create table access_list_users (
    cluster_id text not null references access_lists (cluster_id),
    user_id text not null references users (id),
    username text not null,
    access_mode text not null,
    desired_login_state text not null,
    ssh_key_set_generation integer not null,
    shell text not null,
    primary key (cluster_id, user_id)
  )`,
  `create table observations (
    cluster_id text primary key references clusters (id),
    observed_at text not null,
    manifest_generation integer not null,
    desired_generation integer not null,
    failure text,
    report text not null
  )`,
  `create table observed_accounts (
    cluster_id text not null references clusters (id),
    user_id text not null references users (id),
    ssh_key_set_generation integer not null,
    key_fingerprints text not null,
    shell text not null,
    login_state text not null,
    primary key (cluster_id, user_id)
  )`,
  `create table counters (
    name text primary key,
    value integer not null
  )`,
  `create table passwords (
    user_id text primary key references users (id),
    hash text not null,
    updated_at text not null
  )`,
  `create table issuer_records (
    model text not null,
    id text not null,
    payload text not null,
    grant_id text,
    user_code text,
    uid text,
    expires_at integer,
    consumed_at integer,
    primary key (model, id)
  )`,
  'create index issuer_records_by_grant on issuer_records (grant_id)',
  'create index issuer_records_by_user_code on issuer_records (user_code)',
  'create index issuer_records_by_uid on issuer_records (uid)',
  'create index issuer_records_by_expiry on issuer_records (expires_at)',
  "insert into counters (name, value) values ('uid', 20000)",
  `insert into users (id, kind, primary_email, display_name, login_shell, lifecycle_state, created_at, updated_at)
   values ('user_00000000000000000000000000', 'system', 'installation@andromeda.invalid', 'The installation itself',
   '/usr/sbin/nologin', 'active', '1970-01-01T00:00:00.000Z', '1970-01-01T00:00:00.000Z')`,
]);

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
