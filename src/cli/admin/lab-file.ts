/** Lab files on their way to the API, which checks their shape: here their paths are made whole. */
import { dirname, resolve } from 'node:path';
import { withClusterPaths, withLabPaths } from '../../domain/lab-paths.ts';

type Section = Record<string, unknown>;

/** A lab with the paths in its clusters made absolute. */
export function absoluteLab(lab: Section, file: string): Section {
  return withLabPaths(lab, fromDirectoryOf(file));
}

/** A cluster's description with its paths, which are relative to the file, made absolute. */
export function absolutePaths(cluster: Section, file: string): Section {
  return withClusterPaths(cluster, fromDirectoryOf(file));
}

function fromDirectoryOf(file: string): (path: string) => string {
  const directory = file === '-' ? process.cwd() : dirname(resolve(file));
  return (path) => resolve(directory, path);
}
