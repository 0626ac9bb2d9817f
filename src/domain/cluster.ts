/** Clusters: one record for both APIs, and what follows from it alone. */
import type { LabCluster } from './lab.ts';

export type ClusterState = 'provisioning' | 'active' | 'releasing' | 'released';

/** How a cluster is driven: the lab file's sections. */
export type DriverSettings = Pick<LabCluster, 'simulated' | 'slurm' | 'kubernetes'>;

export interface Cluster {
  id: string;
  organizationId: string;
  name: string;
  siteId: string;
  siteName: string;
  scheduler: 'sunk' | 'kubernetes' | null;
  driver: DriverSettings;
  state: ClusterState;
  reasonCode: string | null;
  expectedNodeCount: number | null;
  assignedNodeCount: number;
  /** The one that was made last and was not ended by anybody; whether it still holds is for `recordAt` to say. */
  reservation: { id: string; endsAt: string | null } | null;
  infrastructureReadyAt: string | null;
  teardownCompletedAt: string | null;
  cleanupState: string | null;
  endCommandId: string | null;
  /** As it was written last; what is shown is for `recordAt` to say. */
  version: number;
  kubernetesVersion: string;
  versionGeneration: number;
  desiredGeneration: number;
  schedulerGeneration: number;
  lifecycleVersion: number;
  kubeletVersion: string;
  createdAt: string;
  updatedAt: string;
}

/**
 * What the commercial record shows at a moment: a cluster whose reservation's time is up has changed then, without being
 * written. It has no reservation any more, and a version of its own.
 */
export function recordAt(
  { reservation, version, updatedAt }: Pick<Cluster, 'reservation' | 'version' | 'updatedAt'>,
  now: number,
): { reservationId: string | null; version: number; updatedAt: string } {
  const endsAt = reservation?.endsAt ?? null;
  if (endsAt === null || Date.parse(endsAt) > now) {
    return { reservationId: reservation?.id ?? null, version, updatedAt };
  }
  return { reservationId: null, version: version + 1, updatedAt: endsAt > updatedAt ? endsAt : updatedAt };
}

/** Whether a cluster is asked for anything, and can be given anything. */
export function isInService({ state }: { state: ClusterState }): boolean {
  return state === 'provisioning' || state === 'active';
}
