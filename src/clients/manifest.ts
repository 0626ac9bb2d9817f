/** `clients.json`, the list that a release of executables begins with. */
import { DomainError } from '../domain/error.ts';
import { isPlatform, type Platform, systemOf } from './platforms.ts';

export interface ClientFile {
  platform: Platform;
  /** What it is called below /download. */
  name: string;
  bytes: number;
  /** In hex. */
  sha256: string;
  /** Whether whoever released it could run it. */
  tested: boolean;
  /** What else they say of it; may be empty. */
  note: string;
}

export interface Release {
  version: string;
  files: ClientFile[];
}

/** Bytes of the list, of its signature, of one executable, and of all together. */
export const limits = {
  list: 64 * 1024,
  signature: 16 * 1024,
  file: 256 * 2 ** 20,
  all: 2 ** 30,
} as const;

const mostFiles = 8;
const reserved = ['clients.json', 'clients.json.sig', 'list.json'];

/** Reads the list. Throws `invalid_request` with a sentence for anything that it may not be. */
export function parseManifest(text: string): Release {
  const value = parse(text);
  if (value.format !== 1) throw refuse('its format is not 1, the only one that this version knows');
  const { version, files } = value;
  if (typeof version !== 'string' || !/^\d+\.\d+\.\d+[\w.+-]{0,40}$/.test(version))
    throw refuse('its version is none');
  if (!Array.isArray(files) || files.length > mostFiles)
    throw refuse(`its files are not a list of at most ${mostFiles}`);
  if (files.length === 0) throw refuse('it lists no files, and would take all away that are offered');
  const all = files.map(parseFile);
  for (const key of ['name', 'platform'] as const) {
    const seen = new Set(all.map((file) => file[key]));
    if (seen.size < all.length) throw refuse(`two files have one ${key}`);
  }
  if (all.reduce((sum, { bytes }) => sum + bytes, 0) > limits.all)
    throw refuse(`its files are larger than ${limits.all / 2 ** 20} MiB together`);
  return { version, files: all };
}

function parse(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>;
  } catch {
    // Said below.
  }
  throw refuse('it is no JSON object');
}

function parseFile(value: unknown): ClientFile {
  const { platform, name, bytes, sha256, tested, note = '' } = (value ?? {}) as Record<string, unknown>;
  if (!isPlatform(platform))
    throw refuse(
      `a file is for ${JSON.stringify(String(platform).slice(0, 40)).replace(/[^\x20-\x7e]/g, '?')}, which is no platform`,
    );
  if (typeof name !== 'string' || !/^[a-z0-9][a-z0-9._-]{0,63}$/.test(name) || reserved.includes(name))
    throw refuse(`the name of the file for ${platform} is none`);
  if ((systemOf(platform) === 'win32') !== name.endsWith('.exe'))
    throw refuse(`only the file for Windows ends in .exe, and it does`);
  if (!Number.isInteger(bytes) || Number(bytes) < 1 || Number(bytes) > limits.file)
    throw refuse(`${name} has no size from 1 byte to ${limits.file / 2 ** 20} MiB`);
  if (typeof sha256 !== 'string' || !/^[0-9a-f]{64}$/.test(sha256)) throw refuse(`${name} has no SHA-256`);
  if (typeof tested !== 'boolean') throw refuse(`whether ${name} was tested is not said`);
  if (typeof note !== 'string' || note.length > 300) throw refuse(`the note of ${name} is longer than 300`);
  return { platform, name, bytes: Number(bytes), sha256, tested, note };
}

function refuse(why: string): DomainError {
  return new DomainError('invalid_request', `The release's clients.json cannot be used: ${why}.`);
}
