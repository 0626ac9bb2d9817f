/** Migration 1, the first part: people and organizations. `npm run generate` makes Kysely's types of the tables from it. */
export const baseline = `
-- A person. The installation itself has a row too (kind system): it cannot sign in, and owns what files
-- make.
create table users (
  id text primary key not null,
  kind text not null, -- 'person' | 'system'
  primary_email text not null unique,
  display_name text not null,
  preferred_username text,
  login_shell text not null,
  lifecycle_state text not null, -- 'active' | 'deactivated'
  created_at text not null,
  updated_at text not null,
  -- Null until the first sign-in.
  last_sign_in_at text,
  -- Until when access does not lapse without a sign-in.
  sign_in_exempt_until text,
  -- When all sign-ins of the person were ended: no token from before counts.
  signed_out_at text,
  -- When the names of the person were erased.
  erased_at text
);
insert into users (id, kind, primary_email, display_name, login_shell, lifecycle_state, created_at, updated_at)
  values ('user_00000000000000000000000000', 'system', 'installation@andromeda.invalid', 'The installation itself',
    '/usr/sbin/nologin', 'active', '1970-01-01T00:00:00.000Z', '1970-01-01T00:00:00.000Z');

-- A former name of a person or of an account of theirs, whatever changed it; kept until they are erased.
create table former_names (
  user_id text not null,
  name text not null,
  primary key (user_id, name)
);
create trigger users_keep_former_names after update on users
  when old.primary_email is not new.primary_email or old.display_name is not new.display_name
    or old.preferred_username is not new.preferred_username
  begin insert into former_names (user_id, name)
    values (old.id, old.primary_email), (old.id, old.display_name), (old.id, coalesce(old.preferred_username, ''))
    on conflict do nothing; end;

-- The person of a token, by its issuer and subject; bound at the first call.
create table identities (
  issuer text not null,
  subject text not null,
  user_id text not null references users (id),
  created_at text not null,
  primary key (issuer, subject)
);
create index identities_by_user on identities (user_id);
${keepFormer('subject', 'identities', 'delete')}

create table staff_permissions (
  user_id text not null references users (id),
  permission text not null, -- 'staff.read' | 'staff.audit' | 'staff.operate'
  primary key (user_id, permission)
);

create table organizations (
  id text primary key not null,
  slug text not null unique,
  display_name text not null,
  lifecycle_state text not null, -- 'active' | 'retired'
  created_by_user_id text not null references users (id),
  created_at text not null,
  updated_at text not null,
  -- The most hours that its members' access lasts without a sign-in; null: as the installation says.
  max_hours_without_sign_in integer
);

create table auto_join_domains (
  domain text primary key not null,
  org_id text not null references organizations (id)
);

create table memberships (
  org_id text not null references organizations (id),
  user_id text not null references users (id),
  role text not null, -- 'owner' | 'admin' | 'member'
  lifecycle_state text not null, -- 'active' | 'removed'
  created_at text not null,
  updated_at text not null,
  -- The start of the months to the next review: the last change by hand, or the end that the last review
  -- gave, also to come.
  review_from text not null,
  primary key (org_id, user_id)
);
create index memberships_by_user on memberships (user_id);

-- The ledger of what members hold: who gave what, since when, until when. A row is never changed but to end it. What
-- is in force is what hand and rules give together (combined); its role is in memberships as well, for joins.
create table holdings (
  org_id text not null,
  user_id text not null,
  kind text not null, -- 'member' | 'username' | 'role' | 'permission'
  -- The login name, the role or the permission's key; empty for a member.
  what text not null,
  source text not null, -- 'hand' | 'rule' | 'kept'
  -- JSON: for which groups rules give the role; null: they do not.
  groups text,
  since text not null,
  -- From here on it is held no more, though the row stays open until the next change; null: it has no end.
  expires_at text,
  -- When it was taken away or given otherwise; null: it was not.
  ended_at text,
  primary key (org_id, user_id, kind, what, source, since),
  foreign key (org_id, user_id) references memberships (org_id, user_id)
);
-- Covers all columns that lists of permissions and logins read.
create index holdings_open on holdings (org_id, kind, user_id, what, source, expires_at, ended_at)
  where ended_at is null;
create index holdings_that_end on holdings (expires_at) where expires_at is not null and ended_at is null;
create index holdings_that_end_by_organization on holdings (org_id, expires_at)
  where expires_at is not null and ended_at is null;
create index holdings_of_rules on holdings (user_id) where groups is not null and ended_at is null;

-- One row a person and organization, never deleted: a frozen name is never given to another person, and the
-- numbers, given by an operator or a directory or allocated on the first accepted list, stay theirs for good.
create table organization_usernames (
  id text primary key not null,
  org_id text not null references organizations (id),
  user_id text not null references users (id),
  username text not null,
  source text not null,
  lifecycle_state text not null, -- 'reserved' | 'frozen'
  uid integer,
  -- Null: as the uid.
  gid integer,
  -- 1: an operator or a directory gave the numbers.
  given integer not null default 0,
  created_at text not null,
  frozen_at text,
  unique (org_id, user_id),
  unique (org_id, username),
  unique (org_id, uid)
);
${keepFormer('username', 'organization_usernames', 'update')}
${keepFormer('username', 'organization_usernames', 'delete')}
create index organization_usernames_reserved on organization_usernames (org_id, user_id)
  where lifecycle_state = 'reserved';
create index organization_usernames_by_uid on organization_usernames (uid);
create index organization_usernames_by_gid on organization_usernames (gid) where gid is not null;

-- A POSIX group on an organization's Slurm clusters. Never deleted: no other one gets its name or number.
create table teams (
  org_id text not null references organizations (id),
  name text not null,
  gid integer not null,
  -- 1: everyone in the organization is in it, and it has no members of its own.
  is_whole integer not null,
  created_at text not null,
  ended_at text,
  primary key (org_id, name),
  unique (org_id, gid)
);
create index teams_by_gid on teams (gid);
create table team_members (
  org_id text not null,
  name text not null,
  user_id text not null references users (id),
  primary key (org_id, name, user_id),
  foreign key (org_id, name) references teams (org_id, name)
);

-- Triggers raise it with every change of an organization's member lists. An organization without a row has no
-- members.
create table member_versions (
  org_id text primary key not null references organizations (id),
  version integer not null
);
${raise('memberships')}
${raise('organization_usernames')}
${raise('holdings')}
create trigger users_raise_member_versions after update of primary_email on users
  when old.primary_email is not new.primary_email
  begin update member_versions set version = version + 1
    where org_id in (select org_id from memberships where user_id = new.id); end;

-- The groups that the issuer last sent of a person, and the fault of what it sent after that.
create table person_groups (
  user_id text primary key not null references users (id),
  issuer text not null,
  claim text not null,
  -- JSON, in order; null: none were ever sent.
  groups text,
  -- When the token with them, or with the fault, was issued.
  token_at text not null,
  -- Null: the groups in the newest token were accepted.
  fault text,
  fault_at text
);

-- A client whose tokens, or userinfo, have had the claim.
create table group_clients (
  issuer text not null,
  claim text not null,
  client text not null,
  primary key (issuer, claim, client)
);

create table ssh_keys (
  id text primary key not null,
  user_id text not null references users (id),
  key_type text not null, -- 'ssh-ed25519' | 'sk-ssh-ed25519@openssh.com'
  public_material text not null,
  fingerprint text not null unique,
  lifecycle_state text not null, -- 'active' | 'revoked'
  revoked_at text,
  created_at text not null,
  created_by_user_id text not null references users (id),
  created_command_id text not null,
  source_revision integer not null,
  label text,
  -- The address that registered it; null where that is not known.
  created_from text,
  -- The last login with it and where that came from; null where none is known.
  last_used_at text,
  last_used_from text
);
create index ssh_keys_by_user on ssh_keys (user_id, id);

create table ssh_key_sets (
  user_id text primary key not null references users (id),
  generation integer not null,
  source_hash text not null,
  created_at text not null
);
`;

/** A trigger that keeps the former name of a person when a row is changed or deleted. */
function keepFormer(column: string, table: string, event: string): string {
  return `create trigger ${table}_keep_former_names_on_${event} after ${event} on ${table}
  begin insert into former_names (user_id, name) values (old.user_id, old.${column}) on conflict do nothing; end;`;
}

/** Triggers raise the version of an organization's members: code that forgot to would leave stale lists on show. */
function raise(table: string): string {
  const on = (event: string, row: string) =>
    `create trigger ${table}_raise_member_versions_on_${event} after ${event} on ${table}
  begin insert into member_versions (org_id, version) values (${row}.org_id, 1)
    on conflict (org_id) do update set version = version + 1; end;`;
  return [on('insert', 'new'), on('update', 'new'), on('delete', 'old')].join('\n');
}
