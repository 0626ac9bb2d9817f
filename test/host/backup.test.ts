/** `andromeda backup` and `restore` while a service runs, and scheduled backups of a configuration. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import pty from '@lydell/node-pty';
import Database from 'better-sqlite3';
import manifest from '../../package.json' with { type: 'json' };
import { noteBackupFailure } from '../../src/store/data-dir/last-backup.ts';
import { installation } from '../backup/installation.ts';
import { startTestApp } from '../support/app.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { fails } from '../support/heard.ts';
import { limit } from '../support/limit.ts';
import { program, runProgram } from '../support/program.ts';
import { loadAuditKey } from '../support/service-keys.ts';
import { writeSettings } from '../support/service-process.ts';
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
  const nobody = { uid: 65534, gid: 65534, encoding: 'utf8', timeout: limit(60_000) } as const;
  if (spawnSync('test', ['-x', program], nobody).status !== 0)
    return t.skip('the checkout is out of reach of other users');
  const { status, stderr } = spawnSync(program, ['restore', file, '--data', data], {
    ...nobody,
    cwd: place.path,
  });
  assert.deepEqual([status, stderr], [1, `andromeda: ${file} cannot be read: this account may not.\n`]);
});

testAsRoot('root backs up and restores as the account of the data, and no other account does', async (t) => {
  await using opened = await openTestStore();
  const { dataDir } = opened;
  await opened.close();
  using place = temporaryDirectory();
  for (const name of ['.', ...readdirSync(dataDir)]) chownSync(join(dataDir, name), 65534, 65534);
  chmodSync(place.path, 0o777);
  const file = join(place.path, 'file');
  for (const command of ['backup', 'restore']) {
    const [status, , err] = apart(place.path, command, file, '--data', dataDir);
    assert.equal(status, 0, String(err));
  }
  const owners = [file, join(dataDir, 'andromeda.db')].map((path) => statSync(path).uid);
  assert.deepEqual(owners, [65534, 65534]);
  const other = { uid: 1000, gid: 1000, encoding: 'utf8', timeout: limit(60_000) } as const;
  if (spawnSync('test', ['-x', program], other).status !== 0)
    return t.skip('the checkout is out of reach of other users');
  const { stderr } = spawnSync(program, ['backup', file, '--data', dataDir], other);
  assert.match(stderr, /belongs to the user with the ID 65534\. Run this as that user/);
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

/** An installation that does not run. */
async function prepare(t: TestContext) {
  const { path, at, dataDir, ...own } = await installation();
  t.after(() => own[Symbol.dispose]());
  loadAuditKey(dataDir);
  mkdirSync(at('tmp'));
  const { file: config, write } = await writeSettings(path);
  return {
    at,
    dataDir,
    configure: (backup: object) => write({ backup }),
    /** Runs a command about it, which has a directory for what is temporary. */
    async run(...args: string[]) {
      const { TMPDIR = '/tmp' } = process.env;
      process.env['TMPDIR'] = at('tmp');
      const ran = runProgram(...args, '--config', config);
      const {
        status,
        out: stdout,
        err: stderr,
      } = await ran.finally(() => {
        process.env['TMPDIR'] = TMPDIR;
      });
      return { status, stdout, stderr };
    },
  };
}

test('in a directory: kept, listed, tried and restored; what doctor and check say of it', async (t) => {
  const own = await prepare(t);
  const place = own.at('backups');
  own.configure({ to: place });
  const missing = await own.run('check', '--quiet');
  assert.match(
    missing.stdout,
    /^warn +backup +\S+andromeda\.yaml:\d+: backup\.to: .*\/backups is not there\. Make the directory/m,
  );
  // The service starts all the same, and tries again.
  assert.equal(missing.status, 0);
  own.configure({ to: '/proc' });
  assert.match((await own.run('check', '--quiet')).stdout, /^warn +backup .*backup\.to: \/proc cannot be/m);
  own.configure({ to: place });
  assert.match(
    (await own.run('doctor', '--quiet')).stdout,
    /^wrong +backup +This service has made none in .*\/backups yet\. What is there cannot be listed: .* does not exist\./m,
  );

  mkdirSync(place, { mode: 0o700 });
  assert.deepEqual(
    await own.run('backup', '--list').then(({ status, stdout, stderr }) => [status, stdout, stderr]),
    [0, '', 'There is none yet.\n'],
  );
  for (const [mode, who] of [
    [0o777, 'everybody'],
    [0o770, 'its group'],
  ] as const) {
    chmodSync(place, mode);
    const open = await own.run('check', '--quiet');
    assert.match(
      open.stdout,
      new RegExp(
        `^warn +backup +\\S+andromeda\\.yaml:\\d+: backup\\.to: .*/backups can be written by ${who}`,
        'm',
      ),
    );
  }
  chmodSync(place, 0o700);
  const made = await own.run('backup');
  assert.equal(made.status, 0, made.stderr);
  assert.match(
    made.stdout,
    /\.backup: [\d.]+ [KM]iB, read back and checked; as secret as the installation itself\.\n$/,
  );
  const [file = ''] = made.stdout.split(':');
  const listed = await own.run('backup', '--list');
  assert.match(listed.stdout, /^\d{4}-\d\d-\d\dT\S+Z +[\d.]+ [KM]iB {2}\S+\.backup\n$/);
  const [kept] = JSON.parse((await own.run('backup', '--list', '--json')).stdout).backups;
  assert.deepEqual([kept.file, kept.bytes], [file, statSync(file).size]);

  // One that was killed has left this.
  mkdirSync(own.at('tmp/andromeda-drill-99999999-x/data'), { recursive: true });
  const drilled = await own.run('restore', '--drill');
  assert.equal(drilled.status, 0, drilled.stdout + drilled.stderr);
  assert.match(drilled.stdout, /^ok +backup +\S+\.backup, [\d.]+ [KM]iB, is of \S+Z, by Andromeda /m);
  assert.match(drilled.stdout, /^ok +database +.*every page, index and reference is as it should be\.$/m);
  assert.match(drilled.stdout, /^ok +audit trail +/m);
  assert.match(
    drilled.stdout,
    /^ok +manifest +All \d+ parts of it are as they were made, signed by the key of this installation\.$/m,
  );
  assert.match(drilled.stdout, /^ok +scratch +\S+ is removed again\.$/m);
  assert.deepEqual(readdirSync(own.at('tmp')), []);

  const doctor = await own.run('doctor', '--quiet');
  assert.match(doctor.stdout, /^warn +backup +.* are on one disk: when that is lost, both are\./m);
  assert.equal(doctor.status, 0, doctor.stdout);
  noteBackupFailure(own.dataDir, {
    at: '2030-01-01T00:00:00.000Z',
    failures: 3,
    message: 'The disk is full.',
  });
  assert.match(
    (await own.run('doctor', '--quiet')).stdout,
    /^wrong +backup +No backup could be made, 3 times in a row: The disk is full\. /m,
  );

  rmSync(own.dataDir, { recursive: true });
  const restored = await own.run('restore', 'newest');
  assert.equal(restored.status, 0, restored.stderr);
  assert.match(restored.stdout, /data is as it was at /);
  assert.match(
    restored.stdout,
    /^All \d+ parts of the backup are as they were made, signed by ed25519:\S+\. Is that the key that you noted/m,
  );
  assert.equal(restored.stderr, `This is ${file}.\n`);
  assert.ok(existsSync(join(own.dataDir, 'andromeda.db')));
  rmSync(file);
  await own.run('backup');
  const [last = ''] = readdirSync(place);
  rmSync(join(place, last));
  assert.match((await own.run('doctor', '--quiet')).stdout, /^wrong +backup +.*It is not there any more\./m);
});

test('backup.after: run by `andromeda backup` as well, whose status says how that ended', async (t) => {
  const own = await prepare(t);
  mkdirSync(own.at('backups'));
  own.configure({ to: own.at('backups'), after: `cp "$1" ${own.at('elsewhere')}` });
  const made = await own.run('backup');
  assert.equal(made.status, 0, made.stderr);
  assert.match(made.stdout, /read back and checked; .*\nbackup\.after has run for it\.\n$/);
  assert.ok(existsSync(own.at('elsewhere')));
  own.configure({ to: own.at('backups'), after: 'echo "far: no route" >&2; exit 4' });
  const failed = await own.run('backup');
  fails(failed, 1, /^andromeda: backup\.after failed for \S+: it ended with status 4: far: no route\n$/);
  assert.match(
    (await own.run('doctor', '--quiet')).stdout,
    /^wrong +backup +The command after a backup failed, once in a row: backup\.after failed for \S+: .*: far: no route/m,
  );
});
