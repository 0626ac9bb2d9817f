/** Steps 28 to 32 of the schema. A released step is never edited. */
import { type Kysely, SqliteAdapter, sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/** SQLite cannot drop a constraint, so that the table is made anew; and what refers to it would refuse that. */
const onSqlite = [
  `create table ssh_keys_once (
    id text primary key,
    user_id text not null references users (id),
    key_type text not null,
    public_material text not null,
    fingerprint text not null unique,
    lifecycle_state text not null,
    revoked_at text,
    created_at text not null,
    created_by_user_id text not null references users (id),
    created_command_id text not null,
    source_revision integer not null
  )`,
  'insert into ssh_keys_once select * from ssh_keys',
  'create table key_drops_kept as select * from key_drops',
  'delete from key_drops',
  'drop table ssh_keys',
  'alter table ssh_keys_once rename to ssh_keys',
  'insert into key_drops select * from key_drops_kept',
  'drop table key_drops_kept',
  'create index ssh_keys_by_user on ssh_keys (user_id, id)',
];

const onPostgres = ['alter table ssh_keys drop constraint ssh_keys_public_material_key'];

/**
 * Less to write for each change. A key is unique by its fingerprint, the hash of its text, which needs no index of its own. And
 * the trail's entries are found by cluster or subject only where they have one that the other indexes do not find.
 */
export const fewerIndexes: Migration = {
  async up(db: Kysely<unknown>) {
    const isSqlite = db.getExecutor().adapter instanceof SqliteAdapter;
    const statements = [
      ...(isSqlite ? onSqlite : onPostgres),
      'drop index audit_entries_by_subject',
      `create index audit_entries_by_subject on audit_entries (subject_user_id, seq)
        where subject_user_id <> actor_user_id`,
      'drop index audit_entries_by_cluster',
      'create index audit_entries_by_cluster on audit_entries (cluster_id, seq) where cluster_id is not null',
    ];
    for (const statement of statements) await sql.raw(statement).execute(db);
  },
};

/** A label of each SSH key, the address that added it, and its last use: when, and from which address. */
export const keyLabels: Migration = {
  async up(db: Kysely<unknown>) {
    for (const column of ['label', 'created_from', 'last_used_at', 'last_used_from'])
      await sql`alter table ssh_keys add column ${sql.id(column)} text`.execute(db);
    // Of sessions that are over, as far as they are kept.
    await sql`update ssh_keys set last_used_at = s.opened_at, last_used_from = s.remote_address
      from (select key_id, max(seq) as seq from ssh_sessions group by key_id) l
      join ssh_sessions s on s.seq = l.seq
      where s.key_id = ssh_keys.id`.execute(db);
  },
};

/** The Slurm job that a session ran in, and its node; null: it was on the login node. */
export const jobsOfSessions: Migration = {
  async up(db: Kysely<unknown>) {
    for (const column of ['job', 'job_node'])
      await sql`alter table ssh_sessions add column ${sql.id(column)} text`.execute(db);
  },
};

/** GPU time of each cluster by day. */
export const gpuDays: Migration = {
  async up(db: Kysely<unknown>) {
    await sql`create table gpu_days (
      cluster_id text not null references clusters (id),
      day text not null,
      source text not null,
      seconds text not null,
      primary key (cluster_id, day)
    )`.execute(db);
  },
};

/** How long a sign-in counts in an organization, in hours, and until when it does not matter for a person. */
export const signInWindows: Migration = {
  async up(db: Kysely<unknown>) {
    await sql`alter table organizations add column max_hours_without_sign_in integer`.execute(db);
    await sql`alter table users add column sign_in_exempt_until text`.execute(db);
  },
};
