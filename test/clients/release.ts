/** Release files of clients. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { packTar, type TarEntry } from '../../scripts/build/client/tar.ts';
import { temporaryDirectory } from '../support/directory.ts';

export interface Given {
  platform: string;
  name: string;
  content: Buffer;
  tested?: boolean;
  note?: string;
}

function manifestOf(version: string, files: readonly Given[]): string {
  const listed = files.map(({ platform, name, content, tested = true, note = '' }) => ({
    platform,
    name,
    bytes: content.length,
    sha256: createHash('sha256').update(content).digest('hex'),
    tested,
    note,
  }));
  return JSON.stringify({ format: 1, version, files: listed });
}

export function entry(name: string, content: Buffer | string): TarEntry {
  return { name, mode: 0o755, content: Buffer.from(content) };
}

type ReleaseOf = [version: string, files: readonly Given[], more?: readonly TarEntry[]];

/** A release file with these executables; `more` follows its list. */
export function writeRelease(directory: string, ...[version, files, more = []]: ReleaseOf): string {
  mkdirSync(directory, { recursive: true });
  const file = join(directory, `andromeda-clients-${version}.tar.gz`);
  const executables = files.map(({ name, content }) => entry(name, content));
  writeFileSync(file, packTar([entry('clients.json', manifestOf(version, files)), ...more, ...executables]));
  return file;
}

/** Unpacks such a release where the service offers it, as docs/install.md says. */
export function offerRelease(dataDir: string, ...release: ReleaseOf): void {
  using directory = temporaryDirectory();
  const clients = join(dataDir, 'clients');
  mkdirSync(clients, { recursive: true });
  execFileSync('tar', ['-xzf', writeRelease(directory.path, ...release), '-C', clients]);
}
