/**
 * The sides of a cluster: Slurm and Kubernetes. Each is a target of its own, with its own desired state, reports, back-off
 * and faults; a cluster has one of them or both.
 */
import type { Cluster } from './cluster.ts';

export type Side = 'slurm' | 'kubernetes';

/** In the order in which they are shown. */
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
