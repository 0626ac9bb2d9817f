/**
 * The portable client as files below the data directory: downloads are sent from files, in ranges where requested. They are
 * written at the first request, under a name that changes with their content.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { PortableClient } from '../../lib/packaging.ts';
import { writeWhole } from '../../lib/whole-file.ts';
import { clientsDirectory } from './store.ts';

export interface SentFile {
  directory: string;
  name: string;
  bytes: number;
  sha256: string;
}

export interface PortableFiles {
  mjs: SentFile;
  tgz: SentFile;
}

/** Finds the files, making them where they are missing. `make` is asked once, and again after it failed. */
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
    // Of versions before, and of a start that was killed here.
    for (const old of readdirSync(directory))
      if (/^portable-[0-9a-f]{32}\./.test(old) && old.includes(`.${ending}`) && old !== name)
        rmSync(join(directory, old), { force: true });
  }
  return { directory, name, bytes: content.length, sha256 };
}
