/** An upgrade that is cut off: whatever is on the disk then, the version before goes on with it, and so does this one. */
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';
import { openStore } from '../../src/store/data-dir/open-store.ts';
import { restoreBackup } from '../../src/store/data-dir/restore.ts';
import type { Store } from '../../src/store/engine/index.ts';
import { migrations } from '../../src/store/migrations/index.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { laterVersion, newest, placeSchema } from '../support/schemas.ts';

const now = '2030-01-01T00:00:00.000Z';
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

async function people(store: Store): Promise<string[]> {
  const rows = await store.read.selectFrom('users').select('primary_email').orderBy('id').execute();
  await store.close();
  return rows.map((row) => row.primary_email ?? '').slice(1);
}

/** Starts the version before, by itself or with the backup that it needs then, and this one. */
async function startBoth(dataDir: string): Promise<'before' | 'after'> {
  const state = await openStore(dataDir).then(
    async (store) => {
      assert.deepEqual(await people(store), ['ada@x.example', 'bob@x.example']);
      return 'before' as const;
    },
    async (error: Error) => {
      assert.match(error.message, /was written by a newer version/);
      using directory = temporaryDirectory();
      const back = join(directory.path, 'data');
      restoreBackup(join(dataDir, 'before-upgrade', `${newest}.backup`), back, now);
      assert.deepEqual(await people(await openStore(back)), ['ada@x.example', 'bob@x.example']);
      return 'after' as const;
    },
  );
  assert.deepEqual(await people(await openStore(dataDir, { schema: laterVersion })), [
    'ada@x.example',
    'bob@x.example',
  ]);
  assert.deepEqual(readdirSync(join(dataDir, 'before-upgrade')), [`${newest}.backup`]);
  return state;
}

test('an upgrade that is killed at a write to the database or to its backup leaves what both versions start with', {
  skip: !hasStrace && 'strace is missing, or may trace nothing',
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

/** A disk of its own, of so many MiB. */
function smallDisk(mebibytes: number): Disposable & { path: string } {
  const directory = temporaryDirectory();
  const { path } = directory;
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m`, 'tmpfs', path]);
  return {
    path,
    [Symbol.dispose]() {
      execFileSync('umount', ['-l', path]);
      directory[Symbol.dispose]();
    },
  };
}

const skip = process.getuid?.() !== 0 && 'needs root';

test('an upgrade is refused with a sentence where the disk has no room for the backup before it', {
  skip,
}, async () => {
  using disk = smallDisk(64);
  placeSchema(disk.path, newest);
  await assert.rejects(openStore(disk.path, { schema: laterVersion }), {
    code: 'service_unavailable',
    message:
      /^This version changes the database, and makes a backup of it first, which failed: The disk of .* has 6\d MiB left, and 1[23]\d MiB are needed\. Make room\. Nothing was changed: mend that and start again, or start the version before\.$/,
  });
  assert.ok(!existsSync(join(disk.path, 'before-upgrade')));
  await (await openStore(disk.path)).close();
  execFileSync('mount', ['-o', 'remount,size=256m', disk.path]);
  assert.equal(await startBoth(disk.path), 'before');
});

test('a disk that becomes full in the middle of an upgrade leaves the database as it was', {
  skip,
}, async () => {
  using disk = smallDisk(256);
  placeSchema(disk.path, newest);
  const filler = join(disk.path, 'filler');
  const half: Migration = {
    async up(db: Kysely<unknown>) {
      await sql.raw('create table rooms (content blob not null)').execute(db);
      fill(filler);
      await sql`insert into rooms values (zeroblob(${64 * 2 ** 20}))`.execute(db);
    },
  };
  const failing = { migrations: { ...migrations, '9998-half': half }, oldestServed: newest };
  await assert.rejects(openStore(disk.path, { schema: failing }), {
    code: 'service_unavailable',
    message: /cannot be used: the disk is full\.$/,
  });
  rmSync(filler);
  assert.equal(await startBoth(disk.path), 'before');
});

function fill(file: string): void {
  const descriptor = openSync(file, 'w');
  const block = Buffer.alloc(2 ** 20);
  try {
    for (;;) writeSync(descriptor, block);
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC');
  } finally {
    closeSync(descriptor);
  }
}

test('the backups of the last two upgrades are kept, and one of the same schema takes the place of the one before', async () => {
  using directory = temporaryDirectory();
  const backups = join(directory.path, 'before-upgrade');
  mkdirSync(backups);
  for (const [name, day] of [
    ['older', 1],
    ['old', 2],
  ] as const) {
    writeFileSync(join(backups, `${name}.backup`), '');
    utimesSync(join(backups, `${name}.backup`), day, day);
  }
  placeSchema(directory.path, newest);
  const upgrade = async () => (await openStore(directory.path, { schema: laterVersion })).close();
  const kept = () => readdirSync(backups).sort();
  await upgrade();
  assert.deepEqual(kept(), [`${newest}.backup`, 'old.backup']);
  restoreBackup(join(backups, `${newest}.backup`), directory.path, now);
  await upgrade();
  assert.deepEqual(kept(), [`${newest}.backup`, 'old.backup']);
});
