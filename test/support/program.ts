/** The program as a child process, and its commands on the host by function. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { runCommand } from './command.ts';

const built = process.env['ANDROMEDA_TEST_PROGRAM'];

/** What tests start: the executable that a run builds once, for it starts in a quarter of the time; else the checkout's script. */
export const programFile = {
  isBuilt: built !== undefined,
  path: built ?? join(import.meta.dirname, '../../scripts/andromeda'),
};
export const program = programFile.path;

export function beginProgram(...args: string[]): ChildProcess {
  return spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
}

/** What is a process of its own. */
const processes = ['serve', 'schema-process'];

/** Runs a command to its end; by function, where it is no process. */
export async function runProgram(...args: string[]): Promise<{ status: number; out: string; err: string }> {
  if (processes.includes(args[0] ?? '')) {
    const child = beginProgram(...args);
    const streams = [child.stdout, child.stderr].map((stream) => (stream ? text(stream) : ''));
    const [[status], out = '', err = ''] = await Promise.all([once(child, 'close'), ...streams]);
    return { status, out, err };
  }
  const { status, stdout: out, stderr: err } = await runCommand(args, { env: process.env });
  return { status, out, err };
}
