/** Migration 1, the second half: what the service keeps for itself, as `engine/service-tables.ts` has it. */
export const serviceBaseline = `
create table counters (
  name text primary key not null,
  value integer not null
);
insert into counters (name, value) values ('uid', 20000);

create table commands (
  id text primary key not null,
  actor_user_id text not null references users (id),
  idempotency_key text not null,
  operation text not null,
  request_hash text not null,
  result text not null,
  created_at text not null,
  unique (actor_user_id, idempotency_key)
);

create table audit_entries (
  seq integer primary key not null,
  at text not null,
  actor_user_id text not null references users (id),
  command_id text,
  operation text not null,
  target text not null,
  organization_id text,
  cluster_id text,
  subject_user_id text,
  reason text not null,
  source_address text not null,
  result text not null,
  details text not null,
  hash text not null,
  redaction text
);
create index audit_entries_by_actor on audit_entries (actor_user_id, seq);
create index audit_entries_by_operation on audit_entries (operation, seq);
create index audit_entries_by_subject on audit_entries (subject_user_id, seq)
  where subject_user_id <> actor_user_id;
create index audit_entries_by_cluster on audit_entries (cluster_id, seq) where cluster_id is not null;

create table audit_heads (
  seq integer primary key not null,
  hash text not null,
  at text not null,
  key text not null,
  signature text not null
);

create table audit_checkpoints (
  seq integer primary key not null,
  hash text not null,
  at text not null,
  key text not null,
  signature text not null
);

create table audit_copies (
  file text primary key not null,
  entry_seq integer not null,
  head_seq integer not null
);

-- "insert or replace" drops a row without asking the triggers against that; so entries may only be added at the end.
create trigger audit_entries_grow before insert on audit_entries
  when new.seq <= (select coalesce(max(seq), 0) from audit_entries)
  begin select raise(abort, 'the audit trail is append-only'); end;
-- Texts of an entry may be replaced where a signed redaction says so.
create trigger audit_entries_stay before update on audit_entries
  when new.redaction is null or new.seq is not old.seq or new.at is not old.at
    or new.actor_user_id is not old.actor_user_id or new.command_id is not old.command_id
    or new.operation is not old.operation or new.organization_id is not old.organization_id
    or new.cluster_id is not old.cluster_id or new.subject_user_id is not old.subject_user_id
    or new.result is not old.result or new.hash is not old.hash
  begin select raise(abort, 'the audit trail is append-only'); end;
-- Entries may go up to a signed checkpoint.
create trigger audit_entries_remain before delete on audit_entries
  when old.seq > (select coalesce(max(seq), 0) from audit_checkpoints)
  begin select raise(abort, 'the audit trail is append-only'); end;

create table erasures (
  user_id text primary key not null references users (id),
  names text not null,
  next_seq integer not null,
  until_seq integer not null
);

create table unbound_identities (
  issuer text not null,
  subject text not null,
  user_id text not null references users (id),
  created_at text not null,
  primary key (issuer, subject)
);

create table passwords (
  user_id text primary key not null references users (id),
  hash text not null,
  updated_at text not null,
  generation integer not null
);

create table issuer_records (
  model text not null,
  id text not null,
  payload text not null,
  grant_id text,
  user_code text,
  uid text,
  expires_at integer,
  consumed_at integer,
  primary key (model, id)
);
create index issuer_records_by_grant on issuer_records (grant_id);
create index issuer_records_by_user_code on issuer_records (user_code);
create index issuer_records_by_uid on issuer_records (uid);
create index issuer_records_by_expiry on issuer_records (expires_at);

create table console_sessions (
  id text primary key not null,
  user_id text not null references users (id),
  sealed text not null,
  address text not null,
  program text not null,
  created_at text not null,
  seen_at text not null,
  renewing_until text
);
create index console_sessions_of on console_sessions (user_id);

create table console_files (
  path text primary key not null,
  type text not null,
  tag text not null,
  packed text not null,
  named_at text not null
);

create table limit_counts (
  name text not null,
  key text not null,
  failures integer not null,
  at integer not null,
  expires_at integer not null,
  primary key (name, key)
);
create index limit_counts_by_end on limit_counts (expires_at);

create table servers (
  id text primary key not null,
  name text not null,
  version text not null,
  directory text not null,
  started_at text not null,
  seen_at text not null,
  clock_differs_ms integer,
  settings text not null
);

create table leases (
  name text primary key not null,
  server_id text,
  token integer not null
);

create table managed_hosts (
  cluster_id text not null references clusters (id),
  address text not null,
  host text not null,
  primary key (cluster_id, address)
);

-- One row: the last migration of the oldest program that can work with this schema.
create table schema_support (
  oldest text primary key not null
);

create table secrets (
  name text primary key not null,
  ciphertext text not null,
  key_id text not null,
  version integer not null,
  created_at text not null,
  updated_at text not null
);

create table open_sessions (
  id text primary key not null,
  entry text not null,
  server_id text not null,
  closing text,
  presumed_seq integer,
  presumed_at text
);

create table ssh_sessions (
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
  job text,
  job_node text,
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
);
create index ssh_sessions_of on ssh_sessions (user_id, seq);
create index ssh_sessions_on on ssh_sessions (cluster_id, seq);
create index ssh_sessions_from on ssh_sessions (remote_address, seq);

create table key_drops (
  cluster_id text not null,
  key_id text not null references ssh_keys (id),
  user_id text not null references users (id),
  version integer not null,
  dropped_at text,
  primary key (cluster_id, key_id)
);
create index key_drops_waiting on key_drops (cluster_id) where dropped_at is null;
create index key_drops_of on key_drops (user_id, key_id);
`;
