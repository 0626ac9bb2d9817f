/** The programs of this folder, each a process of its own so that no two contestants share an event loop. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

/** How to run one of them, with its order as JSON. */
export function program(file: string, order: object): string[] {
  return [process.execPath, join(import.meta.dirname, file), JSON.stringify(order)];
}

/** The next line that a program prints; rejects when it ends without. */
export async function nextLine(child: ChildProcess): Promise<string> {
  if (!child.stdout || child.exitCode !== null) throw new Error(`${child.spawnargs.join(' ')} is over`);
  const over = new AbortController();
  // What was printed at the very end comes after `exit`, and before `close`.
  child.once('close', () => over.abort());
  const [data] = await once(child.stdout, 'data', { signal: over.signal });
  return String(data).trim();
}
