/**
 * Starts the processes of sessions. node-pty opens terminals without close-on-exec, so every process started
 * later would inherit every open terminal: one person could read another's. Here each such descriptor is
 * covered with /dev/null in the new process.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { openSync, readdirSync, readFileSync } from 'node:fs';

export interface Program {
  file: string;
  args: string[];
  env: Record<string, string>;
  /** Set when this process must drop root for it; otherwise the program does so itself, or need not. */
  uid?: number;
  gid?: number;
}

const closeOnExec = 0o2000000;
const inheritable = new Set<number>();
let devNull: number | undefined;

/** Marks the descriptors that this process itself inherited, which new processes must not see. */
export function hideInherited(): void {
  for (const name of readdirSync('/proc/self/fd')) {
    try {
      const flags = /^flags:\s*(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${name}`, 'utf8'))?.[1];
      if (Number(name) > 2 && flags && !(Number.parseInt(flags, 8) & closeOnExec))
        inheritable.add(Number(name));
    } catch {
      // The descriptor of this very listing.
    }
  }
}

/** Marks a descriptor that new processes must not see. */
export function hideFromChildren(fd: number): void {
  inheritable.add(fd);
}

export function forgetHidden(fd: number): void {
  inheritable.delete(fd);
}

/** Spawns with the given descriptors (or new pipes) as 0, 1 and 2; `leader` makes it a session of its own. */
export function spawnProgram(
  program: Program,
  standard: readonly (number | 'pipe')[],
  leader: boolean,
): ChildProcess {
  devNull ??= openSync('/dev/null', 'r+');
  const stdio: (number | 'pipe' | 'ignore')[] = [...standard];
  for (const fd of inheritable) {
    while (stdio.length < fd) stdio.push('ignore');
    stdio[fd] = devNull;
  }
  const { file, args, env, uid, gid } = program;
  const owner = uid === undefined || gid === undefined ? {} : { uid, gid };
  return spawn(file, args, { cwd: '/', env, stdio, detached: leader, ...owner });
}
