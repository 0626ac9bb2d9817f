/** Pinning: a server and the load on it must not fight for one core, nor wander between two. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

export interface Cores {
  /** Prefixes of a command. */
  server: string[];
  load: string[];
}

/** A core for each, or undefined where `taskset` or a second core is missing. */
export function twoCores(): Cores | undefined {
  if (spawnSync('taskset', ['--version']).status !== 0) return undefined;
  const [first, second] = allowedCores();
  if (first === undefined || second === undefined) return undefined;
  const pin = (core: number) => ['taskset', '--cpu-list', `${core}`];
  return { server: pin(first), load: pin(second) };
}

/** The kernel's list, such as `0-1,4`. */
function allowedCores(): number[] {
  const list = /^Cpus_allowed_list:\s*(.+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '';
  return list.split(',').flatMap((range) => {
    const [from = 0, to = from] = range.split('-').map(Number);
    return Array.from({ length: to - from + 1 }, (_, index) => from + index);
  });
}
