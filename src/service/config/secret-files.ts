/** Which files of this host a lab that comes over the API may name: one directory's, and of that not what is ours. */
import { lstatSync, realpathSync } from 'node:fs';
import { basename, dirname, isAbsolute, join, relative, resolve } from 'node:path';

/** Whether a path is a directory or something below it, by its text alone. */
export function isWithin(path: string, directory: string): boolean {
  const way = relative(directory, path);
  return way === '' || (way !== '..' && !way.startsWith('../') && !isAbsolute(way));
}

/**
 * Why a file must not be named, as a clause that follows its path; undefined where it may. The clause is the same whether or
 * not there is such a file. `directory` undefined: none may. Symbolic links count as their target, and must themselves be
 * within the directory as well, or another user of the host could change the target later.
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

/** Whether a path leads to a directory or something below it, symbolic links followed. */
export function leadsInto(path: string, directory: string): boolean {
  return isWithin(path, directory) || isWithin(realPath(path) ?? path, realPath(directory) ?? directory);
}

/** Where a path leads, also one that does not exist yet; undefined for a symbolic link that leads nowhere. */
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
