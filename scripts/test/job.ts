/** One job of a run: a test file, or the check, in a process and a directory of its own. */
import { spawn } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { killAll, leftIn } from './leftovers.ts';

export { killAll };

export interface Outcome {
  /** The test file, from the repository's root, or `check`; with `postgres: ` before it, on PostgreSQL. */
  name: string;
  isFine: boolean;
  output: string;
  seconds: number;
  /** What the processors did for it: its process, and those that this waited for. Daemons that it left to others are missing. */
  cpuSeconds: number;
  /** `tests`, `pass`, `fail`, `skipped` …, as the runner of Node names them. */
  counts: Record<string, number>;
}

/** Before the name of a file whose stores are on PostgreSQL instead of in files. */
export const onPostgres = 'postgres: ';

/** One test of a file, in ms; the file's own limit is larger. */
const testLimitMs = 240_000;
/** How long a job that was asked to end may take to do so. */
const graceMs = 5_000;

/**
 * Runs a job with `directory` as its TMPDIR, which is removed afterwards. Kills what runs longer than the limit, and
 * what it left running; both make it fail, with a sentence that names it. `shared`: where one file leaves what others
 * take; `postgres`: the directory of its socket.
 */
export async function runJob(
  name: string,
  {
    root,
    directory,
    shared,
    limitSeconds,
    postgres,
  }: {
    root: string;
    directory: string;
    shared: string;
    limitSeconds: number;
    postgres: string | undefined;
  },
): Promise<Outcome> {
  const started = performance.now();
  // Other users write here as well, as in /tmp.
  mkdirSync(directory);
  chmodSync(directory, 0o1777);
  const [program = '', ...args] = commandOf(name, root);
  // Where a test runs this, it is the other test's.
  const { NODE_TEST_CONTEXT: _, ...environment } = process.env;
  const cpuFile = `${directory}.cpu`;
  const child = spawn(program, args, {
    cwd: root,
    // Compiled once for all jobs; npm would keep its own in TMPDIR.
    env: {
      NODE_COMPILE_CACHE: join(directory, '../compiled'),
      ANDROMEDA_TEST_SHARED: shared,
      ...environment,
      ...(postgres !== undefined && { ANDROMEDA_TEST_POSTGRES: postgres }),
      TMPDIR: directory,
      ANDROMEDA_TEST_CPU: cpuFile,
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
  const faults = [
    isLate ? `${name} did not end within ${limitSeconds} s and was ended` : '',
    left.length > 0 ? `${name} left behind: ${left.join('; ')}` : '',
  ].filter(Boolean);
  return {
    name,
    isFine: status === 0 && faults.length === 0,
    output: [output.trimEnd(), ...faults].join('\n'),
    seconds: (performance.now() - started) / 1000,
    cpuSeconds: takeNumber(cpuFile),
    counts: countsIn(output),
  };
}

function commandOf(name: string, root: string): string[] {
  if (name === 'check') return ['npm', 'run', '--silent', 'check'];
  const ends = join(root, 'test/support/ends.ts');
  const options = [`--test-timeout=${testLimitMs}`, '--test-reporter=spec', `--import=${ends}`];
  return [process.execPath, ...options, name.replace(onPostgres, '')];
}

/** The number in a file, which is removed; 0 where a job that was killed wrote none. */
function takeNumber(file: string): number {
  try {
    return Number(readFileSync(file, 'utf8'));
  } catch {
    return 0;
  } finally {
    rmSync(file, { force: true });
  }
}

/** The last lines of the output of Node's `spec` reporter: `ℹ tests 12`. */
function countsIn(output: string): Record<string, number> {
  return Object.fromEntries(
    [...output.matchAll(/^ℹ (\w+) (\d+)$/gm)].map(([, name, count]) => [name, Number(count)]),
  );
}
