/**
 * `npm test`: the check and every test file, each in a process of its own, several at a time, those that take longest
 * first. A job that does not end in time, or leaves something behind, fails. (`node --test` takes files by name.)
 *
 *   main.ts [--quick | --under DIR | FILE…] [--jobs N] [--limit SECONDS]
 */
import { chmodSync, globSync, mkdirSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { judge } from '../../test/support/judge.ts';
import { createPostgres, missingPostgres } from '../../test/support/postgres-server.ts';
import { startJudge } from '../../test/support/shared-judge.ts';
import { isWaiting, onBoth, quick, slow } from './files.ts';
import { killAll, type Outcome, onPostgres, runJob } from './job.ts';
import { homesNow, makeWorkDirectory, removeWorkDirectory } from './leftovers.ts';

const root = join(import.meta.dirname, '../..');
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: 'boolean', default: false },
    under: { type: 'string' },
    // Twice as many as there are processors: half of the jobs wait for the most part.
    jobs: { type: 'string', default: `${availableParallelism() * 2}` },
    limit: { type: 'string', default: '500' },
  },
});

const started = performance.now();
const processors = cpuTimes();
const jobs = jobsToRun();
const homes = homesNow();
const directory = makeWorkDirectory();
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    killAll(directory);
    removeWorkDirectory(directory);
    process.exit(1);
  });
}
const outcomes: Outcome[] = [];
const shared = join(directory, 'shared');
mkdirSync(shared);
// Others than root take from it as well.
chmodSync(shared, 0o755);
const judging = await startJudge(shared, judge);
const postgres = startPostgres();
await Promise.all(Array.from({ length: Number(values.jobs) }, (_, index) => work(index % 2 === 0)));
await (await postgres)?.[Symbol.asyncDispose]();
await judging[Symbol.asyncDispose]();
summarize();
removeWorkDirectory(directory);

/** Takes one job after the other until none is left, of its kind while there are such. */
async function work(takesWaiting: boolean): Promise<void> {
  const next = () => {
    const index = jobs.findIndex((name) => isWaiting(name) === takesWaiting);
    return jobs.splice(Math.max(index, 0), 1)[0];
  };
  for (let name = next(); name !== undefined; name = next()) {
    const nothing = { isFine: false, output: 'did not run', seconds: 0, cpuSeconds: 0, counts: {} };
    const number = outcomes.push({ name, ...nothing }) - 1;
    const outcome = await runJob(name, {
      root,
      directory: join(directory, `${number}`),
      shared,
      limitSeconds: Number(values.limit),
      postgres: name.startsWith(onPostgres) ? (await postgres)?.directory : undefined,
    });
    outcomes[number] = outcome;
    const { isFine, seconds, cpuSeconds, counts, output } = outcome;
    const tests = counts['tests'] === undefined ? '' : `${counts['tests']} tests, `;
    console.log(
      `${isFine ? '✔' : '✖'} ${name} (${tests}${seconds.toFixed(1)} s, CPU ${cpuSeconds.toFixed(1)} s)`,
    );
    if (!isFine) continue;
    for (const line of output.split('\n').filter((one) => /﹣|# SKIP/.test(one))) console.log(line);
  }
}

/** One for all jobs that are on PostgreSQL. Where it is not installed, they are left out, which is said. */
async function startPostgres() {
  const mine = jobs.filter((name) => name.startsWith(onPostgres));
  if (mine.length === 0) return undefined;
  const missing = missingPostgres();
  if (missing === undefined) return createPostgres(directory);
  for (const name of mine) jobs.splice(jobs.indexOf(name), 1);
  const counts = { tests: mine.length, skipped: mine.length };
  const output = `﹣ ${mine.length} files on PostgreSQL # SKIP ${missing}`;
  outcomes.push({ name: 'postgres', isFine: true, output, seconds: 0, cpuSeconds: 0, counts });
  console.log(output);
  return undefined;
}

/** The check, and test files from the repository's root. */
function jobsToRun(): string[] {
  const found = globSync('test/**/*.test.ts', { cwd: root }).sort();
  const gone = [...slow, ...quick].filter((file) => globSync(file, { cwd: root }).length === 0);
  if (gone.length > 0)
    throw new Error(`${gone.join(', ')} is not there any more: mend scripts/test/files.ts`);
  if (positionals.length > 0) return positionals;
  const first = [...slow, ...found.filter((file) => !slow.includes(file))];
  if (values.quick) {
    const chosen = new Set(globSync(quick, { cwd: root }));
    return ['check', ...first.filter((file) => chosen.has(file))];
  }
  const { under } = values;
  const both = globSync(onBoth, { cwd: root }).sort();
  const all = [...first, ...both.map((file) => `${onPostgres}${file}`)];
  return under === undefined ? ['check', ...all] : first.filter((file) => file.startsWith(`${under}/`));
}

function summarize(): void {
  const failed = outcomes.filter(({ isFine }) => !isFine);
  // At the end, where a log that is cut still has it.
  for (const { name, output } of failed) console.log(`\n✖ ${name}\n${output}\n`);
  const total = (name: string) => outcomes.reduce((sum, { counts }) => sum + (counts[name] ?? 0), 0);
  for (const name of ['tests', 'pass', 'fail', 'cancelled', 'skipped', 'todo'])
    console.log(`ℹ ${name} ${total(name)}`);
  console.log(`ℹ duration_ms ${Math.round(performance.now() - started)}`);
  console.log(`ℹ processors busy ${busyPercent(processors, cpuTimes())} %`);
  const left = homesNow().filter((one) => !homes.includes(one));
  // Somebody else on the machine may have made them, so they are only named.
  if (left.length > 0) console.log(`ℹ new since the start: ${left.join(', ')}`);
  if (failed.length === 0) return;
  console.log(`✖ failed: ${failed.map(({ name }) => name).join(', ')}`);
  process.exitCode = 1;
}

/** Of all processors together since the machine started, in ms. */
function cpuTimes(): { idle: number; all: number } {
  const times = cpus().map(({ times }) => times);
  const sum = (numbers: number[]) => numbers.reduce((a, b) => a + b, 0);
  return { idle: sum(times.map(({ idle }) => idle)), all: sum(times.flatMap((one) => Object.values(one))) };
}

function busyPercent(before: { idle: number; all: number }, now: { idle: number; all: number }): number {
  return Math.round(100 * (1 - (now.idle - before.idle) / Math.max(1, now.all - before.all)));
}
