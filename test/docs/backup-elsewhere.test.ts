/** The lines of operations.md for restic and rclone, with the programs themselves and a directory as the other machine. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { runBackupTask } from '../../src/service/backup/process.ts';
import { writeBackup } from '../../src/store/data-dir/backup.ts';
import { restoreBackup } from '../../src/store/data-dir/restore.ts';
import { installation } from '../backup/installation.ts';
import { readPage } from './pages.ts';

const { blocks } = readPage('operations.md', 'On another machine');
const [, resticSettings = '', resticCommand = '', resticBack = '', ...rclone] = blocks;
const [rcloneSettings = '', rcloneCommand = '', rcloneBack = ''] = rclone;

/** Why lines of a program cannot be tried; undefined where they can. */
function missing(program: string): string | undefined {
  return spawnSync(program, ['version']).error && `${program} is not installed (apt-get install ${program})`;
}

/** A backup, and a place for lines of the page: with directories of the test's in the place of the host's and the other machine's. */
async function prepare() {
  const own = await installation();
  const { at } = own;
  for (const name of ['etc', 'backups', 'far', 'home']) mkdirSync(at(name));
  const file = at('andromeda-1.backup');
  await writeBackup(at('data'), file, { madeAt: '2030-01-01T00:00:00.000Z', version: '9' });
  const here = (text: string) =>
    text
      .replaceAll('/etc/andromeda', at('etc'))
      .replaceAll('/var/backups/andromeda', at('backups'))
      .replaceAll('s3:https://s3.example.org/andromeda', at('far'))
      .replace(/ s3 provider=Other .*/, ` alias remote=${at('far')}`)
      .replaceAll('…', 'correct-horse');
  return {
    at,
    /** What somebody types, who is to stop at the first line that fails. */
    type: (text: string) =>
      execFileSync('/bin/sh', ['-e', '-c', here(text)], {
        env: { PATH: process.env['PATH'], HOME: at('home') },
        stdio: 'pipe',
        encoding: 'utf8',
      }),
    put: (name: string, text: string) => writeFileSync(at(name), here(text), { mode: 0o600 }),
    /** Runs the command of some settings as the service does. */
    handOn: (settings: string) => {
      const command = here(parse(settings).backup.after);
      return runBackupTask({ command, file }, new AbortController().signal);
    },
    /** Restores what came back, which has to be what was made. */
    restore(name: string) {
      assert.ok(readFileSync(join(at('backups'), name)).equals(readFileSync(file)));
      const { madeAt } = restoreBackup(join(at('backups'), name), at('restored'), '2030-01-02T00:00:00.000Z');
      assert.equal(madeAt, '2030-01-01T00:00:00.000Z');
    },
    /** Whether what is on the other machine can be read there. */
    isReadable: () =>
      readdirSync(at('far'), { recursive: true, withFileTypes: true })
        .filter((one) => one.isFile())
        .some((one) => readFileSync(join(one.parentPath, one.name)).includes('SQLite format 3')),
    [Symbol.dispose]: () => own[Symbol.dispose](),
  };
}

test('with restic, the settings of the page take a backup off the machine, encrypted, and its lines bring it back', {
  skip: missing('restic'),
}, async () => {
  using own = await prepare();
  own.put('etc/restic.env', resticSettings);
  const before = await own.handOn(resticCommand);
  assert.match('failure' in before ? before.failure : '', /^it ended with status \d+: Fatal: /);
  own.type('. /etc/andromeda/restic.env\nrestic init --no-cache');
  for (const _ of ['once', 'twice']) assert.deepEqual(await own.handOn(resticCommand), {});
  own.type(resticBack);
  own.restore('andromeda.backup');
  assert.ok(!own.isReadable());
});

test('with rclone, the settings of the page take a backup off the machine, encrypted, and its lines bring it back', {
  skip: missing('rclone'),
}, async () => {
  using own = await prepare();
  own.type(rcloneSettings);
  chmodSync(own.at('etc/rclone.conf'), 0o600);
  assert.deepEqual(await own.handOn(rcloneCommand), {});
  assert.match(own.type(rcloneBack), /^andromeda-1\.backup$/m);
  own.restore('andromeda-1.backup');
  assert.ok(!own.isReadable());
});
