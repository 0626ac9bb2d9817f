/** Backups where the configuration keeps them, by the commands: made, listed, tried, restored, and what doctor and check say. */
import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { noteBackupFailure } from '../../src/store/data-dir/last-backup.ts';
import { installation } from '../backup/installation.ts';
import { fails } from '../support/heard.ts';
import { runProgram } from '../support/program.ts';
import { loadAuditKey } from '../support/service-keys.ts';
import { writeSettings } from '../support/service-process.ts';

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
