/** Clusters: one record for both APIs, and what follows from it alone. */
import type { ClusterLink, LabCluster } from './lab.ts';

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
  links: readonly ClusterLink[];
  state: ClusterState;
  reasonCode: string | null;
  expectedNodeCount: number | null;
  assignedNodeCount: number;
  /** Set while nodes of it are reserved, which are its expected ones. */
  reservationId: string | null;
  infrastructureReadyAt: string | null;
  teardownCompletedAt: string | null;
  cleanupState: string | null;
  endCommandId: string | null;
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

/** Whether a cluster is asked for anything, and can be given anything. */
export function isInService({ state }: { state: ClusterState }): boolean {
  return state === 'provisioning' || state === 'active';
}
