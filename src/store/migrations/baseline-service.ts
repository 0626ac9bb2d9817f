/** Migration 1, the third part: the service's own data. */
export const serviceBaseline = `
create table counters (
  name text primary key not null,
  value integer not null
);
insert into counters (name, value) values ('uid', 20000);

-- One Business write, with which a replay is compared, and from which it is answered.
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

-- The audit trail: append-only, written in the transaction of the change, each entry chained to the last.
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
  -- The signed redaction, as JSON, where texts of the entry were replaced.
  redaction text
);
create index audit_entries_by_actor on audit_entries (actor_user_id, seq);
create index audit_entries_by_result on audit_entries (actor_user_id, result, at);
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

-- The position of a file that copies the trail: its last entry, and its last head.
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

-- The erasure of a person from the audit trail; the names are kept until it is done.
create table erasures (
  user_id text primary key not null references users (id),
  -- JSON.
  names text not null,
  next_seq integer not null,
  until_seq integer not null
);

-- An identity that an operator took from an account, and that is not bound again by its address.
create table unbound_identities (
  issuer text not null,
  subject text not null,
  user_id text not null references users (id),
  created_at text not null,
  primary key (issuer, subject)
);

-- The embedded issuer's password of a person: a scrypt hash with its parameters.
create table passwords (
  user_id text primary key not null references users (id),
  hash text not null,
  updated_at text not null,
  -- How often it was changed.
  generation integer not null
);

-- Records of oidc-provider (sessions, grants, device codes, tokens), by its model's name and ID.
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
  -- The SHA-256 of what the browser shows.
  id text primary key not null,
  user_id text not null references users (id),
  -- Its tokens, encrypted with what the browser shows.
  sealed text not null,
  address text not null,
  program text not null,
  created_at text not null,
  seen_at text not null,
  -- Until when a server renews its tokens, and no other does.
  renewing_until text
);
create index console_sessions_of on console_sessions (user_id);

-- Tries by key, under a limit; times are ms since 1970.
create table limit_counts (
  name text not null,
  -- The SHA-256 of the key.
  key text not null,
  failures integer not null,
  -- Of the last failure, or when a rate is whole again.
  at integer not null,
  expires_at integer not null,
  primary key (name, key)
);
create index limit_counts_by_end on limit_counts (expires_at);

create table servers (
  id text primary key not null,
  name text not null,
  version text not null,
  -- The ID of its data directory: another server with the same one came after it.
  directory text not null,
  started_at text not null,
  -- By the database's clock.
  seen_at text not null,
  -- How far the database's clock is ahead of its own; null until that was measured.
  clock_differs_ms integer,
  -- The settings that have to be the same on all servers, as JSON.
  settings text not null
);

-- One row: the server that does the work that is done once for all.
create table leader (
  id integer primary key not null check (id = 1),
  -- Null: none.
  server_id text,
  -- Rises each time a server takes the lead.
  token integer not null
);

-- A host that has something of ours.
create table managed_hosts (
  cluster_id text not null references clusters (id),
  address text not null,
  -- The driver's description of it, as JSON.
  host text not null,
  primary key (cluster_id, address)
);

-- One row: the last migration of the oldest program that can work with this schema.
create table schema_support (
  oldest text primary key not null
);

-- Encrypted with a key that is not in the database.
create table secrets (
  name text primary key not null,
  ciphertext text not null,
  key_id text not null,
  -- Rises with every change; authenticated with the text.
  version integer not null,
  created_at text not null,
  updated_at text not null
);

-- A session that has no closing entry in the audit trail yet.
create table open_sessions (
  id text primary key not null,
  -- The audit entry of its opening, as JSON.
  entry text not null,
  -- The server that has it.
  server_id text not null,
  -- The message to the person with which its server is to close it; null: it is not.
  closing text,
  -- Its server was gone for so long that another closed it in the trail: the number of that entry, and when.
  presumed_seq integer,
  presumed_at text
);

-- A session that is over. Unknown values are null, as where the service was cut off.
create table ssh_sessions (
  -- Of the entry of its end in the audit trail.
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
  -- The job that the session ran in, and its node.
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
  -- The first of them, as JSON.
  commands text not null,
  forward_count integer,
  -- JSON; "host:port", each once.
  forwards text not null
);
create index ssh_sessions_of on ssh_sessions (user_id, seq);
create index ssh_sessions_on on ssh_sessions (cluster_id, seq);
create index ssh_sessions_from on ssh_sessions (remote_address, seq);

-- People who have logged in to a cluster through the gateway, and when first.
create table gateway_logins (
  cluster_id text not null references clusters (id),
  user_id text not null references users (id),
  first_at text not null,
  primary key (cluster_id, user_id)
);

-- A revoked key that a cluster has or had: the list version without it, and when the cluster first reported
-- that version.
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
