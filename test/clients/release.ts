/** Release files of clients, sound and otherwise. */
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { packTar, type TarEntry } from '../../scripts/build/client/tar.ts';

export interface Given {
  platform: string;
  name: string;
  content: Buffer;
  tested?: boolean;
  note?: string;
  /** Where the list lies about it. */
  listed?: object;
}

export function manifestOf(version: string, files: readonly Given[], changes: object = {}): string {
  const listed = files.map(({ platform, name, content, tested = true, note = '', listed = {} }) => ({
    platform,
    name,
    bytes: content.length,
    sha256: createHash('sha256').update(content).digest('hex'),
    tested,
    note,
    ...listed,
  }));
  return JSON.stringify({ format: 1, version, files: listed, ...changes });
}

export function entry(name: string, content: Buffer | string): TarEntry {
  return { name, mode: 0o755, content: Buffer.from(content) };
}

/** A release file with these executables; `more` follows its list. */
export function writeRelease(
  directory: string,
  version: string,
  files: readonly Given[],
  more: readonly TarEntry[] = [],
): string {
  mkdirSync(directory, { recursive: true });
  const file = join(directory, `andromeda-clients-${version}.tar.gz`);
  const executables = files.map(({ name, content }) => entry(name, content));
  writeFileSync(file, packTar([entry('clients.json', manifestOf(version, files)), ...more, ...executables]));
  return file;
}
