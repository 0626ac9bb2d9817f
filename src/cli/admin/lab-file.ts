/** Lab files on their way to the API, which checks their shape: here their paths are made whole. */
import { dirname, resolve } from 'node:path';
import { isObject } from '../net/request.ts';

type Section = Record<string, unknown>;

/** The paths in a cluster's description. */
const pathsOfCluster = [
  ['slurm', 'manage', 'identityFile'],
  ['kubernetes', 'kubeconfig'],
] as const;

/** A lab with the paths in its clusters made absolute. */
export function absoluteLab(lab: Section, file: string): Section {
  if (!Array.isArray(lab.clusters)) return lab;
  const clusters = lab.clusters.map((one: unknown) => (isObject(one) ? absolutePaths(one, file) : one));
  return { ...lab, clusters };
}

/** A cluster's description with its paths, which are relative to the file, made absolute. */
export function absolutePaths(cluster: Section, file: string): Section {
  const directory = file === '-' ? process.cwd() : dirname(resolve(file));
  return pathsOfCluster.reduce((done, path) => resolveAt(done, path, directory), cluster);
}

function resolveAt(section: Section, [key, ...rest]: readonly string[], directory: string): Section {
  const value = key === undefined ? undefined : section[key];
  if (key === undefined || value === undefined) return section;
  if (rest.length > 0)
    return isObject(value) ? { ...section, [key]: resolveAt(value, rest, directory) } : section;
  return typeof value === 'string' ? { ...section, [key]: resolve(directory, value) } : section;
}
