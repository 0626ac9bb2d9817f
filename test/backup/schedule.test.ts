/** Backups where they are kept: by themselves, read back, the oldest removed, and the command that runs after each. */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import Database from 'better-sqlite3';
import { backupArguments } from '../../src/lib/packaging.ts';
import { storeBackup } from '../../src/service/backup/directory.ts';
import { dueAt } from '../../src/service/backup/index.ts';
import { keepBackup } from '../../src/service/backup/keep.ts';
import { newestFirst, tooMany } from '../../src/service/backup/names.ts';
import {
  type BackupFailure,
  noteKeptBackup,
  readBackupFailure,
  readKeptBackup,
  readLastBackup,
} from '../../src/store/data-dir/last-backup.ts';
import { restoreBackup } from '../../src/store/data-dir/restore.ts';
import { becomes, eventually } from '../support/app.ts';
import { fieldsOf } from '../support/fields.ts';
import { hour, installation } from './installation.ts';

test('what is due goes by the last success in the same place, and by failures after it', () => {
  const settings = { everyMs: 24 * hour, keep: 3, to: '/b', after: undefined };
  const at = Date.parse('2030-01-10T00:00:00Z');
  const kept = (hours: number, directory = '/b') => ({
    at: new Date(at - hours * hour).toISOString(),
    file: `${directory}/f`,
    bytes: 1,
    awaits: true,
  });
  const failed = (failures: number, minutes: number, file?: string) => ({
    at: new Date(at - minutes * 60_000).toISOString(),
    failures,
    message: 'm',
    ...(file !== undefined && { file }),
  });
  const due = (one: ReturnType<typeof kept> | undefined, failure?: BackupFailure, after?: string) =>
    dueAt({ ...settings, after }, { kept: one, failure }, at);
  const wait = (...of: Parameters<typeof due>) => (due(...of).backup - at) / hour;
  assert.equal(wait(kept(5)), 19);
  assert.equal(wait(kept(30)), -6);
  assert.ok(wait(undefined) < 0);
  assert.ok(wait(kept(1, '/elsewhere')) < 0, 'another place has none yet');
  assert.ok(wait(kept(-5)) < 0, 'one that is to come was made while the clock was wrong');
  assert.equal(wait(kept(30), failed(1, 0)), 1 / 60);
  assert.equal(wait(kept(30), failed(3, 0)), 4 / 60);
  assert.equal(wait(kept(30), failed(60, 0)), 1, 'an hour at most');
  assert.equal(wait(kept(5), failed(1, 0)), 19);
  assert.ok(wait(kept(30), failed(1, 0, '/b/f')) < 0, 'a command that fails holds back no backup');

  const waitForCommand = (...[one, failure, after = 'true']: Parameters<typeof due>) =>
    (due(one, failure, after).command - at) / hour;
  assert.equal(due(kept(5)).command, Number.POSITIVE_INFINITY, 'there is no command');
  assert.equal(waitForCommand({ ...kept(5), awaits: false }), Number.POSITIVE_INFINITY);
  assert.equal(waitForCommand(kept(30)), Number.POSITIVE_INFINITY, 'the next backup comes first');
  assert.ok(waitForCommand(kept(5)) < 0);
  assert.equal(waitForCommand(kept(5), failed(3, 0, '/b/f')), 4 / 60);
  assert.ok(waitForCommand(kept(5), failed(3, 0, '/b/before')) < 0, 'another backup, another try');
});

test('the service makes one when it is due, not again after a restart, and the next when that is due', async () => {
  using own = await installation();
  const first = own.start({ every: 24 * hour });
  const made = await first.next('backup.made');
  await first.stop();
  assert.equal(readdirSync(own.place).length, 1);
  assert.equal(made?.['file'], readKeptBackup(own.dataDir)?.file);

  const again = own.start({ every: 24 * hour });
  await new Promise((resolve) => setTimeout(resolve, 200));
  await again.stop();
  assert.deepEqual(again.logged, []);

  const later = own.start({ every: 24 * hour, now: () => Date.now() + 25 * hour });
  const kept = readKeptBackup(own.dataDir)?.at ?? '';
  await later.next('backup.made');
  await later.stop();
  assert.ok((readKeptBackup(own.dataDir)?.at ?? '') > kept);

  // It is not due, and the last one is gone.
  const gone = own.start({ every: 24 * hour, now: () => Date.now() + 25 * hour });
  rmSync(readKeptBackup(own.dataDir)?.file ?? '');
  assert.ok(await gone.next('backup.made'));
  await gone.stop();
});

test('one that fails is said, noted and not tried again at once; the next that succeeds ends that', async () => {
  using own = await installation();
  const to = own.at('not-mounted');
  const failing = own.start({ to });
  const failure = await failing.next('backup.failed');
  const sentence = `${to} does not exist. Make the directory, or mount what it lies on.`;
  assert.equal(failure?.['message'], `No backup was made: ${sentence}`);
  await new Promise((resolve) => setTimeout(resolve, 200));
  await failing.stop();
  assert.equal(failing.logged.length, 1);
  assert.deepEqual(readBackupFailure(own.dataDir)?.failures, 1);
  assert.equal(readBackupFailure(own.dataDir)?.message, sentence);

  mkdirSync(to);
  const mended = own.start({ to, now: () => Date.now() + 2 * 60_000 });
  await mended.next('backup.made');
  await mended.stop();
  assert.equal(readBackupFailure(own.dataDir), undefined);
});

test('a service that is stopped within a backup leaves nothing that counts, and clears away what one that crashed left', async () => {
  using own = await installation();
  const database = new Database(join(own.dataDir, 'andromeda.db'));
  database.exec('create table padding (content blob)');
  for (let i = 0; i < 96; i++) database.exec('insert into padding values (zeroblob(1048576))');
  database.close();
  const content = join(own.dataDir, 'backup-work');
  const service = own.start({});
  await becomes(() => existsSync(content) && readdirSync(content).length > 0, true);
  await service.stop();
  assert.deepEqual(service.logged, []);
  assert.deepEqual(readdirSync(own.place), []);
  assert.equal(readKeptBackup(own.dataDir), undefined);
  // Had it been killed with its service, or the power been cut:
  mkdirSync(content, { recursive: true });
  writeFileSync(join(content, 'copy'), 'secret');
  await own.start(undefined).stop();
  assert.ok(!existsSync(content));
});

test('where no backups are wanted, nothing is written: the disk may be full', async () => {
  using own = await installation();
  const before = readdirSync(own.dataDir);
  await own.start(undefined).stop();
  assert.deepEqual(readdirSync(own.dataDir), before);
});

test('the process that makes a backup ends with the service, however that ends', async () => {
  const child = spawn(process.execPath, backupArguments(), { stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
  child.disconnect();
  assert.equal(await new Promise((resolve) => child.once('exit', resolve)), 0);
});

const version = '9.9.9';

type Installation = Awaited<ReturnType<typeof installation>>;

/** Makes its database so much larger. */
function pad({ dataDir }: Installation, mebibytes: number): void {
  const database = new Database(join(dataDir, 'andromeda.db'));
  database.exec('create table padding (content blob)');
  for (let i = 0; i < mebibytes; i++) database.exec('insert into padding values (randomblob(1048576))');
  database.close();
}

/** Keeps one that was made in a given minute. */
function keep(
  { dataDir, place }: Installation,
  minute: number,
  more: { to?: string; signal?: AbortSignal; onProgress?(part: number): void } = {},
) {
  const { to = place, ...making } = more;
  const madeAt = `2030-01-01T00:${String(minute).padStart(2, '0')}:00.000Z`;
  const settings = { keep: 3, to, after: undefined };
  return keepBackup({ settings, dataDir, madeAt, version, elsewhere: [], ...making });
}

/** What of a backup is left where it is made. */
const leftIn = (dataDir: string) => readdirSync(dataDir).filter((name) => name === 'backup-work');

test('backups in a directory: verified, noted, and of ours only the newest stay', async () => {
  using own = await installation();
  const foreign = 'andromeda-000000000000-20200101T000000Z.backup';
  for (const name of [foreign, 'notes.txt', 'andromeda-x.backup']) writeFileSync(join(own.place, name), 'x');
  const kept = [];
  for (const minute of [1, 2, 3, 4]) kept.push(await keep(own, minute));
  assert.deepEqual(fieldsOf(kept, 'removed'), [0, 0, 0, 1]);
  const last = kept.at(-1);
  assert.match(last?.file ?? '', /\/andromeda-[0-9a-f]{12}-20300101T000400Z\.backup$/);
  const there = readdirSync(own.place);
  assert.equal(there.length, 6, String(there));
  for (const name of [foreign, 'notes.txt', 'andromeda-x.backup']) assert.ok(there.includes(name));
  assert.ok(!there.some((name) => name.includes('T000100Z')));
  const { bytes, file } = last ?? {};
  assert.deepEqual(readLastBackup(own.dataDir), { at: '2030-01-01T00:04:00.000Z', file, bytes });
  assert.deepEqual(readKeptBackup(own.dataDir), {
    at: '2030-01-01T00:04:00.000Z',
    file,
    bytes,
    awaits: false,
  });
  assert.deepEqual(leftIn(own.dataDir), []);
  const restored = restoreBackup(file ?? '', join(own.path, 'restored'), '2030-01-02T00:00:00.000Z');
  assert.equal(restored.madeAt, '2030-01-01T00:04:00.000Z');
  // The installation that comes back goes on with its own backups.
  const id = (dataDir: string) => readFileSync(join(dataDir, 'backup-id.json'), 'utf8');
  assert.equal(id(join(own.path, 'restored')), id(own.dataDir));
});

test('never the last good one: names from a clock that was ahead do not push it out', () => {
  const id = '0123456789ab';
  const name = (year: number) => `andromeda-${id}-${year}0101T000000Z.backup`;
  const stored = [2031, 2032, 2033, 2020].map((year) => ({ name: name(year), bytes: 1 }));
  assert.deepEqual(tooMany(stored, { id, keep: 2, good: name(2020) }), [name(2032), name(2031)]);
  assert.deepEqual(tooMany(stored, { id, keep: 1, good: name(2020) }).length, 3);
  assert.deepEqual(tooMany(stored, { id: 'ffffffffffff', keep: 1, good: 'none' }), []);
  assert.deepEqual(newestFirst([...stored, { name: 'else', bytes: 1 }])[0]?.name, name(2033));
});

test('what was killed is swept away, and nothing half counts', async () => {
  using own = await installation();
  pad(own, 16);
  const ending = new AbortController();
  const parts: string[] = [];
  const interrupted = keep(own, 1, {
    signal: ending.signal,
    onProgress: () => {
      parts.push(...readdirSync(join(own.dataDir, 'backup-work')));
      ending.abort();
    },
  });
  await assert.rejects(interrupted, { name: 'AbortError' });
  assert.ok(parts.length > 0);
  assert.deepEqual([readdirSync(own.place), leftIn(own.dataDir)], [[], []]);
  assert.equal(readLastBackup(own.dataDir), undefined);
  // As after kill -9: a copy, and a part of what was being written.
  const { id } = JSON.parse(readFileSync(join(own.dataDir, 'backup-id.json'), 'utf8'));
  mkdirSync(join(own.dataDir, 'backup-work'), { recursive: true });
  writeFileSync(join(own.dataDir, 'backup-work/copy.1.part'), 'secret');
  writeFileSync(join(own.place, `.andromeda-${id}-20300101T000100Z.backup.part`), 'half');
  await keep(own, 2);
  assert.deepEqual(leftIn(own.dataDir), []);
  assert.deepEqual(readdirSync(own.place).length, 1);
});

test('a directory that cannot be used is one sentence, and what is damaged is not kept', async () => {
  using own = await installation();
  pad(own, 4);
  await assert.rejects(keep(own, 1, { to: join(own.path, 'none') }), {
    message: `${join(own.path, 'none')} does not exist. Make the directory, or mount what it lies on.`,
  });
  const bytes = readFileSync(join(own.dataDir, 'andromeda.db'));
  bytes.fill(0x55, bytes.length / 2, bytes.length / 2 + 8192);
  writeFileSync(join(own.dataDir, 'andromeda.db'), bytes);
  await assert.rejects(keep(own, 1), {
    code: 'invalid_state',
    message: /^The database in .* is damaged, so no backup was written\. Restore the last good one/,
  });
  assert.deepEqual([readdirSync(own.place), leftIn(own.dataDir)], [[], []]);
});

test('what is not read back as it was written is not kept', async () => {
  using own = await installation();
  const copy = join(own.path, 'pipe');
  execFileSync('mkfifo', [copy]);
  const placing = storeBackup(copy, own.place, 'andromeda-one.backup');
  const bytes = Buffer.alloc(100_000, 'a backup ');
  await using pipe = await open(copy, 'w');
  await pipe.write(bytes);
  const part = join(own.place, '.andromeda-one.backup.part');
  await becomes(() => statSync(part, { throwIfNoEntry: false })?.size, bytes.length);
  await using disk = await open(part, 'r+');
  await disk.write(Buffer.from('X'), 0, 1, 50_000);
  await pipe.close();
  await assert.rejects(placing, {
    message: /one\.backup was written, and what was read back is not the same\./,
  });
  assert.deepEqual(readdirSync(own.place), []);
});

test('an old one that cannot be removed is said, and the new one is as good', {
  skip: process.getuid?.() !== 0 && 'needs root, for a directory whose files only their owner removes',
}, async () => {
  using own = await installation();
  for (const minute of [1, 2, 3]) await keep(own, minute);
  const nobody = 65_534;
  for (const path of [own.path, own.place]) chmodSync(path, 0o1777);
  execFileSync('chown', ['-R', String(nobody), own.dataDir]);
  process.seteuid?.(nobody);
  try {
    const { notRemoved, removed } = await keep(own, 4);
    assert.equal(notRemoved, `${own.place} is not the service's account's to read and write.`);
    assert.equal(removed, 0);
  } finally {
    process.seteuid?.(0);
  }
  assert.equal(readdirSync(own.place).length, 4);
});

/** Of a process that is killed: it may not have had its turn to end. */
const ends = (file: string) =>
  eventually(
    async () => runs(file),
    (is) => !is,
  );

function runs(file: string): boolean {
  const stat = `/proc/${readFileSync(file, 'utf8').trim()}/stat`;
  return existsSync(stat) && !/^\d+ \(.*\) Z/.test(readFileSync(stat, 'utf8'));
}

test('it runs once for each backup that is in place, with its path and without a secret in its environment', async () => {
  using own = await installation();
  process.env['ANDROMEDA_SECRETS_KEY'] = 'a secret';
  const after = `cat "$1" > ${own.at('copy')} && env > ${own.at('env')} && pwd >> ${own.at('pwd')}`;
  const service = own.start({ after });
  const made = await service.next('backup.made');
  const handedOn = await service.next('backup.handed_on');
  await service.stop();
  delete process.env['ANDROMEDA_SECRETS_KEY'];
  assert.equal(handedOn?.['file'], made?.['file']);
  assert.ok(readFileSync(own.at('copy')).equals(readFileSync(String(made?.['file']))));
  const names = readFileSync(own.at('env'), 'utf8').match(/^\w+(?==)/gm) ?? [];
  const known = ['PATH', 'HOME', 'USER', 'LOGNAME', 'LANG', 'TZ', 'TMPDIR', 'PWD', 'OLDPWD', 'SHLVL', '_'];
  assert.deepEqual(
    names.filter((name) => !known.includes(name)),
    [],
  );
  assert.equal(readKeptBackup(own.dataDir)?.awaits, false);
  const again = own.start({ after: 'true' });
  await new Promise((resolve) => setTimeout(resolve, 200));
  await again.stop();
  assert.deepEqual(again.logged, []);
  assert.equal(readFileSync(own.at('pwd'), 'utf8'), '/\n');
});

test('a failure is said and noted with how it ended and what it said first, and the command alone is tried again', async () => {
  using own = await installation();
  const failing = own.start({ after: 'printf "\\n\\033[1mno route to far\\nmore\\n" >&2; exit 3' });
  const failure = await failing.next('backup.failed');
  await failing.stop();
  const { file } = readKeptBackup(own.dataDir) ?? {};
  const message = `backup.after failed for ${file}: it ended with status 3: \\u001b[1mno route to far`;
  assert.deepEqual(failure, { event: 'backup.failed', message, failures: 1, retryMs: 60_000 });
  const { at: _, ...noted } = readBackupFailure(own.dataDir) ?? {};
  assert.deepEqual(noted, { message, file, failures: 1 });

  const later = (minutes: number) => () => Date.now() + minutes * 60_000;
  const silent = own.start({ after: 'kill -9 $$', now: later(2) });
  const second = await silent.next('backup.failed');
  await silent.stop();
  assert.match(String(second?.['message']), /: it was ended by SIGKILL\.$/);
  assert.equal(second?.['failures'], 2);

  assert.equal(readdirSync(own.place).length, 1, 'no other backup was made');

  // It stays until the command succeeds, also where the next backup is made.
  const kept = readKeptBackup(own.dataDir);
  assert.ok(kept);
  noteKeptBackup(own.dataDir, { ...kept, at: new Date(Date.now() - 2 * hour).toISOString() });
  const next = own.start({ after: 'exit 2', now: later(10) });
  await next.next('backup.made');
  await next.next('backup.failed');
  await next.stop();
  assert.match(readBackupFailure(own.dataDir)?.message ?? '', /status 2\.$/);
  assert.equal(readBackupFailure(own.dataDir)?.failures, 3);

  const mended = own.start({ after: 'true', now: later(30) });
  await mended.next('backup.handed_on');
  await mended.stop();
  assert.equal(readBackupFailure(own.dataDir), undefined);
});

test('one that hangs is killed with all that it started when the next backup is due, and that is made', async () => {
  using own = await installation();
  const before = own.start({ after: 'exit 1' });
  await before.next('backup.failed');
  await before.stop();
  const due = Date.parse(readKeptBackup(own.dataDir)?.at ?? '') + hour;
  const pids = ['shell', 'child'].map((name) => own.at(name));
  const hang = `echo $$ > ${pids[0]}; trap "" TERM; sleep 1000 & echo $! > ${pids[1]}; yes >&2`;
  const untilDue = due - Date.now() - 5_000;
  const service = own.start({ after: hang, now: () => Date.now() + untilDue });
  const failure = await service.next('backup.failed');
  await service.next('backup.made');
  assert.match(String(failure?.['message']), /: it had not ended after 0 minutes, and was killed\.$/);
  await service.stop();
  for (const pid of pids) await ends(pid);
});

test('a service that stops ends it with all that it started, and the next one runs it again', async () => {
  using own = await installation();
  const pids = ['shell', 'child'].map((name) => own.at(name));
  const hang = `echo $$ > ${pids[0]}; sleep 1000 & echo $! > ${pids[1]}; wait`;
  const service = own.start({ after: hang });
  await eventually(
    async () => existsSync(own.at('child')) && readFileSync(own.at('child'), 'utf8').endsWith('\n'),
    (begun) => begun,
  );
  await service.stop();
  for (const pid of pids) await ends(pid);
  assert.equal(readBackupFailure(own.dataDir), undefined);
  assert.equal(readKeptBackup(own.dataDir)?.awaits, true);
  rmSync(own.at('child'));
  const next = own.start({ after: 'true' });
  await next.next('backup.handed_on');
  await next.stop();
});

test('what it leaves running does not outlive it, nor keeps it', async () => {
  using own = await installation();
  const service = own.start({ after: `sleep 1000 & echo $! > ${own.at('child')}` });
  await service.next('backup.handed_on');
  await service.stop();
  await ends(own.at('child'));
});
