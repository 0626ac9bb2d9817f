/**
 * `npm run check`: the scripts `check:…` of package.json, as many at a time as there are processors. What finds nothing prints
 * nothing.
 *
 *   check.ts [NAME…]
 */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  scripts: Record<string, string>;
};

/** Their names, the one that takes longest first. */
export const checks = Object.keys(scripts).flatMap((name) => /^check:(.*)/.exec(name)?.[1] ?? []);

async function run(name: string): Promise<void> {
  const script = scripts[`check:${name}`];
  if (script === undefined) throw new Error(`there is no check ${name}; there are: ${checks.join(', ')}`);
  const env = { ...process.env, PATH: `${join(root, 'node_modules/.bin')}:${process.env['PATH']}` };
  const child = spawn('sh', ['-c', script], { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => {
      output += text;
    });
  const status = await new Promise((done) => child.once('close', done));
  if (status === 0) return;
  console.error(`${script}\n${output}`);
  process.exitCode = 1;
}

if (import.meta.main) {
  const names = process.argv.slice(2);
  const waiting = names.length > 0 ? names : [...checks];
  const work = async () => {
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) await run(name);
  };
  await Promise.all(Array.from({ length: availableParallelism() }, work));
}
