/** `andromeda doctor`: an installation that is well, beside a service that runs, and each way in which one is not. */
import assert from 'node:assert/strict';
import {
  chmodSync,
  closeSync,
  copyFileSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import Database from 'better-sqlite3';
import { makeAuditKey } from '../../src/domain/audit/audit.ts';
import { readKeyFiles, writeKeyFiles } from '../../src/store/data-dir/key-files.ts';
import { startTestApp } from '../support/app.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { fails } from '../support/heard.ts';
import { runProgram } from '../support/program.ts';
import { serve, writeSettings } from '../support/service-process.ts';
import { newPublicKey } from '../support/ssh-keys.ts';

/** Its exit status and what it prints. */
async function doctor(config: string, ...args: string[]) {
  const { status, out, err } = await runProgram('doctor', '--config', config, ...args);
  return { status, said: out + err };
}

test('while the service runs all is well, and what is not is said', async () => {
  using place = temporaryDirectory();
  const kept = join(place.path, 'data');
  const config = join(place.path, 'andromeda.yaml');
  {
    await using app = await startTestApp();
    const own = join(app.dataDir, 'andromeda.yaml');
    for (let count = 0; count < 4; count++)
      await app.write('/me/ssh-keys', { as: 'ada', body: { public_key: newPublicKey() } });
    // All is well, but for the backup that there is not.
    const { status, said } = await doctor(own);
    assert.equal(status, 0, said);
    assert.match(said, /^ok +data +.*\/data, mode 0711/m);
    assert.match(said, /^ok +service +It is ready, at 127\.0\.0\.1 port \d+\.$/m);
    assert.match(said, /^ok +settings +/m);
    assert.match(said, /^ok +port +gateway\.listen, .*: held by Andromeda, which runs\.$/m);
    assert.match(said, /^ok +issuer +http:\S+ answers\.$/m);
    assert.match(said, /^ok +cluster +alpha, slurm: its last report is of /m);
    assert.match(said, /^ok +key +.*gateway_host_ed25519: SHA256:/m);
    assert.match(said, /^ok +disk +.*free on the disk/m);
    assert.match(said, /^warn +backup +None is known\./m);
    assert.match(said, /^ok +database +.*every page, index and reference is as it should be\.$/m);
    assert.match(said, /^ok +audit trail +All [1-9]\d* entries fit/m);
    assert.equal((await app.business('/me', { as: 'ada' })).status, 200);
    // A backup is known from then on.
    assert.equal((await runProgram('backup', join(place.path, 'backup'), '--config', own)).status, 0);
    const { said: backed } = await doctor(own);
    assert.match(backed, /^ok +backup +The last one is of \S+Z: .*\/backup, [\d.]+ [KM]iB\.$/m);
    assert.match(
      backed,
      /^ok +manifest +All \d+ parts of .*\/backup are as they were made, signed by the key/m,
    );
    rmSync(join(place.path, 'backup'));
    assert.match((await doctor(own)).said, /^warn +backup +.* It is not there any more: was it moved to/m);
    const settings = readFileSync(own, 'utf8');
    await app.app[Symbol.asyncDispose]();
    await cp(join(app.dataDir, 'data'), kept, { recursive: true });
    chmodSync(kept, 0o711);
    writeFileSync(config, settings);
  }

  const database = join(kept, 'andromeda.db');
  copyFileSync(database, join(place.path, 'good'));
  const restored = () => {
    for (const end of ['-wal', '-shm']) rmSync(`${database}${end}`, { force: true });
    copyFileSync(join(place.path, 'good'), database);
  };
  const quietly = async (sql = '') => {
    restored();
    const open = new Database(database);
    open.pragma('foreign_keys = off');
    for (const { name } of open.prepare("select name from sqlite_schema where type = 'trigger'").all() as {
      name: string;
    }[])
      open.exec(`drop trigger "${name}"`);
    open.exec(sql);
    open.close();
    const { status, said } = await doctor(config, '--quiet');
    // The issuer of what was copied has gone with the service, and so has the backup.
    return {
      status,
      said: said.replaceAll(/^wrong +issuer .*\n|^warn +backup .* It is not there any more.*\n/gm, ''),
    };
  };

  for (const [sql, wanted] of [
    [
      `delete from observations where cluster_id in (select id from clusters where name = 'alpha');
       insert or replace into cluster_sides (cluster_id, side, look_failure)
         select id, 'slurm', 'It is away.' from clusters where name = 'alpha';
       update clusters set state = 'provisioning' where name = 'alpha'`,
      /^wrong +cluster +alpha, slurm: It is away\. /m,
    ],
    [
      "update audit_entries set reason = 'another' where seq = 2",
      /^wrong +audit trail +Entry 2 does not fit: it was changed, or what stood before it\.\n$/,
    ],
    [
      'delete from audit_entries where seq >= (select max(seq) from audit_heads)',
      /^wrong +audit trail +The trail was cut: it ends at entry [1-9]\d*, and entry \d+ was signed\.\n$/,
    ],
    [
      'update audit_heads set seq = seq + 1',
      /^wrong +audit trail +The signature of the head of entry \d+ is wrong\.\n$/,
    ],
    [
      "delete from users where primary_email = 'bob@physics.example'",
      /^wrong +database +\w+: row \d+ refers to nothing in users\.$/m,
    ],
    [
      "insert into kysely_migration values ('9999-later', '2099-01-01')",
      /^wrong +database +\S+ was written by a newer version of Andromeda\. Look with that one\.$/m,
    ],
    [
      "delete from audit_heads; update audit_entries set at = '2999-01-01T00:00:00Z'",
      /^wrong +clock +The last entry of the audit trail is of 2999-01-01T00:00:00Z, which is to come\./m,
    ],
  ] as const) {
    fails(await quietly(sql), 1, wanted);
  }

  // A trail that a former key signed is well, and that of a stolen one is asked about.
  const { key = '' } = readKeyFiles(kept, 'audit') ?? {};
  const signedBefore = (stolen: boolean) => {
    writeKeyFiles(kept, 'audit', { key: makeAuditKey({ text: key, title: 'the key', stolen }) });
    return quietly();
  };
  assert.equal((await signedBefore(false)).said, '');
  assert.match(
    (await signedBefore(true)).said,
    /^warn +audit trail +All \d+ entries fit, .* no key of this installation: ed25519:\S+\. .*\n$/,
  );
  writeKeyFiles(kept, 'audit', { key });
  // A file of two keys that cannot be read.
  const both = join(kept, 'keys/host.next');
  writeFileSync(both, '');
  const unread = await quietly();
  rmSync(both);
  assert.equal(unread.status, 1);
  assert.match(
    unread.said,
    /^wrong +key +\S+\/keys\/host\.next holds no key that can be used\. Restore it from a backup\.\n$/,
  );

  // A page that is damaged.
  restored();
  const fd = openSync(database, 'r+');
  const { size } = statSync(database);
  for (let at = 4096 * 5; at < size; at += 4096 * 3) writeSync(fd, Buffer.alloc(64, 0x5a), 0, 64, at);
  closeSync(fd);
  const damaged = await doctor(config, '--quiet');
  assert.equal(damaged.status, 1);
  assert.match(
    damaged.said,
    /^wrong +(database|installation) +.*(is damaged\. Restore a backup|damaged, and a backup has to be restored)/m,
  );
  assert.doesNotMatch(damaged.said, /Something went wrong/);

  // Keys that others can read, and nothing at all.
  restored();
  chmodSync(join(kept, 'keys'), 0o755);
  assert.match(
    (await doctor(config, '--quiet')).said,
    /^wrong +data +.*\/keys can be read by others\. chmod go= /m,
  );
  mkdirSync(join(place.path, 'none'));
  const { file } = await writeSettings(join(place.path, 'none'));
  const fresh = await doctor(file, '--quiet');
  assert.deepEqual([fresh.status, fresh.said.includes('There is none in')], [0, true], fresh.said);
});

test('a service that is stopped in its tracks, or whose data directory is gone, is said to be', async () => {
  using place = temporaryDirectory();
  const { file: config, settings, write } = await writeSettings(place.path);
  write({ gateway: { ...settings.gateway, processes: 0 } });
  await using service = serve(config);
  await service.until('serve.ready');
  assert.equal((await doctor(config, '--quiet')).status, 0);
  service.child.kill('SIGSTOP');
  fails(
    await doctor(config, '--quiet'),
    1,
    /^wrong +service +One holds \S+\/data, and does not answer at 127\.0\.0\.1 port /m,
  );
  service.child.kill('SIGCONT');
  rmSync(join(place.path, 'data'), { recursive: true });
  fails(
    await doctor(config, '--quiet'),
    1,
    /^wrong +service +The one at 127\.0\.0\.1 port \d+ (does not use \S+\/data as it is now|is not ready: .* its files were moved)/m,
  );
  await service.stop('SIGKILL');
});
