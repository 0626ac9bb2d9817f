/**
 * Native addons. The system's loader opens files only, so each is unpacked once into a private directory
 * (cache-directory.ts), under its SHA-256. A file found there is loaded only when it is ours, nobody else can write to it,
 * and every byte is as in the executable; and it is loaded by the descriptor that was read, so that nothing can
 * replace it in between.
 */
import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { cacheDirectories, describe } from './cache-directory.ts';
import { parts } from './parts.ts';

export type LoadAddon = (file: string) => unknown;

/**
 * A loader of addons by their file names in the executable, which begin with their SHA-256. Each is loaded once. `paths` are
 * those that this process has loaded, also on another thread: the system's loader must give the same library again, for two
 * of SQLite in one process would take each other's locks away.
 */
export function createAddonLoader(read: (file: string) => Buffer, paths: Map<string, string>): LoadAddon {
  const loaded = new Map<string, unknown>();
  return (file) => {
    if (!loaded.has(file)) loaded.set(file, loadAddon(file, read, paths));
    return loaded.get(file);
  };
}

/** Throws a `DomainError` with a sentence that names the directories that were tried, and why each would not do. */
function loadAddon(file: string, read: (file: string) => Buffer, paths: Map<string, string>): unknown {
  const known = paths.get(file);
  if (known !== undefined) return dlopen(known);
  const content = read(file);
  const refusals: string[] = [];
  for (const cache of cacheDirectories(process.env)) {
    try {
      const directory = cache.open();
      const descriptor = openAddon(join(directory, file), content);
      const path = `/proc/self/fd/${descriptor}`;
      try {
        const addon = dlopen(path);
        // It stays open: the loader takes a second file by the same name for the first.
        paths.set(file, path);
        return addon;
      } catch (error) {
        closeSync(descriptor);
        throw error;
      }
    } catch (error) {
      refusals.push(`${cache.path}: ${describe(error)}`);
    }
  }
  const fix = 'Set XDG_CACHE_HOME to a directory of yours on a file system that is mounted without noexec.';
  // The class that the program knows, not one of this bundle's own.
  const { DomainError } = parts().code('domain/error') as typeof import('../../../src/domain/error.ts');
  throw new DomainError(
    'service_unavailable',
    `No directory can hold this program's native code. ${fix} Tried ${refusals.join('; ')}.`,
  );
}

function dlopen(path: string): unknown {
  const module = { exports: {} as unknown };
  process.dlopen(module, path);
  return module.exports;
}

/** A descriptor of the file, which is unpacked where it is missing. */
function openAddon(path: string, content: Buffer): number {
  let descriptor = openVerified(path, content);
  if (descriptor === undefined) {
    unpack(path, content);
    descriptor = openVerified(path, content);
    if (descriptor === undefined) throw new Error('what was written there is not what is read there');
  }
  return descriptor;
}

/** A descriptor of the file when it is ours alone and holds exactly `content`; undefined when it is not so. */
function openVerified(path: string, content: Buffer): number | undefined {
  let descriptor: number;
  try {
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  } catch {
    return undefined;
  }
  const { uid, mode, size } = fstatSync(descriptor);
  const isOurs = uid === process.geteuid?.() && (mode & 0o170777) === 0o100600;
  if (isOurs && size === content.length && holds(descriptor, content)) return descriptor;
  closeSync(descriptor);
  return undefined;
}

/** Whether a file holds exactly these bytes. In pieces: memory for all of it would take longer than the reading. */
function holds(descriptor: number, content: Buffer): boolean {
  const piece = Buffer.allocUnsafe(128 * 1024);
  for (let at = 0; at < content.length; ) {
    const count = readSync(descriptor, piece, 0, piece.length, at);
    if (count === 0 || !piece.subarray(0, count).equals(content.subarray(at, at + count))) return false;
    at += count;
  }
  return true;
}

/** Whole or not at all, for several processes may do this at once. */
function unpack(path: string, content: Buffer): void {
  const temporary = `${path}.${process.pid}.${process.hrtime.bigint()}`;
  try {
    writeFileSync(temporary, content, { flag: 'wx', mode: 0o600 });
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}
