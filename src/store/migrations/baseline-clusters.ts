/** Migration 1, the second part: clusters, and access to them. */
export const clusterBaseline = `
create table clusters (
  id text primary key not null,
  organization_id text not null references organizations (id),
  name text not null unique,
  site_id text not null,
  site_name text not null,
  scheduler text, -- 'sunk' | 'kubernetes'
  -- The driver's settings: the lab file's simulated, slurm or kubernetes section, as JSON.
  driver text not null,
  state text not null, -- 'provisioning' | 'active' | 'releasing' | 'released'
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

-- Accounts that hosts had before us and that may be ours by now.
create table adopted_accounts (
  cluster_id text not null references clusters (id),
  user_id text not null references users (id),
  username text not null,
  uid integer not null,
  gid integer not null,
  -- 1: adoptPrivileged had its name, now or before.
  privileged integer not null,
  -- 1: a release hands it back.
  hand_back integer not null,
  primary key (cluster_id, user_id)
);

-- Kubernetes access to one cluster or one of its namespaces, with or without membership.
create table resource_grants (
  id text primary key not null,
  resource_id text not null references clusters (id),
  user_id text not null references users (id),
  relation text not null, -- 'kubernetes.viewer' | 'kubernetes.developer' | 'kubernetes.admin'
  scope text,
  role_id text,
  expires_at text,
  granted_by text not null references users (id),
  granted_at text not null,
  revoked_at text
);
create index resource_grants_by_user on resource_grants (user_id, resource_id);
create index resource_grants_by_resource on resource_grants (resource_id);

-- A member's request for permissions: for how long, and on account of which cluster.
create table access_requests (
  id text primary key not null,
  org_id text not null references organizations (id),
  user_id text not null references users (id),
  cluster_id text references clusters (id),
  -- JSON, in order.
  permissions text not null,
  -- From the approval on; null: without an end.
  hours integer,
  reason text not null,
  state text not null, -- 'open' | 'approved' | 'declined' | 'withdrawn'
  created_at text not null,
  decided_at text,
  decided_by_user_id text references users (id),
  decision_reason text,
  -- The end of what was approved; null: it has none.
  expires_at text
);
create index access_requests_of_organization on access_requests (org_id, state);
create index access_requests_of_person on access_requests (user_id);

-- A cluster's access list, and how far its delivery has come. Its people are those of the organization; a
-- withdrawn one is empty.
create table access_lists (
  cluster_id text primary key not null references clusters (id),
  generation integer not null,
  desired_generation integer not null,
  withdrawn integer not null, -- 0 | 1
  updated_at text not null
);

-- The version of an organization's access list; it rises with every change.
create table organization_access_lists (
  org_id text primary key not null references organizations (id),
  version integer not null
);

-- A person on the access lists of an organization's clusters: from one version on, and until another, or
-- still. Past entries are kept for as long as a cluster is at their version.
create table access_list_users (
  org_id text not null references organizations (id),
  user_id text not null references users (id),
  since_version integer not null,
  until_version integer,
  username text not null,
  access_mode text not null, -- 'use' | 'admin'
  desired_login_state text not null, -- 'ready' | 'waiting_for_key'
  ssh_key_set_generation integer not null,
  -- JSON; of the active keys, oldest first.
  key_fingerprints text not null,
  shell text not null,
  primary key (org_id, user_id, since_version)
);
create unique index access_list_users_current on access_list_users (org_id, user_id)
  where until_version is null;
create index access_list_users_by_since on access_list_users (org_id, since_version);
create index access_list_users_by_until on access_list_users (org_id, until_version)
  where until_version is not null;

-- The last report of a side of a cluster: report is the whole of it as JSON, the columns serve queries by
-- key. Its accounts are those of list_version (0: of none), except for those that it reports by name.
create table observations (
  cluster_id text not null references clusters (id),
  side text not null, -- 'slurm' | 'kubernetes'
  observed_at text not null,
  manifest_generation integer not null,
  desired_generation integer not null,
  list_version integer not null,
  failure text,
  report text not null,
  primary key (cluster_id, side)
);

-- A person's account that a cluster reports by name, in place of the one in its list version.
create table observed_accounts (
  cluster_id text not null references clusters (id),
  user_id text not null references users (id),
  ssh_key_set_generation integer not null,
  key_fingerprints text not null,
  shell text not null,
  login_state text not null, -- 'ready' | 'waiting_for_key'
  primary key (cluster_id, user_id)
);

-- The last failures to observe and to change a side of a cluster, as text; null: none.
create table cluster_sides (
  cluster_id text not null references clusters (id),
  side text not null, -- 'slurm' | 'kubernetes'
  look_failure text,
  look_failed_since text,
  apply_failure text,
  -- done: nothing of ours is left there.
  cleanup text,
  -- The IDs of people's permissions that are in force, as JSON; null until a pass has reported them.
  bound text,
  primary key (cluster_id, side)
);

-- A machine of a cluster, known since its cluster first reported it. report is the last report of it, as
-- JSON.
create table machines (
  id text primary key not null,
  cluster_id text not null references clusters (id),
  name text not null,
  lifecycle_state text not null, -- 'registered' | 'admitted' | 'quarantined'
  retired_at text,
  report text,
  report_generation integer not null,
  observed_at text,
  created_at text not null,
  updated_at text not null,
  unique (cluster_id, name)
);

-- GPU time of a cluster on one day, in UTC.
create table gpu_days (
  cluster_id text not null references clusters (id),
  day text not null,
  source text not null, -- 'slurmdbd' | 'observed'
  -- JSON: seconds, times GPUs, by login name.
  seconds text not null,
  primary key (cluster_id, day)
);

-- A cluster's Slurm configuration as JSON; none while it was never written.
create table scheduler_configurations (
  cluster_id text primary key not null references clusters (id),
  configuration text not null,
  updated_by_user_id text not null references users (id),
  updated_at text not null
);

-- A Slurm configuration that a cluster was given; generation is the cluster's scheduler_generation from
-- then on.
create table slurm_configuration_versions (
  cluster_id text not null references clusters (id),
  generation integer not null,
  -- The cluster's desired_generation from then on.
  desired_generation integer not null,
  configuration text not null,
  bytes integer not null,
  -- How it differed from the one before, as JSON.
  changes text not null,
  user_id text not null references users (id),
  -- The audit entry of it, which has the reason; null where there is none.
  audit_seq integer,
  created_at text not null,
  primary key (cluster_id, generation)
);

-- The Slurm configuration that an organization's new clusters start with, as JSON.
create table default_scheduler_configurations (
  organization_id text primary key not null references organizations (id),
  configuration text not null,
  updated_by_user_id text not null references users (id),
  updated_at text not null
);

-- A quote for more storage, as an organization got it; valid until expires_at, and once.
create table storage_quotes (
  id text primary key not null,
  organization_id text not null references organizations (id),
  cluster_id text not null references clusters (id),
  storage_type text not null, -- 'ceph' | 'nfs'
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
  storage_type text not null, -- 'ceph' | 'nfs'
  bytes integer not null,
  state text not null, -- 'requested' | 'active' | 'declined'
  created_by_user_id text not null references users (id),
  created_at text not null,
  decided_by_user_id text references users (id),
  decided_at text
);
create index storage_purchases_by_organization on storage_purchases (organization_id);
create index storage_purchases_by_cluster on storage_purchases (cluster_id);
`;
