/**
 * Reservations. A row may say `active` although its time is up, until something is written about its cluster; what leaves
 * this file is as it is at the moment that is asked about.
 */
import type { Selectable } from 'kysely';
import { type Cluster, recordAt } from '../domain/cluster.ts';
import { newId } from '../domain/id.ts';
import { type Reservation, reservationAt } from '../domain/reservation.ts';
import type { Reader, Tx } from './index.ts';
import type { ReservationTable } from './schema.ts';
import { toTime } from './time.ts';

export async function findReservation(
  db: Reader,
  reservationId: string,
  now: number,
): Promise<Reservation | undefined> {
  const row = await db
    .selectFrom('reservations')
    .selectAll()
    .where('id', '=', reservationId)
    .executeTakeFirst();
  return row && reservationOf(row, now);
}

/** Reservations, oldest first: an organization's, or all of them. */
export async function listReservations(
  db: Reader,
  filter: { organizationId?: string },
  now: number,
): Promise<Reservation[]> {
  let query = db.selectFrom('reservations').selectAll();
  if (filter.organizationId !== undefined) {
    query = query.where('organization_id', '=', filter.organizationId);
  }
  const rows = await query.orderBy('created_at').orderBy('id').execute();
  return rows.map((row) => reservationOf(row, now));
}

/** Sets nodes of a cluster aside. The caller has made sure that no other reservation of the cluster is active. */
export async function createReservation(
  tx: Tx,
  cluster: Cluster,
  reservation: { nodeCount: number; endsAt: number | null },
): Promise<Reservation> {
  const row = {
    id: newId('reservation', tx.now),
    organization_id: cluster.organizationId,
    cluster_id: cluster.id,
    node_count: reservation.nodeCount,
    state: 'active' as const,
    created_at: toTime(tx.now),
    ends_at: reservation.endsAt === null ? null : toTime(reservation.endsAt),
    ended_at: null,
  };
  await settleLapsed(tx, cluster.id);
  await tx.db.insertInto('reservations').values(row).execute();
  await tx.db
    .updateTable('clusters')
    .set((eb) => ({
      reservation_id: row.id,
      expected_node_count: row.node_count,
      version: eb('version', '+', 1),
      updated_at: toTime(tx.now),
    }))
    .where('id', '=', cluster.id)
    .execute();
  tx.changed({ observedClusterId: cluster.id });
  return reservationOf(row, tx.now);
}

/** Ends a reservation, which its cluster then no longer has; one that has ended stays as it is. */
export async function endReservation(tx: Tx, reservation: Reservation): Promise<Reservation> {
  await settleLapsed(tx, reservation.clusterId);
  if (reservation.state === 'ended') return reservation;
  const endedAt = toTime(tx.now);
  await tx.db
    .updateTable('reservations')
    .set({ state: 'ended', ended_at: endedAt })
    .where('id', '=', reservation.id)
    .execute();
  await tx.db
    .updateTable('clusters')
    .set((eb) => ({ reservation_id: null, version: eb('version', '+', 1), updated_at: toTime(tx.now) }))
    .where('id', '=', reservation.clusterId)
    .where('reservation_id', '=', reservation.id)
    .execute();
  tx.changed({ observedClusterId: reservation.clusterId });
  return { ...reservation, state: 'ended', endedAt };
}

/** Ends the reservation that a cluster has, if any, as when the cluster goes out of service. */
export async function endClusterReservation(tx: Tx, clusterId: string): Promise<void> {
  const row = await tx.db
    .selectFrom('reservations')
    .selectAll()
    .where('cluster_id', '=', clusterId)
    .where('state', '=', 'active')
    .executeTakeFirst();
  if (row) await endReservation(tx, reservationOf(row, tx.now));
}

/** Writes down what time alone has ended, as it was shown since. */
async function settleLapsed(tx: Tx, clusterId: string): Promise<void> {
  const row = await tx.db
    .selectFrom('clusters as c')
    .innerJoin('reservations as r', 'r.id', 'c.reservation_id')
    .select(['r.id', 'r.ends_at', 'c.version', 'c.updated_at'])
    .where('c.id', '=', clusterId)
    .executeTakeFirst();
  const current =
    row &&
    recordAt(
      { version: row.version, updatedAt: row.updated_at, reservation: { id: row.id, endsAt: row.ends_at } },
      tx.now,
    );
  if (current?.reservationId === null) {
    const { version, updatedAt } = current;
    await tx.db
      .updateTable('clusters')
      .set({ reservation_id: null, version, updated_at: updatedAt })
      .where('id', '=', clusterId)
      .execute();
  }
  await tx.db
    .updateTable('reservations')
    .set((eb) => ({ state: 'ended', ended_at: eb.ref('ends_at') }))
    .where('cluster_id', '=', clusterId)
    .where('state', '=', 'active')
    .where('ends_at', '<=', toTime(tx.now))
    .execute();
}

function reservationOf(row: Selectable<ReservationTable>, now: number): Reservation {
  const { id, organization_id: organizationId, cluster_id: clusterId, node_count: nodeCount, state } = row;
  const times = { createdAt: row.created_at, endsAt: row.ends_at, endedAt: row.ended_at };
  return reservationAt({ id, organizationId, clusterId, nodeCount, state, ...times }, now);
}
