/**
 * The executables below the data directory. Each release has a folder of its own; the file `current` names the one that is
 * offered, and is replaced in one step, so that a service that runs never sees half of one.
 *
 *     clients/current            the name of a folder
 *     clients/release-XXXXXX/    clients.json, clients.json.sig, the executables
 *     clients/portable-XXXX.…    the portable client, where the service has been asked for it (portable.ts)
 */
import { randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DomainError } from '../domain/error.ts';
import { limits, parseManifest, type Release } from './manifest.ts';

export interface StoredRelease extends Release {
  directory: string;
  isSigned: boolean;
}

const folderName = /^release-[0-9a-f-]{36}$/;
/** What an `add` that was killed left behind is not another one's that runs. */
const abandonedMs = 86_400_000;

export function clientsDirectory(dataDir: string): string {
  return join(dataDir, 'clients');
}

/** What is offered now: of the files that the list names, those that are there. Undefined where there is no release. */
export function readRelease(dataDir: string): StoredRelease | undefined {
  const base = clientsDirectory(dataDir);
  const folder = readText(join(base, 'current'))?.trim();
  if (folder === undefined || !folderName.test(folder)) return undefined;
  const directory = join(base, folder);
  const text = readText(join(directory, 'clients.json'));
  if (text === undefined) return undefined;
  const { version, files } = parseManifest(text);
  return {
    version,
    directory,
    isSigned: sizeOf(join(directory, 'clients.json.sig')) !== undefined,
    files: files.filter(({ name, bytes }) => sizeOf(join(directory, name)) === bytes),
  };
}

/** A new folder to unpack a release into. */
export function makeReleaseFolder(dataDir: string): string {
  const base = clientsDirectory(dataDir);
  mkdirSync(base, { recursive: true, mode: 0o700 });
  const directory = join(base, `release-${randomUUID()}`);
  mkdirSync(directory, { mode: 0o700 });
  return directory;
}

/** Offers what is in a folder, in place of what was. Others are removed; a download under way goes on. */
export function offer(dataDir: string, directory: string): void {
  const base = clientsDirectory(dataDir);
  const folder = directory.slice(base.length + 1);
  const file = join(base, 'current');
  const beside = `${file}.${randomUUID()}`;
  const before = readText(file)?.trim();
  writeFileSync(beside, `${folder}\n`, { mode: 0o600, flush: true });
  renameSync(beside, file);
  for (const name of readdirSync(base)) {
    const path = join(base, name);
    const isOld = name === before || (folderName.test(name) && ageOf(path) > abandonedMs);
    if (name !== folder && isOld && folderName.test(name)) rmSync(path, { recursive: true, force: true });
  }
}

/** Takes a folder away that was not offered. */
export function discard(directory: string): void {
  rmSync(directory, { recursive: true, force: true });
}

function readText(file: string): string | undefined {
  try {
    if ((sizeOf(file) ?? 0) > limits.list) throw new DomainError('invalid_request', `${file} is too large.`);
    return readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function sizeOf(file: string): number | undefined {
  const stats = statSync(file, { throwIfNoEntry: false });
  return stats?.isFile() ? stats.size : undefined;
}

function ageOf(path: string): number {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats ? Date.now() - stats.mtimeMs : 0;
}
