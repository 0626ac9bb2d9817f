/** Migration 1, the first half: people, organizations and clusters, as `engine/schema.ts` has them. */
export const baseline = `
create table users (
  id text primary key not null,
  kind text not null,
  primary_email text not null unique,
  display_name text not null,
  preferred_username text,
  login_shell text not null,
  lifecycle_state text not null,
  created_at text not null,
  updated_at text not null,
  last_sign_in_at text,
  sign_in_exempt_until text,
  signed_out_at text,
  erased_at text
);
insert into users (id, kind, primary_email, display_name, login_shell, lifecycle_state, created_at, updated_at)
  values ('user_00000000000000000000000000', 'system', 'installation@andromeda.invalid', 'The installation itself',
    '/usr/sbin/nologin', 'active', '1970-01-01T00:00:00.000Z', '1970-01-01T00:00:00.000Z');

create table identities (
  issuer text not null,
  subject text not null,
  user_id text not null references users (id),
  created_at text not null,
  primary key (issuer, subject)
);
create index identities_by_user on identities (user_id);

create table staff_permissions (
  user_id text not null references users (id),
  permission text not null,
  primary key (user_id, permission)
);

create table organizations (
  id text primary key not null,
  slug text not null unique,
  display_name text not null,
  lifecycle_state text not null,
  created_by_user_id text not null references users (id),
  created_at text not null,
  updated_at text not null,
  max_hours_without_sign_in integer
);

create table auto_join_domains (
  domain text primary key not null,
  org_id text not null references organizations (id)
);

create table memberships (
  org_id text not null references organizations (id),
  user_id text not null references users (id),
  role text not null,
  lifecycle_state text not null,
  created_at text not null,
  updated_at text not null,
  review_from text not null,
  primary key (org_id, user_id)
);
create index memberships_by_user on memberships (user_id);

create table member_permissions (
  org_id text not null,
  user_id text not null,
  permission text not null,
  expires_at text,
  primary key (org_id, user_id, permission),
  foreign key (org_id, user_id) references memberships (org_id, user_id)
);
create index member_permissions_that_end on member_permissions (expires_at, org_id)
  where expires_at is not null;

create table organization_usernames (
  id text primary key not null,
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
);
create index organization_usernames_without_uid on organization_usernames (org_id, user_id)
  where uid is null;

create table member_history (
  org_id text not null,
  user_id text not null,
  since text not null,
  until text,
  role text not null,
  username text,
  member_since text not null,
  permissions text not null,
  primary key (org_id, user_id, since)
);

create table member_versions (
  org_id text primary key not null references organizations (id),
  version integer not null
);
${raise('memberships')}
${raise('organization_usernames')}
${raise('member_permissions')}
create trigger users_raise_member_versions after update of primary_email on users
  when old.primary_email is not new.primary_email
  begin update member_versions set version = version + 1
    where org_id in (select org_id from memberships where user_id = new.id); end;

create table person_groups (
  user_id text primary key not null references users (id),
  issuer text not null,
  claim text not null,
  groups text,
  token_at text not null,
  fault text,
  fault_at text
);

create table group_clients (
  issuer text not null,
  claim text not null,
  client text not null,
  primary key (issuer, claim, client)
);

create table rule_memberships (
  org_id text not null references organizations (id),
  user_id text not null references users (id),
  role text not null,
  permissions text not null,
  groups text not null,
  by_hand text,
  kept_since text,
  primary key (org_id, user_id)
);
create index rule_memberships_by_user on rule_memberships (user_id);

create table ssh_keys (
  id text primary key not null,
  user_id text not null references users (id),
  key_type text not null,
  public_material text not null,
  fingerprint text not null unique,
  lifecycle_state text not null,
  revoked_at text,
  created_at text not null,
  created_by_user_id text not null references users (id),
  created_command_id text not null,
  source_revision integer not null,
  label text,
  created_from text,
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

create table clusters (
  id text primary key not null,
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
);
create index clusters_by_organization on clusters (organization_id, created_at, id);

create table resource_grants (
  id text primary key not null,
  resource_id text not null references clusters (id),
  user_id text not null references users (id),
  relation text not null,
  scope text,
  role_id text,
  expires_at text,
  granted_by text not null references users (id),
  granted_at text not null,
  revoked_at text
);
create index resource_grants_by_user on resource_grants (user_id, resource_id);
create index resource_grants_by_resource on resource_grants (resource_id);

create table access_requests (
  id text primary key not null,
  org_id text not null references organizations (id),
  user_id text not null references users (id),
  cluster_id text references clusters (id),
  permissions text not null,
  hours integer,
  reason text not null,
  state text not null,
  created_at text not null,
  decided_at text,
  decided_by_user_id text references users (id),
  decision_reason text,
  expires_at text
);
create index access_requests_of_organization on access_requests (org_id, state);
create index access_requests_of_person on access_requests (user_id);

create table access_lists (
  cluster_id text primary key not null references clusters (id),
  generation integer not null,
  accepted_generation integer not null,
  desired_generation integer not null,
  withdrawn integer not null,
  updated_at text not null
);

create table organization_access_lists (
  org_id text primary key not null references organizations (id),
  version integer not null
);

create table access_list_users (
  org_id text not null references organizations (id),
  user_id text not null references users (id),
  since_version integer not null,
  until_version integer,
  username text not null,
  access_mode text not null,
  desired_login_state text not null,
  ssh_key_set_generation integer not null,
  key_fingerprints text not null,
  shell text not null,
  primary key (org_id, user_id, since_version)
);
create unique index access_list_users_current on access_list_users (org_id, user_id)
  where until_version is null;
create index access_list_users_by_since on access_list_users (org_id, since_version);
create index access_list_users_by_until on access_list_users (org_id, until_version)
  where until_version is not null;

create table observations (
  cluster_id text not null references clusters (id),
  side text not null,
  observed_at text not null,
  manifest_generation integer not null,
  desired_generation integer not null,
  list_version integer not null,
  failure text,
  report text not null,
  primary key (cluster_id, side)
);

create table observed_accounts (
  cluster_id text not null references clusters (id),
  user_id text not null references users (id),
  ssh_key_set_generation integer not null,
  key_fingerprints text not null,
  shell text not null,
  login_state text not null,
  primary key (cluster_id, user_id)
);

create table cluster_sides (
  cluster_id text not null references clusters (id),
  side text not null,
  look_failure text,
  look_failed_since text,
  apply_failure text,
  cleanup text,
  bound text,
  primary key (cluster_id, side)
);

create table machines (
  id text primary key not null,
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
);

create table gpu_days (
  cluster_id text not null references clusters (id),
  day text not null,
  source text not null,
  seconds text not null,
  primary key (cluster_id, day)
);

create table scheduler_configurations (
  cluster_id text primary key not null references clusters (id),
  configuration text not null,
  updated_by_user_id text not null references users (id),
  updated_at text not null
);

create table slurm_configuration_versions (
  cluster_id text not null references clusters (id),
  generation integer not null,
  desired_generation integer not null,
  configuration text not null,
  bytes integer not null,
  changes text not null,
  user_id text not null references users (id),
  audit_seq integer,
  created_at text not null,
  primary key (cluster_id, generation)
);

create table default_scheduler_configurations (
  organization_id text primary key not null references organizations (id),
  configuration text not null,
  updated_by_user_id text not null references users (id),
  updated_at text not null
);

create table storage_quotes (
  id text primary key not null,
  organization_id text not null references organizations (id),
  cluster_id text not null references clusters (id),
  storage_type text not null,
  bytes integer not null,
  current_bytes integer not null,
  created_by_user_id text not null references users (id),
  created_at text not null,
  expires_at text not null
);

create table storage_purchases (
  id text primary key not null,
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
);
create index storage_purchases_by_organization on storage_purchases (organization_id);
create index storage_purchases_by_cluster on storage_purchases (cluster_id);
`;

/** Every change of an organization's members raises its version: code that forgot to would leave stale lists on show. */
function raise(table: string): string {
  const on = (event: string, row: string) =>
    `create trigger ${table}_raise_member_versions_on_${event} after ${event} on ${table}
  begin insert into member_versions (org_id, version) values (${row}.org_id, 1)
    on conflict (org_id) do update set version = version + 1; end;`;
  return [on('insert', 'new'), on('update', 'new'), on('delete', 'old')].join('\n');
}
