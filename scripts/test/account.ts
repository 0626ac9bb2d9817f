/**
 * What the processors do for a job, with all that it starts, also what it did not wait for: a control group of its own
 * (cgroups(7), version 1 or 2). Only root may make one; without, nothing is known.
 */
import { mkdirSync, readFileSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

export interface Account {
  /** Puts in front of a command what has it, and all its children, counted here. */
  command(program: string, args: string[]): [string, string[]];
  cpuSeconds(): number;
  /** Once all of its processes have ended. */
  close(): Promise<void>;
}

/** By where they are mounted: how a group tells its time, and what that is in seconds. */
const kinds = [
  {
    mount: '/sys/fs/cgroup/cpuacct',
    read: (group: string) => Number(text(group, 'cpuacct.usage')) / 1e9,
  },
  {
    mount: '/sys/fs/cgroup',
    read: (group: string) => Number(/usage_usec (\d+)/.exec(text(group, 'cpu.stat'))?.[1] ?? 0) / 1e6,
  },
];

let opened = 0;

/** Begins one; undefined where this machine or account has none. */
export function openAccount(): Account | undefined {
  for (const { mount, read } of kinds) {
    opened += 1;
    const group = join(mount, `andromeda-test-${process.pid}-${opened}`);
    try {
      mkdirSync(group);
      read(group);
    } catch {
      closeNow(group);
      continue;
    }
    return {
      command: (program, args) => [
        'sh',
        ['-c', 'echo $$ > "$0" && exec "$@"', join(group, 'cgroup.procs'), program, ...args],
      ],
      cpuSeconds: () => read(group),
      async close() {
        // The kernel lets go of ended processes a moment later.
        for (let tries = 0; tries < 50 && !closeNow(group); tries += 1) await wait(20);
      },
    };
  }
  return undefined;
}

function closeNow(group: string): boolean {
  try {
    rmdirSync(group);
    return true;
  } catch {
    return false;
  }
}

function text(group: string, file: string): string {
  return readFileSync(join(group, file), 'utf8');
}
