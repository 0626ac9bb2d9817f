/** `andromeda backup` and `restore`: what they say, beside a service that runs. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import pty from '@lydell/node-pty';
import Database from 'better-sqlite3';
import manifest from '../../package.json' with { type: 'json' };
import { startTestApp } from '../support/app.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { program, runProgram } from '../support/program.ts';
import { openTestStore } from '../support/store.ts';
import { testAsRoot } from '../support/unless.ts';

/** What it said, without times and sizes. */
function plain(text: string): string {
  return text
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
    .replace(/before-restore-\w+/g, 'before-restore-TIME')
    .replace(/[\d.]+ [KM]iB/g, 'SIZE')
    .replace(/All \d+ parts/g, 'All N parts')
    .replace(/ed25519:[\w+/=]+/g, 'ed25519:KEY');
}

/** Runs it in `cwd`. */
async function andromeda(cwd: string, ...args: string[]) {
  const before = process.cwd();
  process.chdir(cwd);
  const { status, out, err } = await runProgram(...args).finally(() => process.chdir(before));
  return [status, plain(out), plain(err)];
}

/** In another process than the service: one that closes a file loses all locks that it has on it. */
function apart(cwd: string, ...args: string[]) {
  const { status, stdout, stderr } = spawnSync(program, args, { cwd, encoding: 'utf8' });
  return [status, plain(stdout), plain(stderr)];
}

test('backup while the service runs, restore refused; once it is stopped, restore', async () => {
  using place = temporaryDirectory();
  const file = join(place.path, 'backup');
  let data = '';
  let config = '';
  {
    await using app = await startTestApp();
    data = join(app.dataDir, 'data');
    config = join(app.dataDir, 'andromeda.yaml');
    // Named by nobody, the configuration is the one that is here.
    assert.deepEqual(apart(app.dataDir, 'backup', file), [
      0,
      `${file}: SIZE, checked. It holds ${data} and the files that the configuration and the clusters
name, keys included: keep it as secret.
`,
      '',
    ]);
    assert.deepEqual(apart(place.path, 'restore', file, '--config', config), [
      1,
      '',
      `andromeda: Andromeda serves from ${data}. Stop it first; nothing was changed.\n`,
    ]);
    const me = await app.business('/me', { as: 'ada' });
    assert.equal(me.status, 200);
  }
  const other = join(place.path, 'data');
  // The machine that it was on is gone.
  const first = await andromeda(place.path, 'restore', file, '--data', other);
  const next = `
These belong elsewhere, and are not there as they were. Put them there, or remove them:

  ${other}/from-elsewhere${config}

Next:

  1. Start the service. It brings the clusters to what the backup says within seconds.
  2. What changed after that time is not in it: revoke again the keys, and remove again the people, that must not get in.
`;
  const was = `${other} is as it was at TIME, under Andromeda ${manifest.version}.\n`;
  const whole = (by: string) => `All N parts of the backup are as they were made, signed by ${by}\n`;
  const noted = 'ed25519:KEY. Is that the key that you noted (admin audit key)?';
  assert.deepEqual(first, [0, was + whole(noted) + next, '']);
  const kept = `What was there before is in ${other}/before-restore-TIME; remove it when all is well.\n`;
  assert.deepEqual(await andromeda(place.path, 'restore', 'backup', '--data', 'data'), [
    0,
    was + whole('the key of this installation.') + kept + next,
    '',
  ]);
  const changed = new Database(file);
  // A trigger keeps the name that she had.
  changed.exec("update users set display_name = 'Eve'");
  changed.close();
  const [status, said] = await andromeda(place.path, 'restore', '--drill', file, '--data', other);
  assert.equal(status, 1);
  assert.ok(
    String(said).includes(
      `${file} was changed after it was made (table former_names, table users); take another backup.`,
    ),
    String(said),
  );
});

test('what cannot be backed up or restored is one sentence on stderr', async () => {
  using place = temporaryDirectory();
  const cwd = place.path;
  const said = (...args: string[]) => andromeda(cwd, ...args);
  if (!existsSync('/etc/andromeda/andromeda.yaml')) {
    const sentence =
      'andromeda: Neither andromeda.yaml nor /etc/andromeda/andromeda.yaml exists; say which installation it is with --config FILE, or --data DIR.\n';
    assert.deepEqual(await said('backup', 'file'), [1, '', sentence]);
    assert.deepEqual(await said('restore', 'file'), [1, '', sentence]);
  }
  const nothing = `andromeda: There is no database in ${cwd}/none; nothing to back up.\n`;
  assert.deepEqual(await said('backup', 'file', '--data', 'none'), [1, '', nothing]);
  const noFile = `andromeda: There is no file ${cwd}/file.\n`;
  assert.deepEqual(await said('restore', 'file', '--data', 'none'), [1, '', noFile]);
  assert.ok(!existsSync(join(cwd, 'none')));
  writeFileSync(join(cwd, 'text'), 'no backup');
  const noBackup = `andromeda: ${cwd}/text is not a backup of Andromeda.\n`;
  assert.deepEqual(await said('restore', 'text', '--data', 'data'), [1, '', noBackup]);
  writeFileSync(join(cwd, 'wrong.yaml'), 'dataDirectory: x\n');
  const [status, , stderr] = await said('backup', 'file', '--config', 'wrong.yaml');
  assert.equal(status, 1);
  assert.match(String(stderr), /^andromeda: wrong\.yaml:1: dataDirectory is not a setting; /);
});

test('a backup does not go into the data directory that it is of, by whatever name', async () => {
  using place = temporaryDirectory();
  mkdirSync(join(place.path, 'data', 'keys'), { recursive: true });
  symlinkSync('data', join(place.path, 'link'));
  for (const file of ['data/copy', 'link/keys/copy']) {
    const [status, , stderr] = await andromeda(place.path, 'backup', file, '--data', 'data');
    assert.equal(status, 1);
    assert.match(
      String(stderr),
      / is in the data directory, and would be lost with it\. Name a file elsewhere/,
    );
  }
});

test('what is no file is not restored, whatever else it is, and the data directory is not blamed for it', async () => {
  using place = temporaryDirectory();
  const cwd = place.path;
  const pipe = join(cwd, 'pipe');
  assert.equal(spawnSync('mkfifo', [pipe]).status, 0);
  for (const path of [cwd, pipe, '/dev/null']) {
    const sentence = `andromeda: ${path} is not a backup of Andromeda.\n`;
    assert.deepEqual(await andromeda(cwd, 'restore', path, '--data', 'data'), [1, '', sentence]);
  }
  assert.ok(!existsSync(join(cwd, 'data')));
});

testAsRoot('a backup that is not this user’s to read is named, not the data directory', (t) => {
  using place = temporaryDirectory();
  chmodSync(place.path, 0o755);
  const file = join(place.path, 'backup');
  writeFileSync(file, '', { mode: 0o600 });
  const data = join(place.path, 'data');
  mkdirSync(data);
  chownSync(data, 65534, 65534);
  const nobody = { uid: 65534, gid: 65534, encoding: 'utf8', timeout: 60_000 } as const;
  if (spawnSync('test', ['-x', program], nobody).status !== 0)
    return t.skip('the checkout is out of reach of other users');
  const { status, stderr } = spawnSync(program, ['restore', file, '--data', data], {
    ...nobody,
    cwd: place.path,
  });
  assert.deepEqual([status, stderr], [1, `andromeda: ${file} cannot be read: EACCES.\n`]);
});

testAsRoot('the data directory of another account is theirs to back up', async () => {
  await using opened = await openTestStore();
  using place = temporaryDirectory();
  chownSync(opened.dataDir, 1000, 1000);
  const sentence = `andromeda: ${opened.dataDir} belongs to the user with the ID 1000. Run this as that user, the one that the service runs as.\n`;
  for (const command of ['backup', 'restore'])
    assert.deepEqual(await andromeda(place.path, command, 'file', '--data', opened.dataDir), [
      1,
      '',
      sentence,
    ]);
});

test('Ctrl-C in a backup ends it, and leaves the older one as it was', async () => {
  await using opened = await openTestStore();
  using place = temporaryDirectory();
  const file = join(place.path, 'backup');
  const { default: Database } = await import('better-sqlite3');
  assert.equal((await andromeda(place.path, 'backup', file, '--data', opened.dataDir))[0], 0);
  const before = readFileSync(file);
  const database = new Database(join(opened.dataDir, 'andromeda.db'));
  database.exec('create table padding (content blob)');
  for (let i = 0; i < 400; i++) database.exec('insert into padding values (zeroblob(1048576))');
  database.close();
  const child = pty.spawn(program, ['backup', file, '--data', opened.dataDir], { cols: 80 });
  let screen = '';
  let interrupted = false;
  child.onData((text) => {
    screen += text;
    if (interrupted || !/\d %/.test(screen)) return;
    interrupted = true;
    child.write('\u0003');
  });
  const status = await new Promise((resolve) => child.onExit(({ exitCode }) => resolve(exitCode)));
  assert.equal(status, 130, screen);
  assert.match(screen, /Cancelled; no backup was made\.\r\n$/);
  assert.ok(readFileSync(file).equals(before));
  assert.deepEqual(spawnSync('ls', [place.path], { encoding: 'utf8' }).stdout, 'backup\n');
});
