/** Steps 14 to 27 of the schema. A released step is never edited. */
import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/** A step that is statements alone. */
function step(statements: readonly string[]): Migration {
  return {
    async up(db: Kysely<unknown>) {
      for (const statement of statements) await sql.raw(statement).execute(db);
    },
  };
}

/** Browsers that are signed in to the web console. Their tokens are encrypted with what only the browser has. */
export const consoleSessions = step([
  `create table console_sessions (
          id text primary key not null,
          user_id text not null references users (id),
          sealed text not null,
          address text not null,
          program text not null,
          created_at text not null,
          seen_at text not null
        )`,
  'create index console_sessions_of on console_sessions (user_id)',
]);

/** Permissions of members that end by themselves, and what members ask for. */
export const accessRequests = step([
  'alter table member_permissions add column expires_at text',
  `create index member_permissions_that_end on member_permissions (expires_at, org_id)
       where expires_at is not null`,
  `create table access_requests (
        id text primary key not null,
        org_id text not null references organizations (id),
        user_id text not null references users (id),
        cluster_id text references clusters (id),
        permissions text not null,
        hours integer,
        reason text not null,
        state text not null check (state in ('open', 'approved', 'declined', 'withdrawn')),
        created_at text not null,
        decided_at text,
        decided_by_user_id text references users (id),
        decision_reason text,
        expires_at text
      )`,
  'create index access_requests_of_organization on access_requests (org_id, state)',
  'create index access_requests_of_person on access_requests (user_id)',
]);

/** The Slurm configurations that clusters were given, with who gave them. */
export const slurmConfigurationVersions = step([
  `create table slurm_configuration_versions (
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
  )`,
  // What stands is the first that is known of; who set it is, why is not.
  `insert into slurm_configuration_versions
    select s.cluster_id, c.scheduler_generation, c.desired_generation, s.configuration, length(s.configuration), '[]',
      s.updated_by_user_id, null, s.updated_at
    from scheduler_configurations s join clusters c on c.id = s.cluster_id`,
]);

/**
 * What SSH sessions were, in columns; how much goes on, in intervals; when clusters dropped revoked keys; and the trail by
 * operation. Sessions that ended before are in the trail as they were.
 */
export const pastSessions = step([
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
]);

/**
 * A number for each organization that rises with every change of its member lists, so that a list of thousands is made anew
 * only then. Triggers raise it: code that forgot to would leave stale lists on show.
 */
export const memberVersions = step([
  `create table member_versions (
    org_id text primary key not null references organizations (id),
    version integer not null
  )`,
  ...['memberships', 'organization_usernames', 'member_permissions'].flatMap((table) => [
    trigger(table, 'insert', 'new.org_id'),
    trigger(table, 'update', 'new.org_id'),
    trigger(table, 'delete', 'old.org_id'),
  ]),
  `create trigger users_raise_member_versions after update of primary_email on users
    when old.primary_email is not new.primary_email
    begin
      update member_versions set version = version + 1
        where org_id in (select org_id from memberships where user_id = new.id);
    end`,
]);

function trigger(table: string, event: string, organization: string): string {
  return `create trigger ${table}_raise_member_versions_on_${event} after ${event} on ${table}
    begin
      insert into member_versions (org_id, version) values (${organization}, 1)
        on conflict (org_id) do update set version = version + 1;
    end`;
}

/**
 * The servers that share this database, what one of them at a time may do, and the hosts on which a cluster has something of
 * ours, which every server must know of. And the oldest program that the schema serves.
 */
export const servers = step([
  // `directory`: which data directory it has, as one server at a time does.
  `create table servers (
    id text primary key not null,
    name text not null,
    version text not null,
    directory text not null,
    started_at text not null,
    seen_at text not null
  )`,
  // Rows stay, so that no token is ever given twice. `server_id` null: no server has the lease.
  `create table leases (
    name text primary key not null,
    server_id text,
    token integer not null,
    taken_at text not null
  )`,
  `create table managed_hosts (
    cluster_id text not null references clusters (id),
    address text not null,
    host text not null,
    primary key (cluster_id, address)
  )`,
  // One row: the last step of the oldest program that can work with this schema.
  `create table schema_support (
    oldest text primary key not null
  )`,
]);

/** The service's own secrets, encrypted, where several servers share the database; and which keys each server uses. */
export const secrets = step([
  `create table secrets (
          name text primary key not null,
          ciphertext text not null,
          key_id text not null,
          version integer not null,
          created_at text not null,
          updated_at text not null
        )`,
  `create table server_keys (
          server_id text not null,
          kind text not null,
          in_use text not null,
          primary key (server_id, kind)
        )`,
]);

/** Which server has an open session, who wants it closed, and limits that servers count together. */
export const sessionsOfServers = step([
  'alter table open_sessions add column server_id text',
  // The word to the person.
  'alter table open_sessions add column closing text',
  // Of the entry that closed it in its server's place, and when that was.
  'alter table open_sessions add column presumed_seq integer',
  'alter table open_sessions add column presumed_at text',
  'alter table console_sessions add column renewing_until text',
  `create table limit_counts (
    name text not null,
    key text not null,
    failures integer not null,
    at integer not null,
    expires_at integer not null,
    primary key (name, key)
  )`,
  'create index limit_counts_by_end on limit_counts (expires_at)',
]);

/** Files of the console's pages, which servers of other versions answer for as well. */
export const consoleFiles = step([
  `create table console_files (
          path text primary key not null,
          type text not null,
          tag text not null,
          packed text not null,
          named_at text not null
        )`,
]);

/** What a server says of itself that the others compare: how its clock and its configuration are. */
export const whatServersSay = step([
  // In ms, by which the database's clock is ahead of the server's.
  'alter table servers add column clock_differs_ms integer',
  // What has to be the same on all of them, as JSON.
  'alter table servers add column settings text',
]);

/** Reservations end with the lab file, and no longer at a time: takes those away whose time was up by now. */
export const endedReservations: Migration = {
  async up(db: Kysely<unknown>) {
    const now = new Date().toISOString();
    await sql`update clusters set reservation_id = null, version = version + 1
      where reservation_id in (select id from reservations where ends_at <= ${now})`.execute(db);
  },
};
