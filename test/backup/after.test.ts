/** The command after a backup: what it gets, how its failures are said, and that it ends with everything that it started. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { test } from 'node:test';
import { noteKeptBackup, readBackupFailure, readKeptBackup } from '../../src/store/data-dir/last-backup.ts';
import { eventually } from '../support/app.ts';
import { hour, installation } from './installation.ts';

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
