/** The program as a child process, with what it says. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

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

/** Waits for its end. */
export async function runProgram(...args: string[]): Promise<{ status: number; out: string; err: string }> {
  const child = beginProgram(...args);
  let [out, err] = ['', ''];
  child.stdout?.setEncoding('utf8').on('data', (text) => {
    out += text;
  });
  child.stderr?.setEncoding('utf8').on('data', (text) => {
    err += text;
  });
  const [status] = await once(child, 'close');
  return { status, out, err };
}
