/** A release file (a gzip of a tar) → a folder of executables, each with the size and the SHA-256 that the list gives it. */
import { createHash, type Hash } from 'node:crypto';
import { closeSync, createReadStream, fsyncSync, openSync, statfsSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { DomainError } from '../domain/error.ts';
import { type ClientFile, limits, parseManifest, type Release } from './manifest.ts';
import { discard, makeReleaseFolder, offer } from './store.ts';
import { readTar, refuse, type TarEntry, type TarSink } from './tar-reader.ts';

/** Offers what is in the release file, which is open, in place of what was offered. All of it is checked first; a refusal changes nothing. */
export async function addRelease(dataDir: string, descriptor: number): Promise<Release> {
  const directory = makeReleaseFolder(dataDir);
  try {
    const release = await unpack(descriptor, directory);
    offer(dataDir, directory);
    return release;
  } catch (error) {
    discard(directory);
    throw error;
  }
}

async function unpack(descriptor: number, directory: string): Promise<Release> {
  const unpacking = createUnpacking(directory);
  try {
    await pipeline(
      createReadStream('', { fd: descriptor }),
      createGunzip(),
      (pieces: AsyncIterable<Buffer>) => readTar(pieces, unpacking.sink),
    );
    return unpacking.finish();
  } catch (error) {
    if (/^Z_|^ERR_/.test(String((error as NodeJS.ErrnoException).code)) && !(error instanceof DomainError))
      throw refuse('it is damaged, or no gzip');
    throw error;
  } finally {
    unpacking.close();
  }
}

/** Stays free for everything else. */
const spareBytes = 256 * 2 ** 20;

interface Entry {
  name: string;
  hash: Hash;
  descriptor: number;
  /** What the list says of it, where it is an executable. */
  listed: ClientFile | undefined;
  /** The list itself is kept, to be read. */
  text: Buffer[] | undefined;
}

function createUnpacking(directory: string): { sink: TarSink; finish(): Release; close(): void } {
  let release: Release | undefined;
  let entry: Entry | undefined;
  const seen = new Set<string>();

  const sink: TarSink = {
    begin({ name, bytes }) {
      if (seen.has(name)) throw refuse(`${name} is in it twice`);
      if (!release && name !== 'clients.json') throw refuse('clients.json is not the first file in it');
      const { limit, listed } = allowed({ name, bytes }, release);
      if (bytes > limit) throw refuse(`${name} has ${bytes} bytes, and may have ${limit}`);
      seen.add(name);
      const descriptor = openSync(join(directory, name), 'wx', 0o600);
      const text = name === 'clients.json' ? [] : undefined;
      entry = { name, hash: createHash('sha256'), descriptor, listed, text };
    },
    write(piece) {
      if (!entry) return;
      entry.hash.update(piece);
      entry.text?.push(Buffer.from(piece));
      for (let at = 0; at < piece.length; ) at += writeSync(entry.descriptor, piece, at);
    },
    end() {
      if (!entry) return;
      const { name, hash, descriptor, listed, text } = entry;
      fsyncSync(descriptor);
      closeSync(descriptor);
      entry = undefined;
      if (listed && hash.digest('hex') !== listed.sha256)
        throw refuse(`${name} does not have the SHA-256 that clients.json gives`);
      if (!text) return;
      release = parseManifest(Buffer.concat(text).toString('utf8'));
      requireSpace(directory, release);
    },
  };

  return {
    sink,
    finish() {
      if (!release) throw refuse('there is no clients.json in it');
      const missing = release.files.find(({ name }) => !seen.has(name));
      if (missing) throw refuse(`${missing.name} is listed, and not in it`);
      return release;
    },
    close() {
      if (entry) closeSync(entry.descriptor);
    },
  };
}

/** The database is on the same disk, and must not run out of it. */
function requireSpace(directory: string, { files }: Release): void {
  const { bavail, bsize } = statfsSync(directory);
  const needed = files.reduce((sum, { bytes }) => sum + bytes, spareBytes);
  if (bavail * bsize < needed)
    throw new DomainError(
      'invalid_request',
      `There is too little space at ${directory}: it takes ${Math.ceil(needed / 2 ** 20)} MiB with what has to stay free.`,
    );
}

/** What may be in it, and how large it may be. */
function allowed(
  { name, bytes }: TarEntry,
  release: Release | undefined,
): { limit: number; listed: ClientFile | undefined } {
  if (name === 'clients.json') return { limit: limits.list, listed: undefined };
  if (name === 'clients.json.sig') return { limit: limits.signature, listed: undefined };
  const listed = release?.files.find((one) => one.name === name);
  if (!listed) throw refuse(`${name} is not in its list`);
  if (bytes !== listed.bytes)
    throw refuse(`${name} has ${bytes} bytes, and clients.json says ${listed.bytes}`);
  return { limit: limits.file, listed };
}
