/** Lab files on their way to the API, which checks their shape: here they are read, and their paths made whole. */
import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import { failure } from '../exit.ts';
import { isObject } from '../net/request.ts';

type Section = Record<string, unknown>;

/** The paths in a cluster's description. */
const pathsOfCluster = [
  ['slurm', 'manage', 'identityFile'],
  ['kubernetes', 'kubeconfig'],
] as const;

/** A YAML file's content, `-` for standard input. Throws a sentence with file, line and column. */
export async function readYaml(file: string): Promise<Section> {
  const text = await (file === '-' ? readAll(process.stdin) : readFile(file, 'utf8')).catch(
    (error: NodeJS.ErrnoException) => {
      throw failure(`${file} cannot be read: ${reasonOf(error)}.`, error);
    },
  );
  const { parseDocument } = await import('yaml');
  const document = parseDocument(text);
  const [problem] = document.errors;
  if (problem) {
    const { line, col } = problem.linePos?.[0] ?? { line: 1, col: 1 };
    throw failure(`${file}:${line}:${col}: ${problem.message.split(' at line')[0]}.`);
  }
  const value = toValue(file, document) ?? {};
  if (!isObject(value)) throw failure(`${file}: this is not a map of keys and values.`);
  return value;
}

function toValue(file: string, document: { toJS(): unknown }): unknown {
  try {
    return document.toJS();
  } catch (error) {
    // Aliases that name each other, or too many of them.
    throw failure(`${file}: ${error instanceof Error ? error.message : error}.`, error);
  }
}

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

function reasonOf({ code, message }: NodeJS.ErrnoException): string {
  if (code === 'ENOENT') return 'there is no such file';
  return code === 'EISDIR' ? 'it is a directory' : (code ?? message);
}
