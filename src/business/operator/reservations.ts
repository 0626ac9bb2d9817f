/** Nodes of clusters set aside for their organizations. */
import { isInService, recordAt } from '../../domain/cluster.ts';
import { DomainError } from '../../domain/error.ts';
import type { CommandReply } from '../../domain/operation.ts';
import type { Reservation } from '../../domain/reservation.ts';
import { findCluster } from '../../store/clusters.ts';
import { runCommand } from '../../store/commands.ts';
import { findMembership } from '../../store/memberships.ts';
import * as reservations from '../../store/reservations.ts';
import type { BusinessDeps, BusinessReply, BusinessRequest } from '../operation.ts';
import { organizationNotFound } from '../organizations.ts';
import { requireOperator, requireStaff } from './staff.ts';

/** The organization's reservations, oldest first. */
export async function listReservations(
  { store }: BusinessDeps,
  { caller, path, now }: BusinessRequest<'listReservations'>,
): Promise<BusinessReply<'listReservations'>> {
  const membership = await findMembership(store.read, path.orgID, caller.userId, now);
  if (!membership) throw organizationNotFound();
  if (!membership.permissions.has('reservations.read')) {
    throw new DomainError('forbidden', 'This needs the permission reservations.read in the organization.');
  }
  const list = await reservations.listReservations(store.read, { organizationId: path.orgID }, now);
  return { reservations: list.map(reservationBody) };
}

/** Every reservation, oldest first. */
export async function operatorListReservations(
  { store }: BusinessDeps,
  { caller, now }: BusinessRequest<'operatorListReservations'>,
): Promise<BusinessReply<'operatorListReservations'>> {
  await requireStaff(store.read, caller.userId, 'staff.read');
  return { reservations: (await reservations.listReservations(store.read, {}, now)).map(reservationBody) };
}

/** Sets nodes of a cluster aside. `invalid_state` while another reservation of the cluster is active. */
export async function operatorCreateReservation(
  deps: BusinessDeps,
  request: BusinessRequest<'operatorCreateReservation'>,
): Promise<CommandReply<BusinessReply<'operatorCreateReservation'>>> {
  const { body, now } = request;
  const clusterId = body.cluster_id.toLowerCase();
  const nodeCount = body.node_count;
  const endsAt = body.ends_at === undefined ? null : Date.parse(body.ends_at);
  return runCommand(deps.store, request, {
    operation: 'operatorCreateReservation',
    meaning: [clusterId, nodeCount, endsAt],
    about: { target: 'reservation', clusterId },
    authorize: requireOperator,
    async apply(tx) {
      // Only now: a replay is answered though the time has come.
      if (endsAt !== null && endsAt <= now) {
        throw new DomainError('invalid_request', '`ends_at` must be a time in the future.');
      }
      const cluster = await findCluster(tx.db, clusterId);
      if (!cluster) throw new DomainError('not_found', 'There is no such cluster.');
      if (!isInService(cluster)) {
        throw new DomainError('invalid_state', `The cluster is ${cluster.state}; its nodes are given back.`);
      }
      const { reservationId } = recordAt(cluster, now);
      if (reservationId !== null) {
        const message = `The cluster has the reservation ${reservationId}; end it first.`;
        throw new DomainError('invalid_state', message);
      }
      const made = await reservations.createReservation(tx, cluster, { nodeCount, endsAt });
      const until = made.endsAt === null ? '' : ` until ${made.endsAt}`;
      const details = `${nodeCount} nodes of ${cluster.name}${until}`;
      const about = { target: made.id, organizationId: cluster.organizationId, details };
      return { result: reservationBody(made), about };
    },
  });
}

/** Ends a reservation; one that has ended stays as it is. */
export async function operatorEndReservation(
  deps: BusinessDeps,
  request: BusinessRequest<'operatorEndReservation'>,
): Promise<CommandReply<BusinessReply<'operatorEndReservation'>>> {
  const { reservationID: reservationId } = request.path;
  const { now } = request;
  const known = await reservations.findReservation(deps.store.read, reservationId, now);
  const about = {
    target: known?.id ?? 'reservation',
    organizationId: known?.organizationId ?? null,
    clusterId: known?.clusterId ?? null,
  };
  return runCommand(deps.store, request, {
    operation: 'operatorEndReservation',
    meaning: [reservationId],
    about,
    authorize: requireOperator,
    async apply(tx) {
      const reservation = await reservations.findReservation(tx.db, reservationId, now);
      if (!reservation) throw new DomainError('not_found', 'There is no such reservation.');
      const ended = await reservations.endReservation(tx, reservation);
      const details =
        reservation.state === 'ended' ? `had ended at ${ended.endedAt}` : `${ended.nodeCount} nodes`;
      return { result: reservationBody(ended), about: { details } };
    },
  });
}

function reservationBody(reservation: Reservation) {
  const { id, state, endsAt, endedAt } = reservation;
  return {
    id,
    organization_id: reservation.organizationId,
    cluster_id: reservation.clusterId,
    node_count: reservation.nodeCount,
    state,
    created_at: reservation.createdAt,
    ...(endsAt === null ? {} : { ends_at: endsAt }),
    ...(endedAt === null ? {} : { ended_at: endedAt }),
  };
}
