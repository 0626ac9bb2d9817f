/** Where the executable may unpack its addons: private directories of this user, best first. */
import { lstatSync, mkdirSync, type Stats } from 'node:fs';
import { dirname, isAbsolute, join } from 'node:path';

export interface CacheDirectory {
  path: string;
  /** Makes the directory if need be and makes sure that it is private. Throws why it will not do. */
  open(): string;
}

/** The directories, in the order in which they are tried. */
export function cacheDirectories(env: NodeJS.ProcessEnv): CacheDirectory[] {
  const uid = process.geteuid?.() ?? 0;
  const own = `andromeda-${uid}`;
  const caches = [env['CACHE_DIRECTORY'], env['XDG_CACHE_HOME'], env['HOME'] && join(env['HOME'], '.cache')];
  const bases: [base: string | undefined, name: string][] = [
    ...caches.map((base): [string | undefined, string] => [base, 'andromeda']),
    [env['XDG_RUNTIME_DIR'], 'andromeda'],
    [uid === 0 ? '/run' : `/run/user/${uid}`, 'andromeda'],
    ['/dev/shm', own],
    ['/var/tmp', own],
    ['/tmp', own],
  ];
  const paths = bases.flatMap(([base, name]) => (base && isAbsolute(base) ? [join(base, name)] : []));
  return [...new Set(paths)].map((path) => ({ path: join(path, 'addons'), open: () => open(path) }));
}

function open(path: string): string {
  // `~/.cache` may be missing in a new home; nothing above it is made.
  const base = dirname(path);
  makePrivate(base);
  requireSafe(base);
  const addons = join(path, 'addons');
  makePrivate(path);
  for (const directory of [path, addons]) {
    makePrivate(directory);
    requireOwn(directory);
  }
  return addons;
}

function makePrivate(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

/** Nobody else may be able to put another directory where ours is: it is ours, or sticky as /tmp is. */
function requireSafe(base: string): void {
  const { uid, mode } = directoryAt(base, false);
  const isOwn = uid === process.geteuid?.() && (mode & 0o022) === 0;
  const isSticky = uid === 0 && (mode & 0o1000) !== 0;
  if (!isOwn && !isSticky) throw new Error(`${base} belongs to somebody else, or others may write to it`);
}

function requireOwn(path: string): void {
  const { uid, mode } = directoryAt(path, true);
  if (uid !== process.geteuid?.() || (mode & 0o022) !== 0) {
    throw new Error(`${path} belongs to somebody else, or others may write to it`);
  }
}

function directoryAt(path: string, exactly: boolean): Stats {
  const stats = lstatSync(exactly ? path : `${path}/`);
  if (!stats.isDirectory()) throw new Error(`${path} is not a directory`);
  return stats;
}

/** Why a directory would not do, as a clause. */
export function describe(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'ERR_DLOPEN_FAILED') {
    return /failed to map|permission|not permitted/i.test(message) ? 'it is mounted noexec' : message;
  }
  const reasons: Record<string, string> = {
    ENOENT: 'it cannot be made there',
    EACCES: 'no right to write there',
    EPERM: 'no right to write there',
    EROFS: 'it is read-only',
    ENOSPC: 'no space is left',
    EDQUOT: 'the quota is used up',
  };
  return (code && reasons[code]) || message;
}
