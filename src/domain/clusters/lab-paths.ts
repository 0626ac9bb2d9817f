/** The names of files in a lab, which are relative to the file that the lab stands in. */
import { kubernetesFiles } from '../kubernetes/settings.ts';

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

/** The files that the description of a cluster names. `setting`: which, such as `kubernetes.tokenFile`. */
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
