/**
 * The executables of a release, unpacked into `clients` below the data directory: clients.json lists them, clients.json.sig signs
 * that. The portable client lies there too, where the service has been asked for it (portable.ts).
 */
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DomainError } from '../../domain/error.ts';
import { isPlatform, type Platform } from './platforms.ts';

export interface ClientFile {
  platform: Platform;
  /** What it is called below /download. */
  name: string;
  bytes: number;
  sha256: string;
  /** Whether it was run before its release. */
  tested: boolean;
  /** What else its releasers say of it; may be empty. */
  note: string;
}

export interface Release {
  version: string;
  directory: string;
  isSigned: boolean;
  files: ClientFile[];
}

export function clientsDirectory(dataDir: string): string {
  return join(dataDir, 'clients');
}

/**
 * What is offered now: of the files that the list names, those that are there in their size. Undefined where there is no list.
 * Throws `invalid_request` with a sentence where it cannot be read.
 */
export function readRelease(dataDir: string): Release | undefined {
  const directory = clientsDirectory(dataDir);
  const list = join(directory, 'clients.json');
  if (sizeOf(list) === undefined) return undefined;
  try {
    const { version, files } = JSON.parse(readFileSync(list, 'utf8')) as Release;
    if (!/^\d+\.\d+\.\d+[\w.+-]{0,40}$/.test(version)) throw new Error('its version is none');
    return {
      version,
      directory,
      isSigned: sizeOf(join(directory, 'clients.json.sig')) !== undefined,
      files: files.filter((file) => isSound(file) && sizeOf(join(directory, file.name)) === file.bytes),
    };
  } catch (error) {
    throw new DomainError('invalid_request', `${list} is no list of a release. Unpack the release again.`, {
      cause: error,
    });
  }
}

/** Whether name and sum can stand in an address and in a script. */
function isSound({ platform, name, sha256 }: ClientFile): boolean {
  return isPlatform(platform) && /^andromeda[a-z0-9._-]{0,63}$/.test(name) && /^[0-9a-f]{64}$/.test(sha256);
}

function sizeOf(file: string): number | undefined {
  const stats = statSync(file, { throwIfNoEntry: false });
  return stats?.isFile() ? stats.size : undefined;
}
