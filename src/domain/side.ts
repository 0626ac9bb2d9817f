/**
 * The sides of a cluster: Slurm and Kubernetes. Each is a target of its own, with its own desired state, reports, back-off
 * and faults; a cluster has one of them or both.
 */

export type Side = 'slurm' | 'kubernetes';

/** In the order in which they are shown. */
export const allSides = ['slurm', 'kubernetes'] as const satisfies readonly Side[];

/** The sides of a cluster; `driver` is its settings as JSON. A simulated one has the side of its scheduler. */
export function sidesOf({ scheduler, driver }: { scheduler: string | null; driver: string }): Side[] {
  const settings = JSON.parse(driver) as { slurm?: object; kubernetes?: object };
  const real = allSides.filter((side) => settings[side] !== undefined);
  if (real.length > 0) return real;
  return [scheduler === 'sunk' ? 'slurm' : 'kubernetes'];
}
