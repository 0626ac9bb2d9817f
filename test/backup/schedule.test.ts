/** Backups by themselves: due by the last success, made by a process of their own, tried again, and gone when stopped. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import Database from 'better-sqlite3';
import { backupArguments } from '../../src/lib/packaging.ts';
import { dueAt } from '../../src/service/backup/index.ts';
import {
  type BackupFailure,
  readBackupFailure,
  readKeptBackup,
} from '../../src/store/data-dir/last-backup.ts';
import { becomes } from '../support/app.ts';
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
