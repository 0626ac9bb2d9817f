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
