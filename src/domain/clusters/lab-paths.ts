/** The names of files in a lab, which are relative to the file that the lab stands in, and what else it asks of the host. */
import { invalidRequest } from '../error.ts';
import { kubernetesFiles } from '../kubernetes/settings.ts';
import type { SlurmSettings } from '../slurm/settings.ts';
import type { LabCluster } from './lab.ts';

type Section = Record<string, unknown>;

const pathsOfCluster: readonly (readonly string[])[] = [
  ['slurm', 'manage', 'identityFile'],
  ...kubernetesFiles.map((name) => ['kubernetes', name]),
];

/** A lab, whose shape was not checked yet, with `resolve` done to every name of a file in its clusters. */
export function withLabPaths<L extends object>(lab: L, resolve: (path: string) => string): L {
  const { clusters } = lab as Section;
  if (!Array.isArray(clusters)) return lab;
  return {
    ...lab,
    clusters: clusters.map((one: unknown) => (isSection(one) ? withClusterPaths(one, resolve) : one)),
  };
}

export function withClusterPaths(cluster: Section, resolve: (path: string) => string): Section {
  return pathsOfCluster.reduce((done, path) => resolveAt(done, path, resolve), cluster);
}

export function clusterPaths(cluster: object): { setting: string; path: string }[] {
  return pathsOfCluster.flatMap((keys) => {
    const value = keys.reduce<unknown>((at, key) => (isSection(at) ? at[key] : undefined), cluster);
    return typeof value === 'string' ? [{ setting: keys.join('.'), path: value }] : [];
  });
}

function resolveAt(
  section: Section,
  [key, ...rest]: readonly string[],
  resolve: (path: string) => string,
): Section {
  const value = key === undefined ? undefined : section[key];
  if (key === undefined || value === undefined) return section;
  if (rest.length > 0) {
    return isSection(value) ? { ...section, [key]: resolveAt(value, rest, resolve) } : section;
  }
  return typeof value === 'string' ? { ...section, [key]: resolve(value) } : section;
}

function isSection(value: unknown): value is Section {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * What the description of a cluster asks of the service's own host: files that are read there, with `local` a shell, and with
 * `simulated` a login node. A lab that comes over the API gets only what the host's configuration leaves to it, for operators
 * are not the host.
 */
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
