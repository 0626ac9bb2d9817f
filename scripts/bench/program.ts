/** The programs of this folder, each a process of its own so that no two contestants share an event loop. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

/** How to run one of them, with its order as JSON. */
export function program(file: string, order: object): string[] {
  return [process.execPath, join(import.meta.dirname, file), JSON.stringify(order)];
}

/** The first line that a program prints; rejects when it ends before. */
export async function firstLine(child: ChildProcess): Promise<string> {
  if (!child.stdout) throw new Error('no output to read from');
  const early = new AbortController();
  child.once('exit', () => early.abort(new Error(`${child.spawnargs.slice(1, 2)} ended before it began`)));
  const [data] = await once(child.stdout, 'data', { signal: early.signal });
  return String(data).trim();
}
