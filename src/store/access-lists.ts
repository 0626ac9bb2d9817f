/**
 * The access lists of Slurm clusters: Business makes and raises them (`access-list-users.ts` says whom they name),
 * Platform accepts them here, and what it accepted is the manifest that a driver applies (`manifests.ts`).
 */

import type { Selectable } from 'kysely';
import type { AccessList, AccessListUser } from '../domain/access-list.ts';
import type { Cluster } from '../domain/cluster.ts';
import type { Reader, Store, Tx } from './index.ts';
import { prepared } from './prepared.ts';
import type { AccessListTable } from './schema.ts';
import { toTime } from './time.ts';

/** A list's user as stored, with what was allocated once a list with them in it was accepted. */
export interface StoredListUser extends Omit<AccessListUser, 'keyFingerprints'> {
  uid: number | null;
}

/** Rows read or written in one go: few enough to take a few milliseconds. */
const pageSize = 200;

/** The newest list of a cluster; undefined before the first. */
export async function findAccessList(db: Reader, clusterId: string): Promise<AccessList | undefined> {
  const [row] = await listOf(db, clusterId);
  return row && accessListOf(row);
}

function accessListOf(row: Selectable<AccessListTable>): AccessList {
  return {
    clusterId: row.cluster_id,
    generation: row.generation,
    acceptedGeneration: row.accepted_generation,
    desiredGeneration: row.desired_generation,
    rejection: row.rejection,
    isWithdrawn: row.withdrawn === 1,
    updatedAt: row.updated_at,
  };
}

const listOf = prepared((db, clusterId: string) =>
  db.selectFrom('access_lists').selectAll().where('cluster_id', '=', clusterId),
);

/** The newest list of a cluster with its users by ID, both of the same moment; undefined before the first. */
export async function readAccessList(
  store: Store,
  clusterId: string,
): Promise<{ list: AccessList; users: StoredListUser[] } | undefined> {
  return store.readSnapshot(async (db) => {
    const list = await findAccessList(db, clusterId);
    if (!list) return undefined;
    const users: StoredListUser[] = [];
    for (;;) {
      const page = await listUsers(db, clusterId, users.at(-1)?.userId ?? '');
      users.push(...page);
      if (page.length < pageSize) return { list, users };
    }
  });
}

/** Makes the first list of a cluster, of whom its organization's lists name now. May run again. */
export async function createAccessList(
  store: Store,
  cluster: Pick<Cluster, 'id' | 'organizationId' | 'desiredGeneration'>,
): Promise<void> {
  await store.write(async (tx) => {
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
        accepted_generation: 0,
        desired_generation: cluster.desiredGeneration,
        rejection: null,
        withdrawn: 0,
        updated_at: toTime(tx.now),
      })
      .onConflict((conflict) => conflict.column('cluster_id').doNothing())
      .execute();
  });
}

/** Keeps the version of the cluster's configuration that its list goes with, which is no change of the list. */
export async function updateDesiredGeneration(
  store: Store,
  cluster: Pick<Cluster, 'id' | 'desiredGeneration'>,
): Promise<void> {
  await store.write(async ({ db }) => {
    await db
      .updateTable('access_lists')
      .set({ desired_generation: cluster.desiredGeneration })
      .where('cluster_id', '=', cluster.id)
      .execute();
  });
}

/** Makes the list of a cluster that leaves service name nobody: its newest generation, and its last. May run again. */
export async function withdrawAccessList(tx: Tx, clusterId: string): Promise<void> {
  await tx.db
    .updateTable('access_lists')
    .set((eb) => ({
      generation: eb('generation', '+', 1),
      accepted_generation: eb('generation', '+', 1),
      rejection: null,
      withdrawn: 1,
      updated_at: toTime(tx.now),
    }))
    .where('cluster_id', '=', clusterId)
    .where('withdrawn', '=', 0)
    .execute();
}

/**
 * Accepts the newest lists of an organization's clusters: freezes the names on them, and gives each name without one
 * a number (uid and gid alike) from a counter that never goes back.
 */
export async function acceptAccessLists(store: Store, organizationId: string): Promise<void> {
  while (await isAnyPending(store.read, organizationId)) {
    await store.write(async (tx) => {
      // Few at a time, each in a transaction of its own: the lists are accepted when everyone on them has a number.
      if ((await allocate(tx, organizationId)) === pageSize) return;
      await tx.db
        .updateTable('access_lists')
        .set((eb) => ({ accepted_generation: eb.ref('generation') }))
        .where('withdrawn', '=', 0)
        .where('cluster_id', 'in', (eb) =>
          eb.selectFrom('clusters').select('id').where('organization_id', '=', organizationId),
        )
        .execute();
    });
  }
}

/** Numbers that are kept free ahead of the counter: as many people as come until the service is started again. */
const uidsAhead = 1000;

/** Moves the counter of numbers up to `base`, and past those of `taken` that people would soon get. Never back. */
export async function raiseNextUid(store: Store, base: number, taken: readonly number[]): Promise<void> {
  await store.write(async (tx) => {
    const counter = tx.db.selectFrom('counters').select('value').where('name', '=', 'uid');
    const { value } = await counter.executeTakeFirstOrThrow();
    let next = Math.max(value, base);
    for (const id of taken.toSorted((a, b) => a - b)) if (id >= next && id < next + uidsAhead) next = id + 1;
    if (next === value) return;
    await tx.db.updateTable('counters').set({ value: next }).where('name', '=', 'uid').execute();
  });
}

async function isAnyPending(db: Reader, organizationId: string): Promise<boolean> {
  const row = await db
    .selectFrom('clusters as c')
    .innerJoin('access_lists as l', 'l.cluster_id', 'c.id')
    .select('l.cluster_id')
    .where('c.organization_id', '=', organizationId)
    .where('l.withdrawn', '=', 0)
    .whereRef('l.accepted_generation', '<', 'l.generation')
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

/** Gives a number to at most a page of names on the list; returns to how many. */
async function allocate(tx: Tx, organizationId: string): Promise<number> {
  const counter = await tx.db
    .selectFrom('counters')
    .select('value')
    .where('name', '=', 'uid')
    .executeTakeFirstOrThrow();
  const { numUpdatedRows } = await tx.db
    .updateTable('organization_usernames')
    .from((from) =>
      from
        .selectFrom('organization_usernames as n')
        .innerJoin('access_list_users as u', (join) =>
          join.onRef('u.org_id', '=', 'n.org_id').onRef('u.user_id', '=', 'n.user_id'),
        )
        .where('n.org_id', '=', organizationId)
        .where('n.uid', 'is', null)
        .where('u.until_version', 'is', null)
        .select((eb) => [
          'n.id as name_id',
          eb.fn
            .agg<number>('row_number')
            .over((over) => over.orderBy('n.id'))
            .as('place'),
        ])
        .orderBy('n.id')
        .limit(pageSize)
        .as('next'),
    )
    .whereRef('organization_usernames.id', '=', 'next.name_id')
    .set((eb) => ({
      uid: eb('next.place', '+', counter.value - 1),
      lifecycle_state: 'frozen' as const,
      frozen_at: toTime(tx.now),
    }))
    .executeTakeFirstOrThrow();
  const allocated = Number(numUpdatedRows);
  if (allocated > 0) {
    await tx.db
      .updateTable('counters')
      .set({ value: counter.value + allocated })
      .where('name', '=', 'uid')
      .execute();
  }
  return allocated;
}

async function listUsers(db: Reader, clusterId: string, after: string): Promise<StoredListUser[]> {
  return listedUsers(db, clusterId)
    .leftJoin('organization_usernames as n', (join) =>
      join.onRef('n.org_id', '=', 'u.org_id').onRef('n.user_id', '=', 'u.user_id'),
    )
    .select([
      'u.user_id as userId',
      'u.username',
      'u.access_mode as accessMode',
      'u.desired_login_state as desiredLoginState',
      'u.ssh_key_set_generation as keySetGeneration',
      'u.shell',
      'n.uid',
    ])
    .where('u.user_id', '>', after)
    .orderBy('u.user_id')
    .limit(pageSize)
    .execute();
}

function listedUsers(db: Reader, clusterId: string) {
  return db
    .selectFrom('access_lists as l')
    .innerJoin('clusters as c', 'c.id', 'l.cluster_id')
    .innerJoin('access_list_users as u', 'u.org_id', 'c.organization_id')
    .where('l.cluster_id', '=', clusterId)
    .where('l.withdrawn', '=', 0)
    .where('u.until_version', 'is', null);
}
