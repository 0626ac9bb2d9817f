/** The restarts of a change on a Slurm cluster, as text for people. */

const names = {
  login: 'login nodes',
  controller: 'Slurm controller',
  accounting: 'accounting service',
  compute: 'compute nodes one at a time',
};

/** The restarts in order: `login nodes, then Slurm controller`. */
export function restartsText(restarts: readonly (keyof typeof names)[]): string {
  return restarts.map((one) => names[one]).join(', then ');
}
