/** Steps 3 to 13 of the schema. A released step is never edited. */
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

const listTables = [
  'alter table access_list_users rename to access_list_users_by_cluster',
  `create table organization_access_lists (
    org_id text primary key references organizations (id),
    version integer not null
  )`,
  `create table access_list_users (
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
  )`,
  `create unique index access_list_users_current on access_list_users (org_id, user_id)
   where until_version is null`,
  'create index access_list_users_by_since on access_list_users (org_id, since_version)',
  `create index access_list_users_by_until on access_list_users (org_id, until_version)
   where until_version is not null`,
  `create index organization_usernames_without_uid on organization_usernames (org_id, user_id)
   where uid is null`,
  'alter table access_lists add column withdrawn integer not null default 0',
  'alter table observations add column list_version integer not null default 0',
];

const cleanUp = [
  'drop table access_list_users_by_cluster',
  'alter table access_lists drop column source_hash',
];

interface OldList {
  cluster_id: string;
  organization_id: string;
  source_hash: string;
}

/**
 * The users of a list, once an organization and not once a cluster. An organization's newest list is taken for all its
 * clusters; only one that was different rises to the next generation.
 */
export const oneListAnOrganization: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of listTables) await sql.raw(statement).execute(db);
    const { rows: lists } = await sql<OldList>`
      select l.cluster_id, l.source_hash, c.organization_id
      from access_lists l join clusters c on c.id = l.cluster_id
      order by l.updated_at desc, l.cluster_id`.execute(db);
    const newest = new Map<string, OldList>();
    for (const list of lists) {
      const first = newest.get(list.organization_id);
      if (!first) {
        newest.set(list.organization_id, list);
        await copyUsers(db, list);
      } else if (first.source_hash !== list.source_hash) {
        await sql`update access_lists set generation = generation + 1 where cluster_id = ${list.cluster_id}`.execute(
          db,
        );
      }
    }
    for (const statement of cleanUp) await sql.raw(statement).execute(db);
  },
};

async function copyUsers(db: Kysely<unknown>, list: OldList): Promise<void> {
  const orgId = list.organization_id;
  await sql`insert into organization_access_lists (org_id, version) values (${orgId}, 1)`.execute(db);
  await sql`
    insert into access_list_users (org_id, user_id, since_version, until_version, username, access_mode,
      desired_login_state, ssh_key_set_generation, key_fingerprints, shell)
    select ${orgId}, user_id, 1, null, username, access_mode, desired_login_state, ssh_key_set_generation, '[]', shell
    from access_list_users_by_cluster where cluster_id = ${list.cluster_id}`.execute(db);
  const { rows: keys } = await sql<{ user_id: string; fingerprint: string }>`
    select k.user_id, k.fingerprint from ssh_keys k
    join access_list_users l on l.org_id = ${orgId} and l.user_id = k.user_id
    where k.lifecycle_state = 'active' order by k.id`.execute(db);
  const fingerprints = new Map<string, string[]>();
  for (const { user_id, fingerprint } of keys) {
    fingerprints.set(user_id, [...(fingerprints.get(user_id) ?? []), fingerprint]);
  }
  for (const [userId, theirs] of fingerprints) {
    await sql`update access_list_users set key_fingerprints = ${JSON.stringify(theirs)}
      where org_id = ${orgId} and user_id = ${userId}`.execute(db);
  }
}

/** Slurm configurations of clusters, and those that an organization's new clusters start with. */
export const slurmConfigurations = step([
  `create table scheduler_configurations (
    cluster_id text primary key references clusters (id),
    configuration text not null,
    updated_by_user_id text not null references users (id),
    updated_at text not null
  )`,
  `create table default_scheduler_configurations (
    organization_id text primary key references organizations (id),
    configuration text not null,
    updated_by_user_id text not null references users (id),
    updated_at text not null
  )`,
]);

/** `insert or replace` drops a row without asking the triggers against that; so entries may only be added at the end. */
export const auditGrows = step([
  `create trigger audit_entries_grow before insert on audit_entries
        when new.seq <= (select coalesce(max(seq), 0) from audit_entries)
        begin select raise(abort, 'the audit trail is append-only'); end`,
]);

/** Sessions that have no closing entry in the audit trail yet; `entry` is the opening one, as JSON. */
export const openSessions: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('open_sessions')
      .addColumn('id', 'text', (column) => column.primaryKey())
      .addColumn('entry', 'text', (column) => column.notNull())
      .execute();
  },
};

/** Signed heads of the audit trail, and how much of the trail each destination has been sent. */
export const auditHeads: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('audit_heads')
      .addColumn('seq', 'integer', (column) => column.primaryKey())
      .addColumn('hash', 'text', (column) => column.notNull())
      .addColumn('at', 'text', (column) => column.notNull())
      .addColumn('key', 'text', (column) => column.notNull())
      .addColumn('signature', 'text', (column) => column.notNull())
      .execute();
    await db.schema
      .createTable('audit_positions')
      .addColumn('destination', 'text', (column) => column.primaryKey())
      .addColumn('entry_seq', 'integer', (column) => column.notNull())
      .addColumn('head_seq', 'integer', (column) => column.notNull())
      .execute();
  },
};

const sideTables = [
  'alter table observations rename to observations_by_cluster',
  `create table observations (
    cluster_id text not null references clusters (id),
    side text not null,
    observed_at text not null,
    manifest_generation integer not null,
    desired_generation integer not null,
    list_version integer not null,
    failure text,
    report text not null,
    primary key (cluster_id, side)
  )`,
  `create table cluster_sides (
    cluster_id text not null references clusters (id),
    side text not null,
    look_failure text,
    look_failed_since text,
    apply_failure text,
    cleanup text,
    primary key (cluster_id, side)
  )`,
];

interface OldRow {
  cluster_id: string;
  scheduler: string | null;
  driver: string;
  observed_at: string;
  manifest_generation: number;
  desired_generation: number;
  list_version: number;
  failure: string | null;
  report: string;
}

/**
 * A report for each side of a cluster. The one on record becomes the report of the side that it is of; where a cluster
 * has both, each side keeps its part, so that logins and kubeconfigs go on working until the next look.
 */
export const reportsBySide: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of sideTables) await sql.raw(statement).execute(db);
    const { rows } = await sql<OldRow>`
      select o.*, c.scheduler, c.driver
      from observations_by_cluster o join clusters c on c.id = o.cluster_id`.execute(db);
    for (const row of rows) {
      const settings = JSON.parse(row.driver) as { slurm?: object; kubernetes?: object };
      const isBoth = settings.slurm !== undefined && settings.kubernetes !== undefined;
      const hasSlurm = settings.slurm !== undefined || (!settings.kubernetes && row.scheduler === 'sunk');
      if (hasSlurm) await insertReport(db, row, 'slurm', isBoth);
      if (isBoth || !hasSlurm) await insertReport(db, row, 'kubernetes', isBoth);
    }
    await sql.raw('drop table observations_by_cluster').execute(db);
  },
};

async function insertReport(db: Kysely<unknown>, row: OldRow, side: string, isBoth: boolean): Promise<void> {
  const { kubernetesFailure = null, ...report } = JSON.parse(row.report) as Record<string, unknown>;
  const isSlurm = side === 'slurm';
  const failure = isSlurm ? row.failure : kubernetesFailure;
  if (isBoth) {
    // Which side said what of these is not known; the next look tells.
    delete report['machines'];
    delete report['partialMachines'];
    if (isSlurm) delete report['kubernetes'];
    else delete report['scheduler'];
  }
  const text = JSON.stringify({ ...report, failure });
  await sql`
    insert into observations values (${row.cluster_id}, ${side}, ${row.observed_at},
      ${isSlurm ? row.manifest_generation : 0}, ${row.desired_generation}, ${isSlurm ? row.list_version : 0},
      ${failure}, ${text})`.execute(db);
}

/** The IDs of people's Kubernetes permissions that are in force on a cluster, as JSON; null until a pass has reported them. */
export const boundPermissions = step(['alter table cluster_sides add column bound text']);

/**
 * How often each password was changed, which sign-ins are compared with. Those that were over by the time of the last
 * change go: they name no number, which counts as 0.
 */
export const passwordGenerations = step([
  'alter table passwords add column generation integer not null default 0',
  `delete from issuer_records where model in ('RefreshToken', 'DeviceCode') and exists (
        select 1 from passwords where user_id = issuer_records.payload ->> '$.accountId'
        and cast(strftime('%s', updated_at) as integer) > issuer_records.payload ->> '$.authTime')`,
]);

/** When each person last signed in. Past sign-ins are unknown, so everyone counts as having signed in now. */
export const signIns: Migration = {
  async up(db: Kysely<unknown>) {
    await sql.raw('alter table users add column last_sign_in_at text').execute(db);
    await sql`update users set last_sign_in_at = ${new Date().toISOString()}`.execute(db);
  },
};

/** The hash of the last entry that a destination has, so that another one of its number is known. Unknown so far: ''. */
export const auditPositionHashes = step([
  "alter table audit_positions add column entry_hash text not null default ''",
]);

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
export const retention = step([
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
]);
