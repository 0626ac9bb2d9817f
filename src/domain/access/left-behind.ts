/** Text: what stays on a cluster that is given up before it could be cleaned. An operator may have to remove it by hand. */
import type { Cluster } from '../clusters/cluster.ts';
import type { Side } from '../clusters/side.ts';

const mostNames = 20;

/** `usernames`: the login names that were made on Slurm clusters of the organization. */
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
