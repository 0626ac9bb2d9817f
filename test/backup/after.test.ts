/** The command after a backup: what it gets, how its failures are said, and that it ends with everything that it started. */
import assert from 'node:assert/strict';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Logger } from '../../src/lib/log.ts';
import { startBackups } from '../../src/service/backup/index.ts';
import { noteKeptBackup, readBackupFailure, readKeptBackup } from '../../src/store/data-dir/last-backup.ts';
import { eventually } from '../support/app.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { openTestStore } from '../support/store.ts';

const hour = 3_600_000;
const times = { checkMs: 20, startMs: 1, retryMs: 60_000 };

/** A data directory, a place for its backups, and a service that makes them. */
async function installation() {
  await using opened = await openTestStore();
  await opened.store.close();
  const own = temporaryDirectory();
  const at = (name: string) => join(own.path, name);
  const dataDir = at('data');
  cpSync(opened.dataDir, dataDir, { recursive: true });
  mkdirSync(at('place'));
  return {
    at,
    dataDir,
    start(after: string, now = Date.now) {
      const logged: Record<string, unknown>[] = [];
      const add = (event: string, fields: object) => logged.push({ event, ...fields });
      const log = { debug: add, info: add, warn: add, error: add } as unknown as Logger;
      const settings = { everyMs: hour, keep: 3, to: at('place'), after };
      const stop = startBackups({ settings, dataDir, version: '9', elsewhere: () => [], log, now, times });
      const next = (event: string) =>
        eventually(
          async () => logged.find((one) => one['event'] === event),
          (found) => found !== undefined,
        );
      return { logged, stop, next };
    },
    [Symbol.dispose]: () => own[Symbol.dispose](),
  };
}

/** Whether a process runs whose ID is in a file. */
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
  const service = own.start(
    `cat "$1" > ${own.at('copy')} && env > ${own.at('env')} && pwd >> ${own.at('pwd')}`,
  );
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
  const again = own.start('true');
  await new Promise((resolve) => setTimeout(resolve, 200));
  await again.stop();
  assert.deepEqual(again.logged, []);
  assert.equal(readFileSync(own.at('pwd'), 'utf8'), '/\n');
});

test('a failure is said and noted with how it ended and what it said first, and the command alone is tried again', async () => {
  using own = await installation();
  const failing = own.start('printf "\\n\\033[1mno route to far\\nmore\\n" >&2; exit 3');
  const failure = await failing.next('backup.failed');
  await failing.stop();
  const { file } = readKeptBackup(own.dataDir) ?? {};
  const message = `backup.after failed for ${file}: it ended with status 3: \\u001b[1mno route to far`;
  assert.deepEqual(failure, { event: 'backup.failed', message, failures: 1, retryMs: 60_000 });
  const { at: _, ...noted } = readBackupFailure(own.dataDir) ?? {};
  assert.deepEqual(noted, { message, file, failures: 1 });

  const later = (minutes: number) => () => Date.now() + minutes * 60_000;
  const silent = own.start('kill -9 $$', later(2));
  const second = await silent.next('backup.failed');
  await silent.stop();
  assert.match(String(second?.['message']), /: it was ended by SIGKILL\.$/);
  assert.equal(second?.['failures'], 2);

  const mended = own.start('true', later(10));
  await mended.next('backup.handed_on');
  await mended.stop();
  assert.equal(readBackupFailure(own.dataDir), undefined);
  assert.equal(readdirSync(own.at('place')).length, 1, 'no other backup was made');
});

test('a failure of the command stays until the command succeeds, also where the next backup is made', async () => {
  using own = await installation();
  const failing = own.start('exit 1');
  await failing.next('backup.failed');
  await failing.stop();
  const kept = readKeptBackup(own.dataDir);
  assert.ok(kept);
  noteKeptBackup(own.dataDir, { ...kept, at: new Date(Date.now() - 2 * hour).toISOString() });
  const next = own.start('exit 2');
  await next.next('backup.made');
  await next.next('backup.failed');
  await next.stop();
  assert.match(readBackupFailure(own.dataDir)?.message ?? '', /status 2\.$/);
  assert.equal(readBackupFailure(own.dataDir)?.failures, 2);
});

test('one that hangs is killed with all that it started when the next backup is due, and that is made', async () => {
  using own = await installation();
  const before = own.start('exit 1');
  await before.next('backup.failed');
  await before.stop();
  const due = Date.parse(readKeptBackup(own.dataDir)?.at ?? '') + hour;
  const pids = ['shell', 'child'].map((name) => own.at(name));
  const hang = `echo $$ > ${pids[0]}; trap "" TERM; sleep 1000 & echo $! > ${pids[1]}; yes >&2`;
  const untilDue = due - Date.now() - 5_000;
  const service = own.start(hang, () => Date.now() + untilDue);
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
  const service = own.start(hang);
  await eventually(
    async () => existsSync(own.at('child')) && readFileSync(own.at('child'), 'utf8').endsWith('\n'),
    (begun) => begun,
  );
  await service.stop();
  for (const pid of pids) await ends(pid);
  assert.equal(readBackupFailure(own.dataDir), undefined);
  assert.equal(readKeptBackup(own.dataDir)?.awaits, true);
  rmSync(own.at('child'));
  const next = own.start('true');
  await next.next('backup.handed_on');
  await next.stop();
});

test('what it leaves running does not outlive it, nor keeps it', async () => {
  using own = await installation();
  const service = own.start(`sleep 1000 & echo $! > ${own.at('child')}`);
  await service.next('backup.handed_on');
  await service.stop();
  await ends(own.at('child'));
});
