/**
 * What the description of a cluster asks of the service's own host: files that are read there, with `local` a shell, and with
 * `simulated` a login node.
 * A lab that comes over the API gets only what the host's configuration leaves to it, for operators are not the host.
 */
import type { LabCluster } from './clusters/lab.ts';
import { clusterPaths } from './clusters/lab-paths.ts';
import { invalidRequest } from './error.ts';
import type { SlurmSettings } from './slurm/settings.ts';

export interface HostRules {
  /** Why a file must not be named, in words that follow its path. */
  refusalOfFile(path: string): string | undefined;
  /** The names of the clusters that may be described with `local: true`. */
  allowLocal: readonly string[];
  /** Whether there may be new simulated login nodes. */
  allowSimulated: boolean;
}

/**
 * Throws `invalid_request` for what must not come over the API. `changed` has the sections that are new or different;
 * files that the cluster as it is (`before`) names already may stay, for the same server.
 */
export function checkHostSettings(
  rules: HostRules,
  changed: Partial<LabCluster> & { name: string },
  before: LabCluster | undefined,
): void {
  const { name, slurm } = changed;
  if (slurm && isLocal(slurm) && !rules.allowLocal.includes(name)) {
    throw invalidRequest(
      `Cluster ${name}: local: true runs commands on the service's own host, which a lab over the API may not ask for. Name the cluster in clusters.allowLocal of the service's configuration, or reach the host over SSH, at 127.0.0.1.`,
    );
  }
  const after = { ...before, ...changed };
  if (hasSimulatedLogin(after) && !(before && hasSimulatedLogin(before)) && !rules.allowSimulated) {
    throw invalidRequest(
      `Cluster ${name}: a simulated login node gives people a shell on the service's own host, and the service is root there; a lab over the API may not ask for that. Set clusters.allowSimulated: true in the service's configuration where that is wanted.`,
    );
  }
  const isSameServer = changed.kubernetes?.server === before?.kubernetes?.server;
  const known = new Map(before ? clusterPaths(before).map(({ setting, path }) => [setting, path]) : []);
  for (const { setting, path } of clusterPaths(changed)) {
    if (known.get(setting) === path && (isSameServer || !setting.startsWith('kubernetes.'))) continue;
    const refusal = rules.refusalOfFile(path);
    if (refusal) throw invalidRequest(`Cluster ${name}: ${setting} ${path} ${refusal}.`);
  }
}

function hasSimulatedLogin({ simulated, scheduler }: Partial<LabCluster>): boolean {
  return simulated !== undefined && scheduler === 'sunk';
}

function isLocal({ login, controller, accounting, compute }: SlurmSettings): boolean {
  return [...login, controller, accounting, compute].some((host) => host?.local === true);
}
