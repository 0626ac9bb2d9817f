/**
 * Records the hosts that have something of ours. A host that leaves the settings, or Slurm, is then cleaned or reported as
 * left behind; without the record it would be forgotten. Kept in a file, or in the database if several servers share it.
 */
import { mkdirSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { writeWhole } from '../../lib/whole-file.ts';
import { listManagedHosts, noteManagedHost } from '../../store/clusters/cluster-sides.ts';
import type { Store } from '../../store/engine/index.ts';
import type { Host } from './hosts.ts';

/** A recorded host that has no part in the cluster any more. */
export interface LeftHost extends Host {
  /** In a cluster with a login node for each person: the person whose login node it was. */
  username?: string | undefined;
}

export interface HostRecord {
  add(host: Host, username?: string): void;
  remove(address: string): void;
  left(present: readonly Host[]): LeftHost[];
}

type Line = Pick<LeftHost, 'address' | 'reach' | 'nodes' | 'username'>;

export function createHostRecord(file: string): HostRecord {
  return recordOf(read(file), (lines) => {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    const text = [...lines.values()].map((line) => `${JSON.stringify(line)}\n`).join('');
    writeWhole(file, text);
  });
}

/** Rows of one transaction: each transaction waits once for the disk and for the standby. */
const mostAtOnce = 100;

/** The record in the database. A change that cannot be written now is written together with the next one. */
export async function openHostRecord(store: Store, clusterId: string): Promise<HostRecord> {
  const known = (await listManagedHosts(store.read, clusterId)).map(({ host }) => JSON.parse(host) as Line);
  const unwritten = new Map<string, string | undefined>();
  let writing = Promise.resolve();
  async function write() {
    while (unwritten.size > 0) {
      const some = [...unwritten].slice(0, mostAtOnce);
      await store.write(async (tx) => {
        for (const [address, host] of some) await noteManagedHost(tx, clusterId, { address, host });
      });
      for (const [address, host] of some) if (unwritten.get(address) === host) unwritten.delete(address);
    }
  }
  return recordOf(known, (lines, address) => {
    const line = lines.get(address);
    unwritten.set(address, line && JSON.stringify(line));
    writing = writing.then(write).catch(() => {});
  });
}

function recordOf(
  known: readonly Line[],
  save: (lines: ReadonlyMap<string, Line>, address: string) => void,
): HostRecord {
  const lines = new Map(known.map((line) => [line.address, line]));
  return {
    add({ address, reach, nodes }, username) {
      const line: Line = { address, nodes, ...(reach && { reach }), ...(username && { username }) };
      if (JSON.stringify(lines.get(address)) === JSON.stringify(line)) return;
      lines.set(address, line);
      save(lines, address);
    },
    remove(address) {
      if (lines.delete(address)) save(lines, address);
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
