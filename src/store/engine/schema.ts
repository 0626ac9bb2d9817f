/**
 * The tables as Kysely sees them. Columns are text and integer only, so that the same schema holds on SQLite and
 * PostgreSQL; times are RFC 3339 text in UTC with milliseconds, which sorts as it reads; IDs are made in code.
 */
import type { SshKeyType } from '../../domain/access/ssh-key.ts';
import type { Side } from '../../domain/clusters/cluster.ts';
import type { StaffKey } from '../../domain/people/person.ts';
import type { GroupSchema } from './group-tables.ts';
import type { ServiceSchema } from './service-tables.ts';

/** What a member asks for: permissions, for how long, and on account of which cluster. */
interface AccessRequestTable {
  id: string;
  org_id: string;
  user_id: string;
  cluster_id: string | null;
  /** JSON, in order. */
  permissions: string;
  /** From the approval on; null: without an end. */
  hours: number | null;
  reason: string;
  state: 'open' | 'approved' | 'declined' | 'withdrawn';
  created_at: string;
  decided_at: string | null;
  decided_by_user_id: string | null;
  decision_reason: string | null;
  /** Of what was approved; null: it has no end. */
  expires_at: string | null;
}

/** A person. The installation itself has a row too (`kind` system): it cannot sign in, and owns what files make. */
export interface UserTable {
  id: string;
  kind: 'person' | 'system';
  primary_email: string;
  display_name: string;
  preferred_username: string | null;
  login_shell: string;
  lifecycle_state: 'active' | 'deactivated';
  created_at: string;
  updated_at: string;
  /** Null until the first sign-in. */
  last_sign_in_at: string | null;
  /** Until when access does not lapse without a sign-in. */
  sign_in_exempt_until: string | null;
  /** When all that the person was signed in to was ended: no token from before counts. */
  signed_out_at: string | null;
  /** When what names the person was replaced. */
  erased_at: string | null;
}

/** Which token (issuer and subject) is which person; bound at the first call. */
interface IdentityTable {
  issuer: string;
  subject: string;
  user_id: string;
  created_at: string;
}

interface StaffPermissionTable {
  user_id: string;
  permission: StaffKey;
}

interface OrganizationTable {
  id: string;
  slug: string;
  display_name: string;
  lifecycle_state: 'active' | 'retired';
  created_by_user_id: string;
  created_at: string;
  updated_at: string;
  /** The most hours that its members' access lasts without a sign-in; null: as the installation says. */
  max_hours_without_sign_in: number | null;
}

interface AutoJoinDomainTable {
  domain: string;
  org_id: string;
}

export interface SshKeyTable {
  id: string;
  user_id: string;
  key_type: SshKeyType;
  public_material: string;
  fingerprint: string;
  lifecycle_state: 'active' | 'revoked';
  revoked_at: string | null;
  created_at: string;
  created_by_user_id: string;
  created_command_id: string;
  source_revision: number;
  label: string | null;
  /** The address that registered it; null where that is not known. */
  created_from: string | null;
  /** The last login with it and where that came from; null where none is known. */
  last_used_at: string | null;
  last_used_from: string | null;
}

export interface SshKeySetTable {
  user_id: string;
  generation: number;
  source_hash: string;
  created_at: string;
}

/** Kubernetes access to one cluster or one of its namespaces, with or without membership. */
interface ResourceGrantTable {
  id: string;
  resource_id: string;
  user_id: string;
  relation: 'kubernetes.viewer' | 'kubernetes.developer' | 'kubernetes.admin';
  scope: string | null;
  role_id: string | null;
  expires_at: string | null;
  granted_by: string;
  granted_at: string;
  revoked_at: string | null;
}

/** One Business write: what a replay is compared with and answered from. */
interface CommandTable {
  id: string;
  actor_user_id: string;
  idempotency_key: string;
  operation: string;
  request_hash: string;
  result: string;
  created_at: string;
}

/** A machine of a cluster, known since its cluster first reported it. `report` is the last report of it, as JSON. */
export interface MachineTable {
  id: string;
  cluster_id: string;
  name: string;
  lifecycle_state: 'registered' | 'admitted' | 'quarantined';
  retired_at: string | null;
  report: string | null;
  report_generation: number;
  observed_at: string | null;
  created_at: string;
  updated_at: string;
}

/** A quote for more storage, as an organization got it; valid until `expires_at`, and once. */
export interface StorageQuoteTable {
  id: string;
  organization_id: string;
  cluster_id: string;
  storage_type: 'ceph' | 'nfs';
  bytes: number;
  current_bytes: number;
  created_by_user_id: string;
  created_at: string;
  expires_at: string;
}

export interface StoragePurchaseTable {
  id: string;
  organization_id: string;
  cluster_id: string;
  quote_id: string;
  storage_type: 'ceph' | 'nfs';
  bytes: number;
  state: 'requested' | 'active' | 'declined';
  created_by_user_id: string;
  created_at: string;
  decided_by_user_id: string | null;
  decided_at: string | null;
}

export interface ClusterTable {
  id: string;
  organization_id: string;
  name: string;
  site_id: string;
  site_name: string;
  scheduler: 'sunk' | 'kubernetes' | null;
  /** How it is driven: the lab file's `simulated`, `slurm` or `kubernetes` section, as JSON. */
  driver: string;
  state: 'provisioning' | 'active' | 'releasing' | 'released';
  reason_code: string | null;
  expected_node_count: number | null;
  assigned_node_count: number;
  reservation_id: string | null;
  infrastructure_ready_at: string | null;
  teardown_completed_at: string | null;
  cleanup_state: string | null;
  end_command_id: string | null;
  version: number;
  kubernetes_version: string;
  version_generation: number;
  desired_generation: number;
  scheduler_generation: number;
  lifecycle_version: number;
  kubelet_version: string;
  created_at: string;
  updated_at: string;
}

/** A cluster's Slurm configuration as JSON; none while it was never written. */
interface SchedulerConfigurationTable {
  cluster_id: string;
  configuration: string;
  updated_by_user_id: string;
  updated_at: string;
}

/** A Slurm configuration that a cluster was given; `generation` is the cluster's `scheduler_generation` from then on. */
interface SlurmConfigurationVersionTable {
  cluster_id: string;
  generation: number;
  /** The cluster's `desired_generation` from then on. */
  desired_generation: number;
  configuration: string;
  bytes: number;
  /** How it differed from the one before, as JSON. */
  changes: string;
  user_id: string;
  /** The audit entry of it, which has the reason; null where there is none. */
  audit_seq: number | null;
  created_at: string;
}

/** The Slurm configuration that an organization's new clusters start with, as JSON. */
interface DefaultSchedulerConfigurationTable {
  organization_id: string;
  configuration: string;
  updated_by_user_id: string;
  updated_at: string;
}

/** A cluster's access list, and how far its delivery has come. Its people are those of the organization; a withdrawn one is empty. */
interface AccessListTable {
  cluster_id: string;
  generation: number;
  accepted_generation: number;
  desired_generation: number;
  withdrawn: 0 | 1;
  updated_at: string;
}

/** The version of an organization's access list; it rises with every change. */
interface OrganizationAccessListTable {
  org_id: string;
  version: number;
}

/**
 * A person on the access lists of an organization's clusters: from one version on, and until another, or still. Past
 * entries are kept for as long as a cluster is at their version.
 */
interface AccessListUserTable {
  org_id: string;
  user_id: string;
  since_version: number;
  until_version: number | null;
  username: string;
  access_mode: 'use' | 'admin';
  desired_login_state: 'ready' | 'waiting_for_key';
  ssh_key_set_generation: number;
  /** JSON; of the active keys, oldest first. */
  key_fingerprints: string;
  shell: string;
}

/**
 * What a side of a cluster last reported. `report` is the whole of it as JSON, the columns are what is asked for by key.
 * Its accounts are those of `list_version` (0: of none), but for the ones that it says something of its own about.
 */
export interface ObservationTable {
  cluster_id: string;
  side: Side;
  observed_at: string;
  manifest_generation: number;
  desired_generation: number;
  list_version: number;
  failure: string | null;
  report: string;
}

/** GPU time of a cluster on one day, in UTC. */
interface GpuDayTable {
  cluster_id: string;
  day: string;
  source: 'slurmdbd' | 'observed';
  /** JSON: seconds, times GPUs, by login name. */
  seconds: string;
}

/** What went wrong on a side of a cluster when it was last tried, in words; null: nothing. */
export interface ClusterSideTable {
  cluster_id: string;
  side: Side;
  look_failure: string | null;
  look_failed_since: string | null;
  apply_failure: string | null;
  /** `done`: nothing of ours is left there. */
  cleanup: string | null;
  /** The IDs of people's permissions that are in force, as JSON; null until a pass has reported them. */
  bound: string | null;
}

/** What a cluster says of a person by name, in place of what its list version says. */
interface ObservedAccountTable {
  cluster_id: string;
  user_id: string;
  ssh_key_set_generation: number;
  key_fingerprints: string;
  shell: string;
  login_state: 'ready' | 'waiting_for_key';
}

interface CounterTable {
  name: string;
  value: number;
}

export interface Schema extends ServiceSchema, GroupSchema {
  users: UserTable;
  identities: IdentityTable;
  staff_permissions: StaffPermissionTable;
  organizations: OrganizationTable;
  auto_join_domains: AutoJoinDomainTable;
  memberships: MembershipTable;
  member_permissions: MemberPermissionTable;
  member_versions: MemberVersionTable;
  organization_usernames: OrganizationUsernameTable;
  ssh_keys: SshKeyTable;
  ssh_key_sets: SshKeySetTable;
  resource_grants: ResourceGrantTable;
  commands: CommandTable;
  clusters: ClusterTable;
  scheduler_configurations: SchedulerConfigurationTable;
  slurm_configuration_versions: SlurmConfigurationVersionTable;
  default_scheduler_configurations: DefaultSchedulerConfigurationTable;
  access_lists: AccessListTable;
  access_list_users: AccessListUserTable;
  organization_access_lists: OrganizationAccessListTable;
  observations: ObservationTable;
  gpu_days: GpuDayTable;
  cluster_sides: ClusterSideTable;
  observed_accounts: ObservedAccountTable;
  machines: MachineTable;
  storage_quotes: StorageQuoteTable;
  storage_purchases: StoragePurchaseTable;
  counters: CounterTable;
  access_requests: AccessRequestTable;
}

// Who belongs to an organization, by which login name, and what they were granted.

interface MembershipTable {
  org_id: string;
  user_id: string;
  role: 'owner' | 'admin' | 'member';
  lifecycle_state: 'active' | 'removed';
  created_at: string;
  updated_at: string;
  /** From when the months to the next review count: the last change by hand, or the end that the last review gave, also to come. */
  review_from: string;
}

export interface MemberPermissionTable {
  org_id: string;
  user_id: string;
  permission: string;
  /** From here on it is held no more, though the row stays; null: it has no end. */
  expires_at: string | null;
}

/** Triggers raise it with every change of an organization's member lists. An organization without a row has no members. */
interface MemberVersionTable {
  org_id: string;
  version: number;
}

/**
 * One row a person and organization, never deleted: a frozen name is never given to another person, and the uid (also
 * the gid), allocated on the first accepted list, stays theirs for good.
 */
interface OrganizationUsernameTable {
  id: string;
  org_id: string;
  user_id: string;
  username: string;
  source: string;
  lifecycle_state: 'reserved' | 'frozen';
  uid: number | null;
  created_at: string;
  frozen_at: string | null;
}
