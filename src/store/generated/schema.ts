// Made by `npm run generate` from the migrations in src/store/migrations/. Edit those.

/** The tables as Kysely sees them. */
export interface Schema {
  /** A person. The installation itself has a row too (kind system): it cannot sign in, and owns what files make. */
  users: {
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
    /** When all sign-ins of the person were ended: no token from before counts. */
    signed_out_at: string | null;
    /** When the names of the person were erased. */
    erased_at: string | null;
  };
  /** A former name of a person or of an account of theirs, whatever changed it; kept until they are erased. */
  former_names: {
    user_id: string;
    name: string;
  };
  /** The person of a token, by its issuer and subject; bound at the first call. */
  identities: {
    issuer: string;
    subject: string;
    user_id: string;
    created_at: string;
  };
  staff_permissions: {
    user_id: string;
    permission: 'staff.read' | 'staff.audit' | 'staff.operate';
  };
  organizations: {
    id: string;
    slug: string;
    display_name: string;
    lifecycle_state: 'active' | 'retired';
    created_by_user_id: string;
    created_at: string;
    updated_at: string;
    /** The most hours that its members' access lasts without a sign-in; null: as the installation says. */
    max_hours_without_sign_in: number | null;
  };
  auto_join_domains: {
    domain: string;
    org_id: string;
  };
  memberships: {
    org_id: string;
    user_id: string;
    role: 'owner' | 'admin' | 'member';
    lifecycle_state: 'active' | 'removed';
    created_at: string;
    updated_at: string;
    /** The start of the months to the next review: the last change by hand, or the end that the last review gave, also to come. */
    review_from: string;
  };
  /** The ledger of what members hold: who gave what, since when, until when. A row is never changed but to end it. What is in force is what hand and rules give together (combined); its role is in memberships as well, for joins. */
  holdings: {
    org_id: string;
    user_id: string;
    kind: 'member' | 'username' | 'role' | 'permission';
    /** The login name, the role or the permission's key; empty for a member. */
    what: string;
    source: 'hand' | 'rule' | 'kept';
    /** JSON: for which groups rules give the role; null: they do not. */
    groups: string | null;
    since: string;
    /** From here on it is held no more, though the row stays open until the next change; null: it has no end. */
    expires_at: string | null;
    /** When it was taken away or given otherwise; null: it was not. */
    ended_at: string | null;
  };
  /** One row a person and organization, never deleted: a frozen name is never given to another person, and the numbers, given by an operator or a directory or allocated on the first accepted list, stay theirs for good. */
  organization_usernames: {
    id: string;
    org_id: string;
    user_id: string;
    username: string;
    source: string;
    lifecycle_state: 'reserved' | 'frozen';
    uid: number | null;
    /** Null: as the uid. */
    gid: number | null;
    /** 1: an operator or a directory gave the numbers. */
    given: number;
    created_at: string;
    frozen_at: string | null;
  };
  /** A POSIX group on an organization's Slurm clusters. Never deleted: no other one gets its name or number. */
  teams: {
    org_id: string;
    name: string;
    gid: number;
    /** 1: everyone in the organization is in it, and it has no members of its own. */
    is_whole: number;
    created_at: string;
    ended_at: string | null;
  };
  team_members: {
    org_id: string;
    name: string;
    user_id: string;
  };
  /** Triggers raise it with every change of an organization's member lists. An organization without a row has no members. */
  member_versions: {
    org_id: string;
    version: number;
  };
  /** The groups that the issuer last sent of a person, and the fault of what it sent after that. */
  person_groups: {
    user_id: string;
    issuer: string;
    claim: string;
    /** JSON, in order; null: none were ever sent. */
    groups: string | null;
    /** When the token with them, or with the fault, was issued. */
    token_at: string;
    /** Null: the groups in the newest token were accepted. */
    fault: string | null;
    fault_at: string | null;
  };
  /** A client whose tokens, or userinfo, have had the claim. */
  group_clients: {
    issuer: string;
    claim: string;
    client: string;
  };
  ssh_keys: {
    id: string;
    user_id: string;
    key_type: 'ssh-ed25519' | 'sk-ssh-ed25519@openssh.com';
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
  };
  ssh_key_sets: {
    user_id: string;
    generation: number;
    source_hash: string;
    created_at: string;
  };
  clusters: {
    id: string;
    organization_id: string;
    name: string;
    site_id: string;
    site_name: string;
    scheduler: 'sunk' | 'kubernetes' | null;
    /** The driver's settings: the lab file's simulated, slurm or kubernetes section, as JSON. */
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
  };
  /** Accounts that hosts had before us and that may be ours by now. */
  adopted_accounts: {
    cluster_id: string;
    user_id: string;
    username: string;
    uid: number;
    gid: number;
    /** 1: adoptPrivileged had its name, now or before. */
    privileged: number;
    /** 1: a release hands it back. */
    hand_back: number;
  };
  /** Kubernetes access to one cluster or one of its namespaces, with or without membership. */
  resource_grants: {
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
  };
  /** A member's request for permissions: for how long, and on account of which cluster. */
  access_requests: {
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
    /** The end of what was approved; null: it has none. */
    expires_at: string | null;
  };
  /** A cluster's access list, and how far its delivery has come. Its people are those of the organization; a withdrawn one is empty. */
  access_lists: {
    cluster_id: string;
    generation: number;
    desired_generation: number;
    withdrawn: 0 | 1;
    updated_at: string;
  };
  /** The version of an organization's access list; it rises with every change. */
  organization_access_lists: {
    org_id: string;
    version: number;
  };
  /** A person on the access lists of an organization's clusters: from one version on, and until another, or still. Past entries are kept for as long as a cluster is at their version. */
  access_list_users: {
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
  };
  /** The last report of a side of a cluster: report is the whole of it as JSON, the columns serve queries by key. Its accounts are those of list_version (0: of none), except for those that it reports by name. */
  observations: {
    cluster_id: string;
    side: 'slurm' | 'kubernetes';
    observed_at: string;
    manifest_generation: number;
    desired_generation: number;
    list_version: number;
    failure: string | null;
    report: string;
  };
  /** A person's account that a cluster reports by name, in place of the one in its list version. */
  observed_accounts: {
    cluster_id: string;
    user_id: string;
    ssh_key_set_generation: number;
    key_fingerprints: string;
    shell: string;
    login_state: 'ready' | 'waiting_for_key';
  };
  /** The last failures to observe and to change a side of a cluster, as text; null: none. */
  cluster_sides: {
    cluster_id: string;
    side: 'slurm' | 'kubernetes';
    look_failure: string | null;
    look_failed_since: string | null;
    apply_failure: string | null;
    /** done: nothing of ours is left there. */
    cleanup: string | null;
    /** The IDs of people's permissions that are in force, as JSON; null until a pass has reported them. */
    bound: string | null;
  };
  /** A machine of a cluster, known since its cluster first reported it. report is the last report of it, as JSON. */
  machines: {
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
  };
  /** GPU time of a cluster on one day, in UTC. */
  gpu_days: {
    cluster_id: string;
    day: string;
    source: 'slurmdbd' | 'observed';
    /** JSON: seconds, times GPUs, by login name. */
    seconds: string;
  };
  /** A cluster's Slurm configuration as JSON; none while it was never written. */
  scheduler_configurations: {
    cluster_id: string;
    configuration: string;
    updated_by_user_id: string;
    updated_at: string;
  };
  /** A Slurm configuration that a cluster was given; generation is the cluster's scheduler_generation from then on. */
  slurm_configuration_versions: {
    cluster_id: string;
    generation: number;
    /** The cluster's desired_generation from then on. */
    desired_generation: number;
    configuration: string;
    bytes: number;
    /** How it differed from the one before, as JSON. */
    changes: string;
    user_id: string;
    /** The audit entry of it, which has the reason; null where there is none. */
    audit_seq: number | null;
    created_at: string;
  };
  /** The Slurm configuration that an organization's new clusters start with, as JSON. */
  default_scheduler_configurations: {
    organization_id: string;
    configuration: string;
    updated_by_user_id: string;
    updated_at: string;
  };
  /** A quote for more storage, as an organization got it; valid until expires_at, and once. */
  storage_quotes: {
    id: string;
    organization_id: string;
    cluster_id: string;
    storage_type: 'ceph' | 'nfs';
    bytes: number;
    current_bytes: number;
    created_by_user_id: string;
    created_at: string;
    expires_at: string;
  };
  storage_purchases: {
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
  };
  counters: {
    name: string;
    value: number;
  };
  /** One Business write, with which a replay is compared, and from which it is answered. */
  commands: {
    id: string;
    actor_user_id: string;
    idempotency_key: string;
    operation: string;
    request_hash: string;
    result: string;
    created_at: string;
  };
  /** The audit trail: append-only, written in the transaction of the change, each entry chained to the last. */
  audit_entries: {
    seq: number;
    at: string;
    actor_user_id: string;
    command_id: string | null;
    operation: string;
    target: string;
    organization_id: string | null;
    cluster_id: string | null;
    subject_user_id: string | null;
    reason: string;
    source_address: string;
    result: string;
    details: string;
    hash: string;
    /** The signed redaction, as JSON, where texts of the entry were replaced. */
    redaction: string | null;
  };
  audit_heads: {
    seq: number;
    hash: string;
    at: string;
    key: string;
    signature: string;
  };
  audit_checkpoints: {
    seq: number;
    hash: string;
    at: string;
    key: string;
    signature: string;
  };
  /** The position of a file that copies the trail: its last entry, and its last head. */
  audit_copies: {
    file: string;
    entry_seq: number;
    head_seq: number;
  };
  /** The erasure of a person from the audit trail; the names are kept until it is done. */
  erasures: {
    user_id: string;
    /** JSON. */
    names: string;
    next_seq: number;
    until_seq: number;
  };
  /** An identity that an operator took from an account, and that is not bound again by its address. */
  unbound_identities: {
    issuer: string;
    subject: string;
    user_id: string;
    created_at: string;
  };
  /** The embedded issuer's password of a person: a scrypt hash with its parameters. */
  passwords: {
    user_id: string;
    hash: string;
    updated_at: string;
    /** How often it was changed. */
    generation: number;
  };
  /** Records of oidc-provider (sessions, grants, device codes, tokens), by its model's name and ID. */
  issuer_records: {
    model: string;
    id: string;
    payload: string;
    grant_id: string | null;
    user_code: string | null;
    uid: string | null;
    expires_at: number | null;
    consumed_at: number | null;
  };
  console_sessions: {
    /** The SHA-256 of what the browser shows. */
    id: string;
    user_id: string;
    /** Its tokens, encrypted with what the browser shows. */
    sealed: string;
    address: string;
    program: string;
    created_at: string;
    seen_at: string;
    /** Until when a server renews its tokens, and no other does. */
    renewing_until: string | null;
  };
  /** Tries by key, under a limit; times are ms since 1970. */
  limit_counts: {
    name: string;
    /** The SHA-256 of the key. */
    key: string;
    failures: number;
    /** Of the last failure, or when a rate is whole again. */
    at: number;
    expires_at: number;
  };
  servers: {
    id: string;
    name: string;
    version: string;
    /** The ID of its data directory: another server with the same one came after it. */
    directory: string;
    started_at: string;
    /** By the database's clock. */
    seen_at: string;
    /** How far the database's clock is ahead of its own; null until that was measured. */
    clock_differs_ms: number | null;
    /** The settings that have to be the same on all servers, as JSON. */
    settings: string;
  };
  /** One row: the server that does the work that is done once for all. */
  leader: {
    id: number;
    /** Null: none. */
    server_id: string | null;
    /** Rises each time a server takes the lead. */
    token: number;
  };
  /** A host that has something of ours. */
  managed_hosts: {
    cluster_id: string;
    address: string;
    /** The driver's description of it, as JSON. */
    host: string;
  };
  /** One row: the last migration of the oldest program that can work with this schema. */
  schema_support: {
    oldest: string;
  };
  /** Encrypted with a key that is not in the database. */
  secrets: {
    name: string;
    ciphertext: string;
    key_id: string;
    /** Rises with every change; authenticated with the text. */
    version: number;
    created_at: string;
    updated_at: string;
  };
  /** A session that has no closing entry in the audit trail yet. */
  open_sessions: {
    id: string;
    /** The audit entry of its opening, as JSON. */
    entry: string;
    /** The server that has it. */
    server_id: string;
    /** The message to the person with which its server is to close it; null: it is not. */
    closing: string | null;
    /** Its server was gone for so long that another closed it in the trail: the number of that entry, and when. */
    presumed_seq: number | null;
    presumed_at: string | null;
  };
  /** A session that is over. Unknown values are null, as where the service was cut off. */
  ssh_sessions: {
    /** Of the entry of its end in the audit trail. */
    seq: number;
    id: string;
    cluster_id: string;
    organization_id: string | null;
    user_id: string;
    username: string;
    key_id: string;
    fingerprint: string;
    remote_address: string;
    login_node: string;
    /** The job that the session ran in, and its node. */
    job: string | null;
    job_node: string | null;
    opened_at: string;
    closed_at: string;
    end_reason: string;
    bytes_up: number | null;
    bytes_down: number | null;
    shells: number | null;
    file_transfers: number | null;
    command_count: number | null;
    /** The first of them, as JSON. */
    commands: string;
    forward_count: number | null;
    /** JSON; "host:port", each once. */
    forwards: string;
  };
  /** People who have logged in to a cluster through the gateway, and when first. */
  gateway_logins: {
    cluster_id: string;
    user_id: string;
    first_at: string;
  };
  /** A revoked key that a cluster has or had: the list version without it, and when the cluster first reported that version. */
  key_drops: {
    cluster_id: string;
    key_id: string;
    user_id: string;
    version: number;
    dropped_at: string | null;
  };
}
