/**
 * The portable client as files below the data directory, for they are sent from files, in ranges where that is asked for. They are
 * written when somebody first wants them, under a name that changes with their content.
 */
import { createHash, randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PortableClient } from '../lib/packaging.ts';
import { clientsDirectory } from './store.ts';

export interface SentFile {
  directory: string;
  name: string;
  bytes: number;
  /** In hex. */
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
    const beside = `${file}.${randomUUID()}`;
    writeFileSync(beside, content, { mode: 0o600 });
    renameSync(beside, file);
    // Of versions before, and of a start that was killed here.
    for (const old of readdirSync(directory))
      if (/^portable-[0-9a-f]{32}\./.test(old) && old.includes(`.${ending}`) && old !== name)
        rmSync(join(directory, old), { force: true });
  }
  return { directory, name, bytes: content.length, sha256 };
}
