/** An upgrade that is cut off: whatever is on the disk then, the version before goes on with it, and so does this one. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { smallDisk, startBoth } from '../support/both-versions.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { limit } from '../support/limit.ts';
import { newest, placeSchema } from '../support/schemas.ts';

const opener = fileURLToPath(new URL('./opener.ts', import.meta.url));
/** More than Linux gives. */
const noPid = 4_194_305;
const hasStrace = spawnSync('strace', ['-qq', '-o', '/dev/null', 'true']).status === 0;
const writing = ['pwrite64', 'ftruncate', 'fallocate', 'rename', 'unlink', 'mkdir'];

function strace(dataDir: string, ...options: string[]): string[] {
  return ['-f', '-qq', ...options, process.execPath, opener, dataDir];
}

interface Write {
  call: string;
  /** Which one it is of all such calls of the program. */
  index: number;
  file: string;
}

/** What was written below a directory, in order, by the main thread, which alone writes to the database and its backup. */
function writesIn(trace: string, dataDir: string): Write[] {
  const counts = new Map<string, number>();
  const lines = readFileSync(trace, 'utf8').split('\n');
  const main = lines[0]?.split(' ')[0];
  return lines.flatMap((line) => {
    const [, thread, call = '', rest = ''] = /^(\d+) +(\w+)\((.*)$/.exec(line) ?? [];
    if (thread !== main) return [];
    const index = (counts.get(call) ?? 0) + 1;
    counts.set(call, index);
    const [, file] = new RegExp(`${dataDir}/([^">]+)`).exec(rest) ?? [];
    return file === undefined ? [] : [{ call, index, file }];
  });
}

function prepare(dataDir: string): void {
  rmSync(dataDir, { recursive: true, force: true });
  mkdirSync(dataDir);
  placeSchema(dataDir, newest);
}

/** What an upgrade writes. */
function listWrites(dataDir: string): Write[] {
  using traces = temporaryDirectory();
  prepare(dataDir);
  const trace = join(traces.path, 'trace');
  const options = ['-y', '-o', trace, '-e', `trace=${writing.join(',')}`];
  assert.equal(spawnSync('strace', strace(dataDir, '--seccomp-bpf', ...options)).status, 0);
  return writesIn(trace, dataDir);
}

/**
 * Upgrades, and stops at every write: what is on the disk then is what a SIGKILL would leave. `at` is called with the number of writes
 * that were made and the process.
 */
async function upgradeInSteps(
  dataDir: string,
  at: (made: number, pid: string) => Promise<void>,
): Promise<void> {
  using traces = temporaryDirectory();
  prepare(dataDir);
  const trace = join(traces.path, 'trace');
  const calls = writing.join(',');
  const child = spawn(
    'strace',
    // With --seccomp-bpf, no signal would come but SIGKILL.
    strace(dataDir, '-y', '-o', trace, '-e', `trace=${calls}`, '-e', `inject=${calls}:signal=STOP`),
    { stdio: 'ignore' },
  );
  let status: number | null | undefined;
  child.once('exit', (code) => {
    status = code;
  });
  let stops = 0;
  try {
    while (status === undefined) {
      await wait(2);
      const lines = existsSync(trace) ? readFileSync(trace, 'utf8').split('\n') : [];
      const [main = ''] = lines[0]?.split(' ') ?? [];
      const now = lines.filter((line) => line.startsWith(`${main} `) && line.includes('--- stopped by'));
      if (now.length === stops) continue;
      stops = now.length;
      await at(writesIn(trace, dataDir).length, main);
      process.kill(Number(main), 'SIGCONT');
    }
    assert.equal(status, 0);
  } finally {
    child.kill('SIGKILL');
  }
}

/** Of writes to one file of the backup in a row, the first and the last; all of those to the database. */
function chosen(writes: Write[]): Write[] {
  return writes.filter(
    ({ file }, at) =>
      !file.startsWith('before-upgrade/') || writes[at - 1]?.file !== file || writes[at + 1]?.file !== file,
  );
}

test('an upgrade that is killed at a write to the database or to its backup leaves what both versions start with', {
  skip: !hasStrace && 'strace is missing, or may trace nothing',
  timeout: limit(900_000),
}, async () => {
  // In memory, where it can be: waiting for the disk is most of it.
  using disk = process.getuid?.() === 0 ? smallDisk(512) : temporaryDirectory();
  const dataDir = join(disk.path, 'data');
  const copy = join(disk.path, 'copy');
  const states = new Set<string>();
  const check = async (directory: string, at: string) =>
    void states.add(await startBoth(directory).catch((cause) => assert.fail(new Error(at, { cause }))));
  const writes = listWrites(dataDir);
  const wanted = chosen(writes);
  const numbers = new Set(wanted.map((write) => writes.indexOf(write)));
  // Before the first there is nothing that differs.
  numbers.delete(0);
  await upgradeInSteps(dataDir, async (made, pid) => {
    if (!numbers.delete(made)) return;
    cpSync(dataDir, copy, { recursive: true });
    // The files of a process that runs are left alone; it would be dead.
    for (const name of readdirSync(copy, { recursive: true, encoding: 'utf8' }))
      if (name.includes(`.${pid}.`))
        renameSync(join(copy, name), join(copy, name.replace(`.${pid}.`, `.${noPid}.`)));
    await check(copy, `before write ${made}, ${JSON.stringify(writes[made])}`);
    rmSync(copy, { recursive: true });
  });
  assert.deepEqual([...numbers], []);
  // And a real one, in the middle.
  const { call, index, file } = wanted[Math.floor(wanted.length / 2)] ?? assert.fail('no writes');
  prepare(dataDir);
  const inject = `inject=${call}:signal=KILL:when=${index}`;
  assert.notEqual(
    spawnSync('strace', strace(dataDir, '--seccomp-bpf', '-o', '/dev/null', '-e', inject)).status,
    0,
  );
  await check(dataDir, `killed at ${call} ${index}, ${file}`);
  assert.deepEqual([...states].sort(), ['after', 'before']);
});
