/**
 * Access lists. Business computes the list that the present truth asks for (`updateAccessList`), Platform accepts it
 * (`acceptAccessList`), and what it accepted is the manifest a driver applies (`findManifest`).
 */
import type { Selectable } from 'kysely';
import { type AccessListUser, accessListHash, accessListUsers, type Member } from '../domain/access-list.ts';
import type { Manifest } from '../domain/manifest.ts';
import { homeOf } from '../domain/username.ts';
import type { Reader, Store, Tx } from './index.ts';
import type { AccessListTable } from './schema.ts';
import { toTime } from './time.ts';

export type AccessList = Selectable<AccessListTable>;

/** A list's user as stored, with what was allocated once a list with them in it was accepted. */
export interface StoredListUser extends AccessListUser {
  uid: number | null;
}

/** The newest list of a cluster; undefined before the first. */
export async function findAccessList(db: Reader, clusterId: string): Promise<AccessList | undefined> {
  return db.selectFrom('access_lists').selectAll().where('cluster_id', '=', clusterId).executeTakeFirst();
}

/** The users of a cluster's newest list, by user ID. */
export async function listAccessListUsers(db: Reader, clusterId: string): Promise<StoredListUser[]> {
  const rows = await db
    .selectFrom('access_list_users as l')
    .innerJoin('clusters as c', 'c.id', 'l.cluster_id')
    .innerJoin('organization_usernames as n', (join) =>
      join.onRef('n.org_id', '=', 'c.organization_id').onRef('n.user_id', '=', 'l.user_id'),
    )
    .select([
      'l.user_id as userId',
      'l.username',
      'l.access_mode as accessMode',
      'l.desired_login_state as desiredLoginState',
      'l.ssh_key_set_generation as keySetGeneration',
      'l.shell',
      'n.uid',
    ])
    .where('l.cluster_id', '=', clusterId)
    .orderBy('l.user_id')
    .execute();
  return rows;
}

/** Whether a person is on the newest list of a cluster. */
export async function isOnAccessList(db: Reader, clusterId: string, userId: string): Promise<boolean> {
  const row = await db
    .selectFrom('access_list_users')
    .select('user_id')
    .where('cluster_id', '=', clusterId)
    .where('user_id', '=', userId)
    .executeTakeFirst();
  return row !== undefined;
}

/**
 * Makes the list what the present truth asks for. Writes, and raises the generation, only when it differs from the
 * one that stands; returns whether it did. May run any number of times.
 */
export async function updateAccessList(
  store: Store,
  cluster: { id: string; organizationId: string; desiredGeneration: number },
  now: number,
): Promise<boolean> {
  if (!(await differs(store.read, cluster))) return false;
  return store.write(async (tx) => {
    const users = accessListUsers(await listMembers(tx.db, cluster.organizationId));
    const hash = accessListHash(users);
    const list = await findAccessList(tx.db, cluster.id);
    if (list?.source_hash === hash && list.desired_generation === cluster.desiredGeneration) return false;
    const next = {
      generation: (list?.generation ?? 0) + 1,
      source_hash: hash,
      desired_generation: cluster.desiredGeneration,
      rejection: null,
      updated_at: toTime(now),
    };
    await tx.db
      .insertInto('access_lists')
      .values({ cluster_id: cluster.id, accepted_generation: 0, ...next })
      .onConflict((conflict) => conflict.column('cluster_id').doUpdateSet(next))
      .execute();
    await replaceUsers(tx, cluster.id, users);
    return true;
  });
}

/**
 * Accepts the newest list for its cluster: freezes the names on it, and gives each name without one a number (uid
 * and gid alike) from a counter that never goes back.
 */
export async function acceptAccessList(store: Store, clusterId: string, now: number): Promise<void> {
  const list = await findAccessList(store.read, clusterId);
  if (!list || list.accepted_generation === list.generation) return;
  await store.write(async (tx) => {
    const named = await tx.db
      .selectFrom('access_list_users as l')
      .innerJoin('clusters as c', 'c.id', 'l.cluster_id')
      .innerJoin('organization_usernames as n', (join) =>
        join.onRef('n.org_id', '=', 'c.organization_id').onRef('n.user_id', '=', 'l.user_id'),
      )
      .select('n.id')
      .where('l.cluster_id', '=', clusterId)
      .where('n.uid', 'is', null)
      .orderBy('n.id')
      .execute();
    const counter = await tx.db
      .selectFrom('counters')
      .select('value')
      .where('name', '=', 'uid')
      .executeTakeFirstOrThrow();
    let uid = counter.value;
    for (const { id } of named) {
      await tx.db
        .updateTable('organization_usernames')
        .set({ uid: uid++, lifecycle_state: 'frozen', frozen_at: toTime(now) })
        .where('id', '=', id)
        .execute();
    }
    await tx.db.updateTable('counters').set({ value: uid }).where('name', '=', 'uid').execute();
    await tx.db
      .updateTable('access_lists')
      .set((eb) => ({ accepted_generation: eb.ref('generation') }))
      .where('cluster_id', '=', clusterId)
      .execute();
  });
}

/** The accepted list as a driver applies it; undefined while the newest one is not accepted. */
export async function findManifest(db: Reader, clusterId: string): Promise<Manifest | undefined> {
  const list = await findAccessList(db, clusterId);
  if (!list || list.accepted_generation !== list.generation) return undefined;
  const fingerprints = new Map<string, string[]>();
  const keys = await db
    .selectFrom('ssh_keys as k')
    .innerJoin('access_list_users as l', 'l.user_id', 'k.user_id')
    .select(['k.user_id', 'k.fingerprint'])
    .where('l.cluster_id', '=', clusterId)
    .where('k.lifecycle_state', '=', 'active')
    .orderBy('k.id')
    .execute();
  for (const key of keys) {
    fingerprints.set(key.user_id, [...(fingerprints.get(key.user_id) ?? []), key.fingerprint]);
  }
  const accounts = (await listAccessListUsers(db, clusterId)).flatMap((user) => {
    if (user.uid === null) return [];
    const { userId, username, shell, uid, keySetGeneration } = user;
    const keyFingerprints = fingerprints.get(userId) ?? [];
    const home = homeOf(username);
    const loginState = user.desiredLoginState;
    return [{ userId, username, uid, gid: uid, home, shell, loginState, keySetGeneration, keyFingerprints }];
  });
  return { clusterId, generation: list.generation, desiredGeneration: list.desired_generation, accounts };
}

async function differs(
  db: Reader,
  cluster: { id: string; organizationId: string; desiredGeneration: number },
): Promise<boolean> {
  const list = await findAccessList(db, cluster.id);
  if (list?.desired_generation !== cluster.desiredGeneration) return true;
  return list.source_hash !== accessListHash(accessListUsers(await listMembers(db, cluster.organizationId)));
}

async function replaceUsers(tx: Tx, clusterId: string, users: readonly AccessListUser[]): Promise<void> {
  const before = new Map((await listRows(tx, clusterId)).map((row) => [row.user_id, row]));
  for (const user of users) {
    const row = {
      cluster_id: clusterId,
      user_id: user.userId,
      username: user.username,
      access_mode: user.accessMode,
      desired_login_state: user.desiredLoginState,
      ssh_key_set_generation: user.keySetGeneration,
      shell: user.shell,
    };
    const earlier = before.get(user.userId);
    before.delete(user.userId);
    if (earlier && JSON.stringify(earlier) === JSON.stringify(row)) continue;
    await tx.db
      .insertInto('access_list_users')
      .values(row)
      .onConflict((conflict) => conflict.columns(['cluster_id', 'user_id']).doUpdateSet(row))
      .execute();
  }
  for (const userId of before.keys()) {
    await tx.db
      .deleteFrom('access_list_users')
      .where('cluster_id', '=', clusterId)
      .where('user_id', '=', userId)
      .execute();
  }
}

function listRows(tx: Tx, clusterId: string) {
  return tx.db
    .selectFrom('access_list_users')
    .select([
      'cluster_id',
      'user_id',
      'username',
      'access_mode',
      'desired_login_state',
      'ssh_key_set_generation',
      'shell',
    ])
    .where('cluster_id', '=', clusterId)
    .execute();
}

async function listMembers(db: Reader, orgId: string): Promise<Member[]> {
  const permissions = new Map<string, string[]>();
  const granted = await db
    .selectFrom('member_permissions')
    .select(['user_id', 'permission'])
    .where('org_id', '=', orgId)
    .execute();
  for (const { user_id, permission } of granted) {
    permissions.set(user_id, [...(permissions.get(user_id) ?? []), permission]);
  }
  const rows = await db
    .selectFrom('memberships as m')
    .innerJoin('users as u', 'u.id', 'm.user_id')
    .innerJoin('organization_usernames as n', (join) =>
      join.onRef('n.org_id', '=', 'm.org_id').onRef('n.user_id', '=', 'm.user_id'),
    )
    .leftJoin('ssh_key_sets as s', 's.user_id', 'm.user_id')
    .select((eb) => [
      'm.user_id',
      'n.username',
      'm.role',
      'u.login_shell',
      's.generation',
      eb
        .selectFrom('ssh_keys as k')
        .whereRef('k.user_id', '=', 'm.user_id')
        .where('k.lifecycle_state', '=', 'active')
        .select((count) => count.fn.countAll<number>().as('count'))
        .as('active_keys'),
    ])
    .where('m.org_id', '=', orgId)
    .where('m.lifecycle_state', '=', 'active')
    .execute();
  return rows.map((row) => ({
    userId: row.user_id,
    username: row.username,
    role: row.role,
    permissions: permissions.get(row.user_id) ?? [],
    shell: row.login_shell,
    activeKeys: row.active_keys ?? 0,
    keySetGeneration: row.generation ?? 0,
  }));
}
