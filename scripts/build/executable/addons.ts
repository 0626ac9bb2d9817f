/**
 * Native addons. The system's loader opens files only, so each is unpacked once into a private directory
 * (cache-place.ts), under its SHA-256. A file found there is loaded only when it is ours, nobody else can write to it,
 * and every byte is as in the executable; and it is loaded by the descriptor that was read, so that nothing can take
 * its place in between.
 */
import { closeSync, constants, fstatSync, openSync, readSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cachePlaces, describe } from './cache-place.ts';

export type LoadAddon = (file: string) => unknown;

/** A loader of addons by their file names in the executable, which begin with their SHA-256. Each is loaded once. */
export function createAddonLoader(read: (file: string) => Buffer): LoadAddon {
  const loaded = new Map<string, unknown>();
  return (file) => {
    if (!loaded.has(file)) loaded.set(file, loadAddon(file, read(file)));
    return loaded.get(file);
  };
}

/** Throws a sentence that says which places were tried, and why each would not do. */
function loadAddon(file: string, content: Buffer): unknown {
  const refusals: string[] = [];
  for (const place of cachePlaces(process.env)) {
    try {
      const directory = place.open();
      return openAddon(join(directory, file), content);
    } catch (error) {
      refusals.push(`${place.path}: ${describe(error)}`);
    }
  }
  const fix =
    'Set XDG_CACHE_HOME to a directory of yours on a file system that is mounted without noexec.';
  throw new Error(`No directory can hold this program's native code. ${fix} Tried ${refusals.join('; ')}.`);
}

function openAddon(path: string, content: Buffer): unknown {
  let descriptor = openVerified(path, content);
  if (descriptor === undefined) {
    unpack(path, content);
    descriptor = openVerified(path, content);
    if (descriptor === undefined) throw new Error('what was written there is not what is read there');
  }
  try {
    const module = { exports: {} as unknown };
    process.dlopen(module, `/proc/self/fd/${descriptor}`);
    return module.exports;
  } finally {
    closeSync(descriptor);
  }
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
  if (isOurs && size === content.length && readAll(descriptor, size).equals(content)) return descriptor;
  closeSync(descriptor);
  return undefined;
}

function readAll(descriptor: number, size: number): Buffer {
  const bytes = Buffer.allocUnsafe(size);
  let at = 0;
  while (at < size) {
    const count = readSync(descriptor, bytes, at, size - at, at);
    if (count === 0) break;
    at += count;
  }
  return bytes.subarray(0, at);
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
