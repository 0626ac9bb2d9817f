/** The program as a child process, with what it says. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

const main = join(import.meta.dirname, '../../src/main.ts');

export function beginProgram(...args: string[]): ChildProcess {
  return spawn(process.execPath, [main, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
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
