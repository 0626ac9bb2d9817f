/**
 * The access lists of Slurm clusters (their people: `access-list-users.ts`), and the manifest that a driver applies.
 * Both are read whole when needed, and never cached (docs/decisions/0073-lists-are-read-whole.md).
 */
import type {
  AccessList,
  AccessListUser,
  DirectoryNumber,
  Manifest,
  ManifestAccount,
} from '../../domain/access/manifest.ts';
import type { Cluster } from '../../domain/clusters/cluster.ts';
import type { LabCluster } from '../../domain/clusters/lab.ts';
import { homeOf } from '../../domain/people/person.ts';
import { present } from '../../domain/present.ts';
import { usesDirectory } from '../../domain/slurm/settings.ts';
import { findSchedulerState } from '../clusters/slurm-configurations.ts';
import type { Reader, Store } from '../engine/index.ts';
import { prepared } from '../engine/queries.ts';
import { findRow, inCamelCase, updateRows } from '../engine/rows.ts';
import { toTime } from '../engine/time.ts';
import { raiseVersion } from './access-list-users.ts';
import { findDirectLogins } from './direct-logins.ts';
import { allocateNumbers } from './numbers.ts';
import { listGroups } from './teams.ts';

/** A list's user as stored, with the numbers that they had, or got, when they came onto a list (`allocateNumbers`). */
export interface StoredListUser extends AccessListUser {
  uid: number | null;
  /** Null: as the uid. */
  gid: number | null;
  /** 1: an operator gave the numbers. */
  given: number | null;
}

/** The newest list of a cluster; undefined before the first. */
export async function findAccessList(db: Reader, clusterId: string): Promise<AccessList | undefined> {
  const row = await findRow(db, 'access_lists', { cluster_id: clusterId });
  if (!row) return undefined;
  const { withdrawn, ...list } = row;
  return { ...inCamelCase(list), isWithdrawn: withdrawn === 1 };
}

/** The users of a cluster's newest list, by ID. */
export async function listAccessListUsers(db: Reader, clusterId: string): Promise<StoredListUser[]> {
  const rows = await usersOf(db, clusterId);
  return rows.map(({ key_fingerprints, ...row }) => ({
    ...row,
    keyFingerprints: JSON.parse(key_fingerprints) as string[],
  }));
}

const usersOf = prepared((db, clusterId: string) =>
  db
    .selectFrom('access_lists as l')
    .innerJoin('clusters as c', 'c.id', 'l.cluster_id')
    .innerJoin('access_list_users as u', 'u.org_id', 'c.organization_id')
    .leftJoin('organization_usernames as n', (join) =>
      join.onRef('n.org_id', '=', 'u.org_id').onRef('n.user_id', '=', 'u.user_id'),
    )
    .select([
      'u.user_id as userId',
      'u.username',
      'u.access_mode as accessMode',
      'u.desired_login_state as desiredLoginState',
      'u.ssh_key_set_generation as keySetGeneration',
      'u.key_fingerprints',
      'u.shell',
      'n.uid',
      'n.gid',
      'n.given',
    ])
    .where('l.cluster_id', '=', clusterId)
    .where('l.withdrawn', '=', 0)
    .where('u.until_version', 'is', null)
    .orderBy('u.user_id'),
);

/** The newest list of a cluster with its users by ID, in one snapshot; undefined before the first. */
export async function readAccessList(
  store: Store,
  clusterId: string,
): Promise<{ list: AccessList; users: StoredListUser[] } | undefined> {
  return store.readSnapshot(async (db) => {
    const list = await findAccessList(db, clusterId);
    return list && { list, users: await listAccessListUsers(db, clusterId) };
  });
}

/** Makes the first list of a cluster, with the people of its organization's list. May run again. */
export async function createAccessList(
  store: Store,
  cluster: Pick<Cluster, 'id' | 'organizationId' | 'desiredGeneration'>,
): Promise<AccessList | undefined> {
  return store.write(async (tx) => {
    await tx.db
      .insertInto('organization_access_lists')
      .values({ org_id: cluster.organizationId, version: 1 })
      .onConflict((conflict) => conflict.column('org_id').doNothing())
      .execute();
    await tx.db
      .insertInto('access_lists')
      .values({
        cluster_id: cluster.id,
        generation: 1,
        desired_generation: cluster.desiredGeneration,
        withdrawn: 0,
        updated_at: toTime(tx.now),
      })
      .onConflict((conflict) => conflict.column('cluster_id').doNothing())
      .execute();
    await allocateNumbers(tx, cluster.organizationId);
    return findAccessList(tx.db, cluster.id);
  });
}

/** Sets the configuration version that a cluster's list goes with; the list itself does not change. */
export async function updateDesiredGeneration(
  store: Store,
  cluster: Pick<Cluster, 'id' | 'desiredGeneration'>,
): Promise<void> {
  await store.write(async ({ db }) => {
    await updateRows(
      db,
      'access_lists',
      { cluster_id: cluster.id },
      { desired_generation: cluster.desiredGeneration },
    );
  });
}

/** The manifest that a driver applies, in one snapshot; undefined where there is no list, or it was withdrawn. */
export async function findManifest(store: Store, clusterId: string): Promise<Manifest | undefined> {
  return store.readSnapshot(async (db) => {
    const list = await findAccessList(db, clusterId);
    if (!list || list.isWithdrawn) return undefined;
    const { version, driver, org_id } = await db
      .selectFrom('clusters as c')
      .innerJoin('organization_access_lists as o', 'o.org_id', 'c.organization_id')
      .select(['o.version', 'o.org_id', 'c.driver'])
      .where('c.id', '=', clusterId)
      .executeTakeFirstOrThrow();
    const users = await listAccessListUsers(db, clusterId);
    const usernames = users.map(({ username }) => username);
    const settings = JSON.parse(driver) as Pick<LabCluster, 'slurm'>;
    const cluster = { id: clusterId, organizationId: org_id, driver: settings };
    const direct = await findDirectLogins(db, cluster, users, store.lapses.now());
    return {
      clusterId,
      generation: list.generation,
      desiredGeneration: list.desiredGeneration,
      ...(await findSchedulerState(db, clusterId)),
      listVersion: version,
      accounts: users.map((user) => accountOf(user, settings.slurm)),
      groups: await listGroups(db, org_id, usernames),
      ...present({ direct }),
    };
  });
}

/** A person to whom a directory has yet to give a number has no account on the organization's other clusters. */
function accountOf(
  { uid, gid, given, desiredLoginState, ...user }: StoredListUser,
  slurm: LabCluster['slurm'],
): ManifestAccount {
  const { userId, username, shell, accessMode, keySetGeneration, keyFingerprints } = user;
  const number = uid ?? 0;
  const loginState = uid === null && !usesDirectory(slurm) ? 'waiting_for_key' : desiredLoginState;
  const account = { userId, username, uid: number, gid: gid ?? number, home: homeOf(username), shell };
  const isAdmin = accessMode === 'admin' && { isAdmin: true as const };
  const isAdopted = slurm?.adopt && given === 1 && { isAdopted: true as const };
  return { ...account, loginState, ...isAdmin, ...isAdopted, keySetGeneration, keyFingerprints };
}

/** Keeps the numbers of people from a site's directory who have none: the first ones that are seen stay theirs. The list's new version brings them to all hosts. */
export async function keepNumbers(
  store: Store,
  clusterId: string,
  numbers: readonly DirectoryNumber[],
): Promise<void> {
  await store.write(async (tx) => {
    const cluster = await findRow(tx.db, 'clusters', { id: clusterId });
    if (!cluster) return;
    const { organization_id: org_id } = cluster;
    let areNew = false;
    for (const { userId, uid, gid } of numbers) {
      const unnumbered = { org_id, user_id: userId, uid: null };
      const own = await findRow(tx.db, 'organization_usernames', unnumbered);
      // A former member's number is theirs for good.
      if (!own || (await findRow(tx.db, 'organization_usernames', { org_id, uid }))) continue;
      const kept = { uid, gid: gid === uid ? null : gid, given: 1 };
      await updateRows(tx.db, 'organization_usernames', unnumbered, kept);
      areNew = true;
    }
    if (!areNew) return;
    await raiseVersion(tx, org_id);
    tx.changed({ kind: 'cluster', clusterId });
  });
}
