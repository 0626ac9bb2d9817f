/** The last failures to observe or change the sides of clusters, and the hosts that have something of ours. */
import type { Selectable } from 'kysely';
import { type Cluster, leftBehind, type Side, sidesOf } from '../../domain/clusters/cluster.ts';
import type { Reader, Store, Tx } from '../engine/index.ts';
import { deleteRows, findRow, listRows, saveRow } from '../engine/rows.ts';
import { toTime } from '../engine/time.ts';
import type { Schema } from '../generated/schema.ts';
import { completeRelease } from './clusters.ts';

type ClusterSide = Selectable<Schema['cluster_sides']>;

export function listSideRows(db: Reader, clusterId: string): Promise<ClusterSide[]> {
  return listRows(db, 'cluster_sides', { cluster_id: clusterId });
}

/** The failures to observe a side last and to bring it to its desired state; undefined where nothing is wrong. */
export async function findSideFailures(
  db: Reader,
  clusterId: string,
  side: Side,
): Promise<{ observe: string | undefined; apply: string | undefined }> {
  const row = await sideRow(db, clusterId, side);
  return { observe: row?.look_failure ?? undefined, apply: row?.apply_failure ?? undefined };
}

export async function recordObserveFailure(
  store: Store,
  clusterId: string,
  side: Side,
  message: string,
): Promise<void> {
  const row = await sideRow(store.read, clusterId, side);
  if (row?.look_failure === message) return;
  await store.write(async (tx) => {
    const since = row?.look_failed_since ?? toTime(tx.now);
    await updateSide(tx, clusterId, side, { look_failure: message, look_failed_since: since });
    tx.changed({ kind: 'report', clusterId });
  });
}

export async function clearObserveFailure(tx: Tx, clusterId: string, side: Side): Promise<void> {
  const row = await sideRow(tx.db, clusterId, side);
  if (row?.look_failure == null) return;
  await updateSide(tx, clusterId, side, { look_failure: null, look_failed_since: null });
  tx.changed({ kind: 'report', clusterId });
}

/**
 * Records why a side is not in its desired state (null: it is), and the IDs of the Kubernetes permissions in force;
 * left out where they were not read again.
 */
export async function recordApplyFailure(
  store: Store,
  clusterId: string,
  side: Side,
  message: string | null,
  permissions?: readonly string[],
): Promise<void> {
  const row = await sideRow(store.read, clusterId, side);
  const bound = permissions ? JSON.stringify([...permissions].sort()) : (row?.bound ?? null);
  if ((row?.apply_failure ?? null) === message && (row?.bound ?? null) === bound) return;
  await store.write(async (tx) => {
    await updateSide(tx, clusterId, side, { apply_failure: message, bound });
    tx.changed({ kind: 'report', clusterId });
  });
}

/**
 * Records how far the release of a side has come: `done`, or the obstacle as a sentence. Returns the same for the
 * whole cluster, or `pending`.
 */
export async function recordCleanup(
  tx: Tx,
  cluster: Pick<Cluster, 'id' | 'scheduler' | 'driver'>,
  side: Side,
  cleanup: string,
): Promise<string> {
  await updateSide(tx, cluster.id, side, { cleanup });
  const rows = new Map((await listSideRows(tx.db, cluster.id)).map((row) => [row.side, row.cleanup]));
  const states = sidesOf(cluster).map((one) => rows.get(one) ?? 'pending');
  const left = states.filter((state) => state !== 'done' && state !== 'pending');
  if (left.length > 0) return left.join(' ');
  return states.includes('pending') ? 'pending' : 'done';
}

/** Ends the release of a cluster that cannot be cleaned any more, and records as text what is left on it. */
export async function abandonRelease(tx: Tx, cluster: Cluster): Promise<void> {
  const rows = new Map((await listSideRows(tx.db, cluster.id)).map((row) => [row.side, row.cleanup]));
  const names = { org_id: cluster.organizationId };
  const held = await listRows(tx.db, 'organization_usernames', names, 'username');
  const usernames = held.filter(({ uid }) => uid !== null).map(({ username }) => username);
  const left = sidesOf(cluster)
    .filter((side) => rows.get(side) !== 'done')
    .map((side) => leftBehind(cluster, side, usernames));
  const cleanup = left.length === 0 ? 'done' : `abandoned; left behind: ${left.join('; ')}`;
  await completeRelease(tx, cluster.id, cleanup);
}

export async function isCleanedUp(db: Reader, clusterId: string, side: Side): Promise<boolean> {
  const row = await sideRow(db, clusterId, side);
  return row?.cleanup === 'done';
}

/** The permissions that are bound on the Kubernetes side of a cluster, and whether that side can be observed. */
export async function findBound(
  db: Reader,
  clusterId: string,
): Promise<{ bound: string[] | undefined; isReachable: boolean; failure: string | undefined }> {
  const row = await sideRow(db, clusterId, 'kubernetes');
  return {
    bound: row?.bound == null ? undefined : (JSON.parse(row.bound) as string[]),
    isReachable: row?.look_failure == null,
    failure: row?.look_failure ?? row?.apply_failure ?? undefined,
  };
}

function sideRow(db: Reader, clusterId: string, side: Side): Promise<ClusterSide | undefined> {
  return findRow(db, 'cluster_sides', { cluster_id: clusterId, side });
}

async function updateSide(
  tx: Tx,
  clusterId: string,
  side: Side,
  change: Partial<Omit<ClusterSide, 'cluster_id' | 'side'>>,
): Promise<void> {
  const row = { cluster_id: clusterId, side, ...change };
  await saveRow(tx.db, 'cluster_sides', ['cluster_id', 'side'], row);
}

/** A host that has something of ours, by the address at which its cluster's driver knows it. */
export interface ManagedHost {
  address: string;
  /** The driver's own description of the host. */
  host: string;
}

export async function listManagedHosts(db: Reader, clusterId: string): Promise<ManagedHost[]> {
  const rows = await listRows(db, 'managed_hosts', { cluster_id: clusterId }, 'address');
  return rows.map(({ address, host }) => ({ address, host }));
}

/** Saves a host; with `host` undefined deletes it, as nothing of ours is on it any more. */
export async function noteManagedHost(
  { db }: Tx,
  clusterId: string,
  { address, host }: { address: string; host: string | undefined },
): Promise<void> {
  if (host === undefined) await deleteRows(db, 'managed_hosts', { cluster_id: clusterId, address });
  else
    await saveRow(db, 'managed_hosts', ['cluster_id', 'address'], { cluster_id: clusterId, address, host });
}
