/**
 * `npm run check`: types, lint, imports, documents, generated files and the shape, as many at a time as there are processors.
 * What finds nothing prints nothing.
 *
 *   check.ts [NAME…]
 */
import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
const tsc = ['node', 'node_modules/typescript-native/bin/tsc', '--singleThreaded'];

/** By name, the longest first. */
export const checks: Record<string, string[]> = {
  types: tsc,
  lint: ['biome', 'check', '.'],
  imports: ['depcruise', '--config', '.dependency-cruiser.mjs', 'src'],
  unused: ['knip', '--no-progress'],
  shape: ['node', 'scripts/shape.ts', '--check'],
  'types of the console': [...tsc, '-p', 'src/console/app'],
  generated: ['node', 'scripts/generate.ts', '--check'],
  documents: ['redocly', 'lint', '--format=stylish'],
  'types of the documents': [...tsc, '-p', 'src/api/http/docs'],
};

/** Runs one; `output` is empty where it found nothing. */
export async function runCheck(name: string): Promise<{ isFine: boolean; output: string }> {
  const [program = '', ...args] = checks[name] ?? [];
  const child = spawn(program, args, {
    cwd: root,
    env: {
      ...process.env,
      PATH: `${join(root, 'node_modules/.bin')}:${process.env['PATH']}`,
      REDOCLY_TELEMETRY: 'off',
      REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => {
      output += text;
    });
  const status = await new Promise((done) => child.once('close', done));
  return { isFine: status === 0, output: status === 0 ? '' : `${name}: ${program}\n${output}` };
}

async function main(names: string[]): Promise<void> {
  const unknown = names.filter((name) => !(name in checks));
  if (unknown.length > 0) throw new Error(`there is no check ${unknown.join(', ')}`);
  const waiting = names.length > 0 ? names : Object.keys(checks);
  const work = async () => {
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
      const { isFine, output } = await runCheck(name);
      if (isFine) continue;
      console.error(output);
      process.exitCode = 1;
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, work));
}

if (import.meta.main) await main(process.argv.slice(2));
