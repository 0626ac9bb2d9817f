/** Clusters: one record for both APIs, and what follows from it alone. */
import { isRecent, type MachineReport } from '../access/manifest.ts';
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

export type Side = 'slurm' | 'kubernetes';

export const allSides = ['slurm', 'kubernetes'] as const satisfies readonly Side[];

/** The sides of a cluster. A simulated one has the side of its scheduler. */
export function sidesOf({ scheduler, driver }: Pick<Cluster, 'scheduler' | 'driver'>): Side[] {
  const real = allSides.filter((side) => driver[side] !== undefined);
  if (real.length > 0) return real;
  return [scheduler === 'sunk' ? 'slurm' : 'kubernetes'];
}

/** Whether a side of it exists in this service only. */
export function isSimulated(cluster: Pick<Cluster, 'scheduler' | 'driver'>): boolean {
  return sidesOf(cluster).some((side) => cluster.driver[side] === undefined);
}

const mostNames = 20;

/**
 * Text: what stays on a side of a cluster that is given up before it could be cleaned. An operator may have to remove it by hand.
 * `usernames`: the login names that were made on Slurm clusters of the organization.
 */
export function leftBehind(
  cluster: Pick<Cluster, 'id' | 'driver'>,
  side: Side,
  usernames: readonly string[],
): string {
  const { slurm, kubernetes } = cluster.driver;
  if (side === 'kubernetes') {
    const where = kubernetes?.server ?? kubernetes?.kubeconfig;
    return `ClusterRoleBindings and RoleBindings with the label andromeda/cluster=${cluster.id}${where === undefined ? '' : ` (${where})`}`;
  }
  const hosts = [slurm?.controller, slurm?.accounting, ...(slurm?.login ?? [])].flatMap(
    (one) => one?.host ?? [],
  );
  const names = usernames.slice(0, mostNames).join(', ');
  const more = usernames.length > mostNames ? ` and ${usernames.length - mostNames} more` : '';
  const where = hosts.length === 0 ? '' : ` on ${[...new Set(hosts)].join(', ')} and the compute nodes`;
  return `the accounts ${names || 'of nobody'}${more}, their Slurm associations and our part of the Slurm configuration${where}`;
}

/** A machine that its cluster reported. Times in RFC 3339. */
export interface Machine {
  id: string;
  clusterId: string;
  name: string;
  lifecycleState: 'registered' | 'admitted' | 'quarantined';
  report: MachineReport | undefined;
  reportGeneration: number;
  observedAt: string | null;
  createdAt: string;
  updatedAt: string;
}

type Freshness = 'fresh' | 'stale' | 'unknown';

/**
 * A machine's heartbeat is its cluster's report of it: `stale` when one was due and did not come, `unknown` when none
 * is due any more. Times in ms since 1970.
 */
export function freshness(facts: { observedAt: number; isHeartbeatDue: boolean; now: number }): Freshness {
  if (isRecent(facts.observedAt, facts.now)) return 'fresh';
  return facts.isHeartbeatDue ? 'stale' : 'unknown';
}
