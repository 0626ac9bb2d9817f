import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';

const columnsThatStay = [
  'seq',
  'at',
  'actor_user_id',
  'command_id',
  'operation',
  'organization_id',
  'cluster_id',
  'subject_user_id',
  'result',
  'hash',
];

/**
 * Entries of the audit trail may go up to a signed checkpoint, and texts of an entry may be replaced where a signed redaction
 * says so; the database still refuses every other change. And what erasing a person needs.
 */
export const retention: Migration = {
  async up(db: Kysely<unknown>) {
    const statements = [
      'alter table audit_entries add column redaction text',
      `create table audit_checkpoints (
        seq integer primary key,
        hash text not null,
        at text not null,
        key text not null,
        signature text not null
      )`,
      'drop trigger audit_entries_stay',
      'drop trigger audit_entries_remain',
      `create trigger audit_entries_stay before update on audit_entries
       when new.redaction is null or ${columnsThatStay.map((name) => `new.${name} is not old.${name}`).join(' or ')}
       begin select raise(abort, 'the audit trail is append-only'); end`,
      `create trigger audit_entries_remain before delete on audit_entries
       when old.seq > (select coalesce(max(seq), 0) from audit_checkpoints)
       begin select raise(abort, 'the audit trail is append-only'); end`,
      'alter table users add column erased_at text',
      `create table erasures (
        user_id text primary key references users (id),
        names text not null,
        next_seq integer not null,
        until_seq integer not null
      )`,
      `create table unbound_identities (
        issuer text not null,
        subject text not null,
        user_id text not null references users (id),
        created_at text not null,
        primary key (issuer, subject)
      )`,
    ];
    for (const statement of statements) await sql.raw(statement).execute(db);
  },
};
