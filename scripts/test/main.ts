/**
 * `npm test`: the checks and every test file, several jobs at a time, those that take longest first. A job that does not end in
 * time, or leaves something behind, fails. (`node --test` takes files by name.)
 *
 *   main.ts [--quick | --full | --under DIR | FILE…] [--jobs N] [--limit SECONDS] [--measure]
 */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { judge } from '../../test/support/judge.ts';
import { limit } from '../../test/support/limit.ts';
import { createPostgres, missingPostgres } from '../../test/support/postgres-server.ts';
import { startJudge } from '../../test/support/shared-judge.ts';
import { missingForBundle } from '../build/bundle.ts';
import { type Outcome, runJob } from './job.ts';
import { costsFile, isWaiting, type Job, jobsOf, readCosts, startsProgram } from './jobs.ts';
import { homesNow, killAll, makeWorkDirectory, removeWorkDirectory } from './leftovers.ts';

const root = join(import.meta.dirname, '../..');
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: 'boolean', default: false },
    full: { type: 'boolean', default: false },
    under: { type: 'string' },
    // Three times as many as there are processors: most of the jobs wait for the most part.
    jobs: { type: 'string', default: `${availableParallelism() * 3}` },
    limit: { type: 'string', default: `${limit(600_000) / 1000}` },
    // Writes down what each job took, by which the next runs put them in order.
    measure: { type: 'boolean', default: false },
  },
});

// Tests of random histories are longer then.
if (values.full) process.env['ANDROMEDA_TEST_FULL'] = 'yes';
const started = performance.now();
const processors = cpuTimes();
const costs = readCosts();
const jobs = jobsOf(root, { ...values, files: positionals });
const homes = homesNow();
const directory = makeWorkDirectory();
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    printOutputs(outcomes.filter(({ isFine, output }) => !isFine && output !== notRun));
    killAll(directory);
    removeWorkDirectory(directory);
    process.exit(1);
  });
}
const outcomes: Outcome[] = [];
const notRun = 'did not run';
const shared = join(directory, 'shared');
mkdirSync(shared);
// Others than root take from it as well.
chmodSync(shared, 0o755);
const judging = await startJudge(shared, judge);
const program = join(shared, 'andromeda');
const postgres = startPostgres();
// For a few files it does not pay. Without a compiler there is no executable, and tests start the checkout's script.
const isShort = values.quick || positionals.length > 0;
let isBuilt = isShort || !jobs.some(startsProgram) || missingForBundle(root).length > 0;
const building = isBuilt ? Promise.resolve() : run({ name: 'build', files: [] });
await Promise.all([
  building.then(() => {
    isBuilt = true;
    return work(false);
  }),
  ...Array.from({ length: Number(values.jobs) - 1 }, (_, index) => work(index + 1 >= availableParallelism())),
]);
await (await postgres)?.[Symbol.asyncDispose]();
await judging[Symbol.asyncDispose]();
summarize();
if (values.measure) writeCosts();
removeWorkDirectory(directory);

/** Takes one job after the other until none is left, of its kind while there are such. */
async function work(takesWaiting: boolean): Promise<void> {
  for (;;) {
    const ready = isBuilt ? jobs : jobs.filter((job) => !startsProgram(job));
    const job = ready.find((one) => isWaiting(one, costs) === takesWaiting) ?? ready[0];
    if (job === undefined && isBuilt) return;
    if (job === undefined) {
      await building;
      continue;
    }
    jobs.splice(jobs.indexOf(job), 1);
    await run(job);
  }
}

async function run(job: Job): Promise<void> {
  const { name } = job;
  const nothing = { isFine: false, output: notRun, seconds: 0, cpuSeconds: undefined, counts: {} };
  const number = outcomes.push({ name, ...nothing }) - 1;
  const outcome = await runJob(job, {
    root,
    directory: join(directory, `${number}`),
    shared,
    program,
    limitSeconds: Number(values.limit),
    postgres: job.isOnPostgres ? (await postgres)?.directory : undefined,
  });
  outcomes[number] = outcome;
  const { isFine, seconds, cpuSeconds, counts, output } = outcome;
  const tests = counts['tests'] === undefined ? '' : `${counts['tests']} tests, `;
  const cpu = cpuSeconds === undefined ? '' : `, CPU ${cpuSeconds.toFixed(1)} s`;
  console.log(`${isFine ? '✔' : '✖'} ${name} (${tests}${seconds.toFixed(1)} s${cpu})`);
  if (!isFine) return;
  for (const line of output.split('\n').filter((one) => /﹣|# SKIP/.test(one))) console.log(line);
}

/** One for all jobs that are on PostgreSQL. Where it is not installed, they are left out, which is said. */
async function startPostgres() {
  const mine = jobs.filter(({ isOnPostgres }) => isOnPostgres);
  if (mine.length === 0) return undefined;
  const missing = missingPostgres();
  if (missing === undefined) return createPostgres(directory);
  for (const job of mine) jobs.splice(jobs.indexOf(job), 1);
  const counts = { tests: mine.length, skipped: mine.length };
  const output = `﹣ ${mine.length} files on PostgreSQL # SKIP ${missing}`;
  outcomes.push({ name: 'postgres', isFine: true, output, seconds: 0, cpuSeconds: undefined, counts });
  console.log(output);
  return undefined;
}

/** At the end, where a log that is cut still has it. */
function printOutputs(failed: Outcome[]): void {
  for (const { name, output } of failed) console.log(`\n✖ ${name}\n${output}\n`);
}

function summarize(): void {
  const failed = outcomes.filter(({ isFine }) => !isFine);
  printOutputs(failed);
  const total = (name: string) => outcomes.reduce((sum, { counts }) => sum + (counts[name] ?? 0), 0);
  for (const name of ['tests', 'pass', 'fail', 'cancelled', 'skipped', 'todo'])
    console.log(`ℹ ${name} ${total(name)}`);
  console.log(`ℹ duration_ms ${Math.round(performance.now() - started)}`);
  const cpu = outcomes.reduce((sum, { cpuSeconds = 0 }) => sum + cpuSeconds, 0);
  console.log(`ℹ processors busy ${busyPercent(processors, cpuTimes())} %, by the jobs ${Math.round(cpu)} s`);
  const left = homesNow().filter((one) => !homes.includes(one));
  // Somebody else on the machine may have made them, so they are only named.
  if (left.length > 0) console.log(`ℹ new since the start: ${left.join(', ')}`);
  if (failed.length === 0) return;
  console.log(`✖ failed: ${failed.map(({ name }) => name).join(', ')}`);
  process.exitCode = 1;
}

function writeCosts(): void {
  const rounded = (seconds = 0) => Math.round(seconds * 10) / 10;
  const measured = outcomes.map(
    ({ name, cpuSeconds, seconds }) =>
      [name, { cpu: rounded(cpuSeconds), seconds: rounded(seconds) }] as const,
  );
  const sorted = measured.sort(([, a], [, b]) => b.cpu - a.cpu);
  const lines = sorted.map(([name, cost]) => `  ${JSON.stringify(name)}: ${JSON.stringify(cost)}`);
  writeFileSync(costsFile, `{\n${lines.join(',\n')}\n}\n`);
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
