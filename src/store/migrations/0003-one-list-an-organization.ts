import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';

const tables = [
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
    for (const statement of tables) await sql.raw(statement).execute(db);
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
