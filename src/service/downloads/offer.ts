/** All current downloads, and their addresses. */
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import manifest from '../../../package.json' with { type: 'json' };
import { DomainError } from '../../domain/error.ts';
import type { PortableClient } from '../../lib/packaging.ts';
import { writeWhole } from '../../lib/whole-file.ts';

export interface Offer {
  /** The version of the service, and so of the portable client. */
  version: string;
  portable: PortableFiles;
  executables: readonly Executable[];
  release: Release | undefined;
}

export function readOffer(dataDir: string, portable: PortableFiles): Offer {
  const release = readRelease(dataDir);
  return { version: manifest.version, portable, executables: release?.files ?? [], release };
}

/** The file behind an address below /download; undefined where none is offered by that name. */
export function findFile(
  { release, executables }: Offer,
  name: string,
): (SentFile | Omit<SentFile, 'sha256' | 'bytes'>) | undefined {
  if (!release) return undefined;
  const { directory, isSigned } = release;
  if (name === 'clients.json' || (name === 'clients.json.sig' && isSigned)) return { directory, name };
  const file = executables.find((one) => one.name === name);
  return file && { directory, name, bytes: file.bytes, sha256: file.sha256 };
}

/** The offer for programs: `/download/list.json`. */
export function listOf({ version, portable, executables, release }: Offer, platform: string): object {
  const { mjs, tgz } = portable;
  const facts = ({ bytes, sha256 }: SentFile) => ({ bytes, sha256 });
  return {
    version,
    platform,
    files: [
      { platform: 'node', name: 'andromeda.mjs', path: 'andromeda.mjs', ...facts(mjs) },
      { platform: 'npm', name: 'andromeda.tgz', path: 'andromeda.tgz', ...facts(tgz) },
      ...executables.map((file) => ({
        ...file,
        path: join('download', file.name),
        version: release?.version,
      })),
    ],
  };
}

interface SentFile {
  directory: string;
  name: string;
  bytes: number;
  sha256: string;
}

interface PortableFiles {
  mjs: SentFile;
  tgz: SentFile;
}

/**
 * Writes the portable client to files below the data directory, since downloads are sent from files, also in ranges. They are
 * written at the first request, with a hash of their content in the name. `make` is called once, and again after it failed.
 */
export function createPortable(
  dataDir: string,
  make: () => Promise<PortableClient>,
): () => Promise<PortableFiles> {
  let made: Promise<PortableClient> | undefined;
  return async () => {
    made ??= make().catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    const { mjs, tgz } = await made;
    const directory = clientsDirectory(dataDir);
    return { mjs: writeOnce(directory, mjs, 'mjs'), tgz: writeOnce(directory, tgz, 'tgz') };
  };
}

const sums = new WeakMap<Buffer, string>();

function writeOnce(directory: string, content: Buffer, ending: 'mjs' | 'tgz'): SentFile {
  const sha256 = sums.get(content) ?? createHash('sha256').update(content).digest('hex');
  sums.set(content, sha256);
  const name = `portable-${sha256.slice(0, 32)}.${ending}`;
  const file = join(directory, name);
  if (statSync(file, { throwIfNoEntry: false })?.size !== content.length) {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    writeWhole(file, content);
    // Files of earlier versions, and of a start that was killed here.
    for (const old of readdirSync(directory))
      if (/^portable-[0-9a-f]{32}\./.test(old) && old.includes(`.${ending}`) && old !== name)
        rmSync(join(directory, old), { force: true });
  }
  return { directory, name, bytes: content.length, sha256 };
}

/** A program that needs no Node, for one kind of machine. */
export interface Executable {
  platform: Platform;
  /** The file name below /download. */
  name: string;
  bytes: number;
  sha256: string;
  /** True if it was run before its release. */
  tested: boolean;
  /** A further remark of its releasers; may be empty. */
  note: string;
}

/** Executables and their list, clients.json, which clients.json.sig signs; unpacked next to the portable client. */
interface Release {
  version: string;
  directory: string;
  isSigned: boolean;
  files: Executable[];
}

function clientsDirectory(dataDir: string): string {
  return join(dataDir, 'clients');
}

/**
 * The current release: of the files in its list, those that exist in their size. Undefined where there is no list.
 * Throws `invalid_request` with a sentence where the list is unreadable.
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

/** True if name and hash are safe in a URL and in a script. */
function isSound({ platform, name, sha256 }: Executable): boolean {
  return (
    Object.hasOwn(platforms, platform) &&
    /^andromeda[a-z0-9._-]{0,63}$/.test(name) &&
    /^[0-9a-f]{64}$/.test(sha256)
  );
}

function sizeOf(file: string): number | undefined {
  const stats = statSync(file, { throwIfNoEntry: false });
  return stats?.isFile() ? stats.size : undefined;
}

/** The machines that an executable can be for, by Node's names for them. */
export const platforms = {
  'linux-x64': 'Linux (x86-64)',
  'linux-arm64': 'Linux (ARM)',
  'win32-x64': 'Windows (x86-64)',
  'darwin-arm64': 'macOS (Apple silicon)',
  'darwin-x64': 'macOS (Intel)',
} as const;

type Platform = keyof typeof platforms;

export type System = 'linux' | 'win32' | 'darwin';

export function systemOf(platform: Platform): System {
  return platform.slice(0, platform.indexOf('-')) as System;
}

/** The operating system that a user agent names; undefined for any other. */
export function visitorSystem(userAgent: string, hint: string): System | undefined {
  const said = `${hint} ${userAgent}`;
  if (/android|iphone|ipad/i.test(said)) return undefined;
  if (/windows|win64|powershell/i.test(said)) return 'win32';
  if (/mac ?os|macintosh|darwin/i.test(said)) return 'darwin';
  return /linux|x11|cros/i.test(said) ? 'linux' : undefined;
}
