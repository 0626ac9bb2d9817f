/** Reservations: nodes of a cluster set aside for its organization. */

export interface Reservation {
  id: string;
  organizationId: string;
  clusterId: string;
  nodeCount: number;
  state: 'active' | 'ended';
  /** RFC 3339, like the others; the end is null where none was set, and `endedAt` until it has ended. */
  createdAt: string;
  endsAt: string | null;
  endedAt: string | null;
}

/** A reservation as it is at a moment: one whose time is up has ended then, to the millisecond, though nobody wrote it. */
export function reservationAt(reservation: Reservation, now: number): Reservation {
  const { state, endsAt } = reservation;
  if (state === 'ended' || endsAt === null || Date.parse(endsAt) > now) return reservation;
  return { ...reservation, state: 'ended', endedAt: endsAt };
}
