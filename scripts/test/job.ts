/** One job of a run: a test file, a folder of them or a check, in a process and a directory of its own. */
import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { limit } from '../../test/support/limit.ts';
import { openAccount } from './account.ts';
import type { Job } from './jobs.ts';
import { leftIn } from './leftovers.ts';

export interface Outcome {
  /** The job's. */
  name: string;
  isFine: boolean;
  output: string;
  seconds: number;
  /** What the processors did for it and all that it started; undefined where that is not known (`account.ts`). */
  cpuSeconds: number | undefined;
  /** `tests`, `pass`, `fail`, `skipped` …, as the runner of Node names them. */
  counts: Record<string, number>;
}

/** How long a job that was asked to end may take to do so. */
const graceMs = 5_000;

/**
 * Runs a job with `directory` as its TMPDIR, which is removed afterwards. Kills what runs longer than the limit, and
 * what it left running; both make it fail, with a sentence that names it. `shared`: where one file leaves what others
 * take; `program`: the executable that tests start, built by the job `build`; `postgres`: the directory of its socket.
 */
export async function runJob(
  { name, files }: Job,
  {
    root,
    directory,
    shared,
    program,
    limitSeconds,
    postgres,
  }: {
    root: string;
    directory: string;
    shared: string;
    program: string;
    limitSeconds: number;
    postgres: string | undefined;
  },
): Promise<Outcome> {
  const started = performance.now();
  // Other users write here as well, as in /tmp.
  mkdirSync(directory);
  chmodSync(directory, 0o1777);
  const [command = '', ...args] = commandOf(name, files, program);
  const account = openAccount();
  // Where a test runs this, it is the other test's.
  const { NODE_TEST_CONTEXT: _, ...environment } = process.env;
  const child = spawn(...(account?.command(command, args) ?? ([command, args] as const)), {
    cwd: root,
    // Compiled once for all jobs; npm would keep its own in TMPDIR.
    env: {
      NODE_COMPILE_CACHE: join(directory, '../compiled'),
      ANDROMEDA_TEST_SHARED: shared,
      ...(existsSync(program) && { ANDROMEDA_TEST_PROGRAM: program }),
      ...environment,
      ...(postgres !== undefined && { ANDROMEDA_TEST_POSTGRES: postgres }),
      TMPDIR: directory,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => {
      output += text;
    });
  const closed = new Promise((done) => child.once('close', done));
  let isLate = false;
  const limit = setTimeout(() => {
    isLate = true;
    child.kill('SIGTERM');
    setTimeout(() => child.kill('SIGKILL'), graceMs).unref();
  }, limitSeconds * 1000);
  const status = await new Promise((done) => child.once('exit', (code, signal) => done(signal ?? code)));
  clearTimeout(limit);
  const left = await leftIn(directory);
  // What was left running may hold the output open; it is gone now.
  await Promise.race([closed, wait(graceMs, undefined, { ref: false })]);
  const cpuSeconds = account?.cpuSeconds();
  await account?.close();
  const faults = [
    isLate ? `${name} did not end within ${limitSeconds} s and was ended` : '',
    left.length > 0 ? `${name} left behind: ${left.join('; ')}` : '',
  ].filter(Boolean);
  return {
    name,
    isFine: status === 0 && faults.length === 0,
    output: [output.trimEnd(), ...faults].join('\n'),
    seconds: (performance.now() - started) / 1000,
    cpuSeconds,
    counts: countsIn(output),
  };
}

function commandOf(name: string, files: string[], program: string): string[] {
  const [file = ''] = files;
  if (name === 'build') return [process.execPath, 'scripts/build/main.ts', '--out', program];
  if (files.length === 0) return [process.execPath, 'scripts/check.ts', name.replace('check: ', '')];
  const options = [
    // Less than a job may take, so that the test that hangs is named.
    `--test-timeout=${limit(480_000)}`,
    '--test-reporter=spec',
    '--import=./test/support/ends.ts',
  ];
  const entry = files.length > 1 ? ['test/support/together.ts', ...files] : [file];
  return [process.execPath, ...options, ...entry];
}

/** The last lines of the output of Node's `spec` reporter: `ℹ tests 12`. */
function countsIn(output: string): Record<string, number> {
  return Object.fromEntries(
    [...output.matchAll(/^ℹ (\w+) (\d+)$/gm)].map(([, name, count]) => [name, Number(count)]),
  );
}
