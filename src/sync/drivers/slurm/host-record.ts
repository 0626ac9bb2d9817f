/**
 * Records in a file which hosts have something of ours: a host that leaves the settings, or Slurm, is cleaned, or named as
 * left behind, and not forgotten. Without the file only that is lost.
 */
import { mkdirSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { writeWhole } from '../../../lib/whole-file.ts';
import type { Host } from './hosts.ts';

/** A host without a part in the cluster. */
export interface LeftHost extends Host {
  /** Whose login node it was, where each person has their own. */
  username?: string | undefined;
}

export interface HostRecord {
  /** Records that something of ours is there. */
  add(host: Host, username?: string): void;
  remove(address: string): void;
  /** Those that are none of `present`. */
  left(present: readonly Host[]): LeftHost[];
}

type Line = Pick<LeftHost, 'address' | 'reach' | 'nodes' | 'username'>;

export function createHostRecord(file: string): HostRecord {
  const lines = new Map(read(file).map((line) => [line.address, line]));
  const save = () => {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    const text = [...lines.values()].map((line) => `${JSON.stringify(line)}\n`).join('');
    writeWhole(file, text);
  };
  return {
    add({ address, reach, nodes }, username) {
      const line: Line = { address, nodes, ...(reach && { reach }), ...(username && { username }) };
      if (JSON.stringify(lines.get(address)) === JSON.stringify(line)) return;
      lines.set(address, line);
      save();
    },
    remove(address) {
      if (lines.delete(address)) save();
    },
    left(present) {
      const known = new Set(present.map(({ address }) => address));
      return [...lines.values()]
        .filter(({ address }) => !known.has(address))
        .map((line) => ({ ...line, roles: new Set<never>() }));
    },
  };
}

function read(file: string): Line[] {
  try {
    const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean);
    return lines.map((line) => JSON.parse(line) as Line);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw new Error(`${file} cannot be read; correct or remove it: ${(error as Error).message}`);
  }
}
