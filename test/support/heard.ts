/** What children and sockets say, as text. */
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import type { Readable } from 'node:stream';

/** All that has come on these streams so far, once it is called. */
export function heard(...streams: (Readable | null | undefined)[]): () => string {
  let text = '';
  for (const stream of streams)
    stream?.setEncoding('utf8').on('data', (part) => {
      text += part;
    });
  return () => text;
}

export interface Ended {
  status: number | null;
  signal: string | null;
  out: string;
  err: string;
}

/** Waits for a child, and gathers what it says until then. */
export function finished(child: ChildProcess): Promise<Ended> {
  const [out, err] = [heard(child.stdout), heard(child.stderr)];
  return new Promise((resolve) => {
    child.on('close', (status, signal) => resolve({ status, signal, out: out(), err: err() }));
  });
}

/** Something ended with this status, and said why. */
export function fails(
  { status, err, stderr, said }: { status: number | null; err?: string; stderr?: string; said?: string },
  expected: number,
  words: RegExp,
): void {
  const text = err ?? stderr ?? said ?? '';
  assert.equal(status, expected, text);
  assert.match(text, words);
}
