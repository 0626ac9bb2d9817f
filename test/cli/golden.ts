/** Golden text: what a command asks of the APIs, and what it prints. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Routes, signedIn, taken } from './small-api.ts';

export interface Row {
  args: string[];
  input?: string;
  /** The requests beside those that only look things up. */
  asks?: string[];
  prints: string[];
  says?: string;
  status?: number;
}

/** Tests of commands that begin with `prefix`; `lookups` are the answers that any of them may ask for. */
export function goldenText(prefix: readonly string[], lookups: Routes) {
  return (name: string, routes: Routes, rows: readonly Row[]): void => {
    test(name, async (t) => {
      const { run, requests } = await signedIn(t, { ...lookups, ...routes });
      for (const { args, input = '', asks, prints, says = '', status: expected = 0 } of rows) {
        const { status, stdout, stderr } = await run([...prefix, ...args], { input });
        const said = says === '' ? '' : `${says}\n`;
        assert.deepEqual(
          [stderr, stdout, status],
          [said, prints.map((line) => `${line}\n`).join(''), expected],
        );
        const asked = taken(requests).filter((line) => !(line in lookups));
        assert.deepEqual(inOrder(asked), inOrder(asks ?? []), args.join(' '));
      }
    });
  };
}

/** Reads that follow each other were asked for at the same time, and arrive in any order. */
function inOrder(requests: readonly string[]): string[] {
  const runs: string[][] = [[]];
  for (const line of requests) {
    if (line.startsWith('GET ')) runs.at(-1)?.push(line);
    else runs.push([line], []);
  }
  return runs.flatMap((run) => run.sort());
}
