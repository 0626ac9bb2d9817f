/** Restricts the files of this host that a lab from the API may name: to one directory, without the service's own files. */
import { lstatSync, realpathSync } from 'node:fs';
import { basename, dirname, isAbsolute, join, relative, resolve } from 'node:path';

/** True if a path is a directory or below it, compared as text. */
export function isWithin(path: string, directory: string): boolean {
  const way = relative(directory, path);
  return way === '' || (way !== '..' && !way.startsWith('../') && !isAbsolute(way));
}

/**
 * A clause after the path why a lab must not name a file; undefined where it may. The clause does not reveal whether
 * the file exists. `directory` undefined: none is allowed. Symbolic links count as their target, and must themselves
 * be within the directory as well, or another user of the host could change the target later.
 */
export function refusalOfFile(
  path: string,
  { directory, never }: { directory: string | undefined; never: readonly string[] },
): string | undefined {
  if (directory === undefined) {
    return "is a file of the service's host: those may be named over the API once clusters.secretsDir in its configuration says where they are";
  }
  const home = realPath(directory) ?? directory;
  const elsewhere = `is not below ${directory}, the only directory of the service's host whose files may be named over the API (clusters.secretsDir)`;
  if (!isAbsolute(path))
    return `is a relative path; give an absolute one, below ${directory} (clusters.secretsDir)`;
  const isPlain = isAbsolute(path) && resolve(path) === path && !path.includes('\0');
  if (!isPlain || !(isBelow(path, directory) || isBelow(path, home))) return elsewhere;
  const real = realPath(path);
  if (real === undefined || !isBelow(real, home)) return elsewhere;
  if (never.some((one) => isWithin(real, realPath(one) ?? one) || isWithin(real, one))) {
    return "is the service's own: no cluster may name its data directory or the files of its configuration";
  }
  return undefined;
}

function isBelow(path: string, directory: string): boolean {
  return path !== directory && isWithin(path, directory);
}

/** True if a path is a directory or below it, with symbolic links resolved. */
export function leadsInto(path: string, directory: string): boolean {
  return isWithin(path, directory) || isWithin(realPath(path) ?? path, realPath(directory) ?? directory);
}

/** The resolved path, also of a file that does not exist yet; undefined for a dangling symbolic link. */
function realPath(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    if (lstatSync(path, { throwIfNoEntry: false })) return undefined;
    const parent = dirname(path);
    const above = parent === path ? path : realPath(parent);
    return above === undefined ? undefined : join(above, basename(path));
  }
}
