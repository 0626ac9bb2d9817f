/** Golden text: what commands ask of the APIs, print and say. `GOLDEN=write node --test FILE` writes it. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { after, test } from 'node:test';
import { type Routes, signedIn, taken } from './small-api.ts';

/** A command line, or one that reads something. */
type Row = string | { args: string; input: string };

/**
 * Tests of commands that begin with `prefix`, by their section of `file`: each request but those that only look things up has `>`
 * before it, and each line of standard error `!`. `lookups` are the answers that any of them may ask for.
 */
export function goldenText(file: string, prefix: readonly string[], lookups: Routes) {
  const sections = readFileSync(file, 'utf8').split(/\n(?=# )/);
  const found: string[] = [];
  if (process.env['GOLDEN'] === 'write') after(() => writeFileSync(file, found.join('\n')));
  return (name: string, routes: Routes, rows: readonly Row[]): void => {
    test(name, async (t) => {
      const { run, requests } = await signedIn(t, { ...lookups, ...routes });
      let text = `# ${name}\n`;
      for (const row of rows) {
        const { args, input } = typeof row === 'string' ? { args: row, input: '' } : row;
        const command = [...prefix, ...args.split(' ')];
        const { status, stdout, stderr } = await run(command, { input });
        const asked = taken(requests).filter((line) => !(line in lookups));
        text += `\n$ andromeda ${command.join(' ')}\n${marked('>', inOrder(asked))}${stdout}`;
        text += marked('!', stderr.match(/.*\n|.+$/g) ?? []);
        if (status !== 0) text += `exit ${status}\n`;
      }
      found.push(text);
      const expected = sections.find((section) => section.startsWith(`# ${name}\n`));
      if (process.env['GOLDEN'] !== 'write') assert.equal(text, expected);
    });
  };
}

const marked = (mark: string, lines: readonly string[]) =>
  lines.map((line) => `${mark} ${line.replace(/\n$/, '')}\n`).join('');

/** Reads that follow each other were asked for at the same time, and arrive in any order. */
function inOrder(requests: readonly string[]): string[] {
  const runs: string[][] = [[]];
  for (const line of requests) {
    if (line.startsWith('GET ')) runs.at(-1)?.push(line);
    else runs.push([line], []);
  }
  return runs.flatMap((run) => run.sort());
}
