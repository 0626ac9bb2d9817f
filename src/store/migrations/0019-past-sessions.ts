import type { Kysely } from 'kysely';
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/**
 * What SSH sessions were, in columns; how much goes on, in intervals; when clusters dropped revoked keys; and the trail by
 * operation. Sessions that ended before are in the trail as they were.
 */
export const pastSessions: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of statements) await sql.raw(statement).execute(db);
  },
};

const statements = [
  // `seq` is that of the entry of its end in the audit trail. What is not known is null.
  `create table ssh_sessions (
    seq integer primary key not null,
    id text not null,
    cluster_id text not null,
    organization_id text,
    user_id text not null,
    username text not null,
    key_id text not null,
    fingerprint text not null,
    remote_address text not null,
    login_node text not null,
    opened_at text not null,
    closed_at text not null,
    end_reason text not null,
    bytes_up integer,
    bytes_down integer,
    shells integer,
    file_transfers integer,
    command_count integer,
    commands text not null,
    forward_count integer,
    forwards text not null
  )`,
  'create index ssh_sessions_of on ssh_sessions (user_id, seq)',
  'create index ssh_sessions_on on ssh_sessions (cluster_id, seq)',
  'create index ssh_sessions_from on ssh_sessions (remote_address, seq)',
  `create table activity (
    step integer not null,
    at text not null,
    logins integer not null,
    refused integer not null,
    watched integer not null,
    behind integer not null,
    failing integer not null,
    primary key (step, at)
  )`,
  `create table key_drops (
    cluster_id text not null,
    key_id text not null references ssh_keys (id),
    user_id text not null references users (id),
    version integer not null,
    dropped_at text,
    primary key (cluster_id, key_id)
  )`,
  'create index key_drops_waiting on key_drops (cluster_id) where dropped_at is null',
  'create index key_drops_of on key_drops (user_id, key_id)',
  'create index audit_entries_by_operation on audit_entries (operation, seq)',
];
