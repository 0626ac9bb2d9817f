/**
 * Which hosts have something of ours, in a file here: one that leaves the settings, or Slurm, is cleaned, or named as left
 * behind, and not forgotten. Without the file nothing is lost but that memory.
 */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Facts } from './facts.ts';
import type { Host } from './hosts.ts';
import { HostError } from './shell.ts';

/** A host without a part in the cluster. */
export interface LeftHost extends Host {
  /** Whose login node it was, where each person has their own. */
  username?: string | undefined;
}

export interface HostRecord {
  /** Notes that something of ours is there. */
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
    writeFileSync(`${file}.new`, text, { mode: 0o600 });
    renameSync(`${file}.new`, file);
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

/**
 * What may be done with a left host by what it and the hosts in use say: forget it (nothing of ours is there, or it is one
 * of them under another name), clean it, or wait, because one of them that does not answer might be it.
 */
export function fateOf(
  host: LeftHost,
  said: Facts,
  present: readonly { host: Host; said: Facts | HostError | undefined }[],
): 'forget' | 'clean' | 'wait' {
  const there = present.flatMap((one) => (one.said && !(one.said instanceof HostError) ? [one.said] : []));
  if (there.some(({ token }) => token !== undefined && token === said.token)) return 'forget';
  const isAway = ({ host: { roles, nodes }, said }: (typeof present)[number]) =>
    (said === undefined || said instanceof HostError) &&
    (roles.has('login') || roles.has('controller') || nodes.some((node) => host.nodes.includes(node)));
  if (present.some(isAway)) return 'wait';
  if (said.token === undefined) return said.logins.length === 0 ? 'forget' : 'wait';
  return 'clean';
}

/** Whether it went because its Slurm node or its person did; then it may well not exist any more. */
export function hasPassed(
  { nodes, username }: LeftHost,
  now: { nodes: readonly string[]; usernames: readonly string[] },
): boolean {
  if (username !== undefined) return !now.usernames.includes(username);
  return nodes.length > 0 && nodes.every((node) => !now.nodes.includes(node));
}

export function leftBehind({ address }: Host, why: string): string {
  return `${address} is not a host of this cluster any more and still has accounts of ours: ${why}`;
}
