/** File paths in a lab, which are relative to the lab file, and the lab's other demands on the service's host. */
import { invalidRequest } from '../error.ts';
import { kubernetesFiles } from '../kubernetes/settings.ts';
import type { SlurmSettings } from '../slurm/settings.ts';
import type { LabCluster } from './lab.ts';

type Section = Record<string, unknown>;

const pathsOfCluster: readonly (readonly string[])[] = [
  ['slurm', 'manage', 'identityFile'],
  ...kubernetesFiles.map((name) => ['kubernetes', name]),
];

/** The lab, still unvalidated, with `resolve` applied to every file path in its clusters. */
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
 * The rules for a cluster's demands on the service's own host: files read there, a shell with `local`, a login node
 * with `simulated`. A lab over the API gets only what the host's configuration allows, since operators need not be
 * administrators of the host.
 */
export interface HostRules {
  /** The reason why a file must not be named, as text that follows its path; undefined for an allowed one. */
  refusalOfFile(path: string): string | undefined;
  /** The names of the clusters that may be described with `local: true`. */
  allowLocal: readonly string[];
  /** Whether new simulated login nodes are allowed. */
  allowSimulated: boolean;
}

/**
 * Throws `invalid_request` for settings that the API must not set. `changed` has the sections that are new or
 * different; file paths that the present cluster (`before`) has already may stay, for the same server.
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

function isLocal({ login, controller, accounting, compute, homes }: SlurmSettings): boolean {
  return [...login, controller, accounting, compute, homes].some((host) => host?.local === true);
}
