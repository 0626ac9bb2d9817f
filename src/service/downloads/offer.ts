/** All that people are offered at this moment, and by which addresses. */
import { join } from 'node:path';
import { platforms, type System, systemOf } from './platforms.ts';
import type { PortableFiles, SentFile } from './portable.ts';
import { type ClientFile, readRelease } from './store.ts';

/** A program that needs no Node, for one kind of machine. */
export interface Executable extends ClientFile {
  system: System;
  title: string;
}

export interface Offer {
  /** Of the service, and so of the portable client. */
  version: string;
  portable: PortableFiles;
  executables: Executable[];
  /** The version of the executables, and where their list lies. */
  release: { version: string; directory: string; isSigned: boolean } | undefined;
}

export function readOffer(dataDir: string, version: string, portable: PortableFiles): Offer {
  const found = readRelease(dataDir);
  const executables = (found?.files ?? []).map((file) => ({
    ...file,
    system: systemOf(file.platform),
    title: platforms[file.platform],
  }));
  return { version, portable, executables, release: found };
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
export function listOf({ version, portable, executables, release }: Offer): object {
  const { mjs, tgz } = portable;
  const facts = ({ bytes, sha256 }: SentFile) => ({ bytes, sha256 });
  return {
    version,
    files: [
      { platform: 'node', name: 'andromeda.mjs', path: 'andromeda.mjs', ...facts(mjs) },
      { platform: 'npm', name: 'andromeda.tgz', path: 'andromeda.tgz', ...facts(tgz) },
      ...executables.map(({ system: _system, title: _title, ...file }) => ({
        ...file,
        path: join('download', file.name),
        version: release?.version,
      })),
    ],
  };
}
