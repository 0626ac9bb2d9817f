/** What a change restarts on a Slurm cluster, as people read it. */

const names = {
  login: 'login nodes',
  controller: 'Slurm controller',
  accounting: 'accounting service',
  compute: 'compute nodes one at a time',
};

/** In order: `login nodes, then Slurm controller`. */
export function restartsText(restarts: readonly (keyof typeof names)[]): string {
  return restarts.map((one) => names[one]).join(', then ');
}
