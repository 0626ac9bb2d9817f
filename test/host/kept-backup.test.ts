/** Backups where the configuration keeps them, by the commands: made, listed, tried, restored, and what doctor and check say. */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { generateIdentity, identityToRecipient } from 'age-encryption';
import { stringify } from 'yaml';
import { loadAuditKey } from '../../src/service/audit/signer.ts';
import { noteBackupFailure } from '../../src/store/data-dir/last-backup.ts';
import { createAuthority } from '../support/certificate.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { freePorts } from '../support/ports.ts';
import { s3Bucket, s3Key, s3Region, startS3Server } from '../support/s3-server.ts';
import { openTestStore } from '../support/store.ts';

const program = join(import.meta.dirname, '../../scripts/andromeda');

/** An installation that does not run, with keys to encrypt to. */
async function installation(t: TestContext) {
  const directory = temporaryDirectory();
  t.after(() => directory[Symbol.dispose]());
  const at = (name: string) => join(directory.path, name);
  {
    await using opened = await openTestStore();
    await opened.store.close();
    execFileSync('cp', ['-a', opened.dataDir, at('data')]);
    loadAuditKey(at('data/keys/audit_ed25519.pem'));
  }
  const identity = await generateIdentity();
  writeFileSync(at('key'), `${identity}\n`);
  const [platform, business, issuer, gateway] = await freePorts(4);
  const listen = (port: number | undefined) => ({ listen: `127.0.0.1:${port}` });
  const settings = {
    platform: listen(platform),
    business: listen(business),
    gateway: listen(gateway),
    identity: { embedded: listen(issuer) },
  };
  const config = at('andromeda.yaml');
  return {
    at,
    config,
    dataDir: at('data'),
    recipient: await identityToRecipient(identity),
    configure: (backup: object) =>
      writeFileSync(config, stringify({ ...settings, dataDir: './data', backup }), { mode: 0o600 }),
    /** Runs a command about it. The storage is in this process, so that this one must not wait. */
    async run(...args: string[]) {
      mkdirSync(at('tmp'), { recursive: true });
      const env = { ...process.env, TMPDIR: at('tmp') };
      const child = spawn(program, [...args, '--config', config], { env, stdio: ['ignore', 'pipe', 'pipe'] });
      const said = { stdout: '', stderr: '' };
      for (const name of ['stdout', 'stderr'] as const)
        child[name].setEncoding('utf8').on('data', (part) => {
          said[name] += part;
        });
      const status = await new Promise((done) => child.once('close', done));
      return { status, ...said };
    },
  };
}

test('in a directory: kept, listed, tried and restored; what doctor and check say of it', async (t) => {
  const own = await installation(t);
  const place = own.at('backups');
  own.configure({ to: place, encryptTo: own.recipient });
  const missing = await own.run('check', '--quiet');
  assert.match(
    missing.stdout,
    /^wrong +backup +\S+andromeda\.yaml:\d+: backup\.to: .*\/backups is not there\. Make the directory/m,
  );
  assert.equal(missing.status, 1);
  assert.match(
    (await own.run('doctor', '--quiet')).stdout,
    /^wrong +backup +This service has made none in .*\/backups yet\. What is there cannot be asked: .* does not exist\./m,
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
  assert.match(made.stdout, /\.backup\.age: [\d.]+ [KM]iB, read back and checked; encrypted\.\n$/);
  const [file = ''] = made.stdout.split(':');
  const listed = await own.run('backup', '--list');
  assert.match(listed.stdout, /^\d{4}-\d\d-\d\dT\S+Z +[\d.]+ [KM]iB {2}\S+\.backup\.age\n$/);

  // One that was killed has left this.
  mkdirSync(own.at('tmp/andromeda-drill-99999999-x/data'), { recursive: true });
  const drilled = await own.run('restore', '--drill', '--identity', own.at('key'));
  assert.equal(drilled.status, 0, drilled.stdout + drilled.stderr);
  assert.match(drilled.stdout, /^ok +backup +\S+\.backup\.age, [\d.]+ [KM]iB, is of \S+Z, by Andromeda /m);
  assert.match(drilled.stdout, /^ok +database +.*every page, index and reference is as it should be\.$/m);
  assert.match(drilled.stdout, /^ok +audit trail +/m);
  assert.match(
    drilled.stdout,
    /^ok +manifest +All \d+ parts of it are as they were made, signed by the key of this installation\.$/m,
  );
  assert.match(drilled.stdout, /^ok +scratch +\S+ is removed again\.$/m);
  assert.deepEqual(readdirSync(own.at('tmp')), []);
  const without = await own.run('restore', '--drill');
  assert.equal(without.status, 1);
  assert.match(
    without.stdout,
    /^wrong +backup +\S+ is encrypted\. Give the private key: --identity FILE\.$/m,
  );

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
    /^wrong +backup +The last 3 attempts failed, at 2030-01-01T00:00:00\.000Z: The disk is full\.$/m,
  );

  rmSync(own.dataDir, { recursive: true });
  const restored = await own.run('restore', 'newest', '--identity', own.at('key'));
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

test('in S3 over TLS: kept, tried and restored on a machine that knows where it is, and its key is guarded', async (t) => {
  const own = await installation(t);
  const authority = createAuthority();
  await using server = await startS3Server({ tls: authority.issue('server') });
  writeFileSync(own.at('ca.pem'), authority.ca);
  const lines = [
    `aws_access_key_id = ${s3Key.accessKeyId}`,
    `aws_secret_access_key=${s3Key.secretAccessKey}`,
  ];
  writeFileSync(own.at('s3-key'), `[default]\n${lines.join('\n')}\n`, { mode: 0o644 });
  own.configure({
    to: `s3://${s3Bucket}/gpu`,
    encryptTo: [own.recipient],
    s3: { endpoint: server.endpoint, region: s3Region, credentials: './s3-key', ca: 'ca.pem' },
  });
  const open = await own.run('check', '--quiet');
  assert.match(
    open.stdout,
    /^wrong +backup +\S+andromeda\.yaml:\d+: backup\.s3\.credentials: (\S+) can be read by others\. chmod 600 \1$/m,
  );
  assert.equal(open.status, 1);
  chmodSync(own.at('s3-key'), 0o600);

  server.fault = () => 403;
  const unreachable = await own.run('doctor', '--quiet');
  assert.match(
    unreachable.stdout,
    /^wrong +backup +This service has made none in \S+ yet\. What is there cannot be asked: /m,
  );
  server.fault = () => undefined;
  assert.match((await own.run('doctor', '--quiet')).stdout, /^warn +backup +None is in \S+ yet\.$/m);
  const made = await own.run('backup');
  assert.equal(made.status, 0, made.stderr);
  const [file = ''] = /^s3:\/\/backups\/gpu\/\S+\.age/.exec(made.stdout) ?? [];
  assert.ok(server.objects.has(file.slice('s3://backups/'.length)), made.stdout);
  const doctor = await own.run('doctor');
  assert.match(
    doctor.stdout,
    /^ok +backup +The last one is of \S+Z: s3:\/\/backups\/gpu\/\S+, [\d.]+ [KM]iB, of 1 that are there\.$/m,
  );
  const drilled = await own.run('restore', '--drill', '--identity', own.at('key'));
  assert.equal(drilled.status, 0, drilled.stdout + drilled.stderr);
  rmSync(own.dataDir, { recursive: true });
  const restored = await own.run('restore', file, '--identity', own.at('key'));
  assert.equal(restored.status, 0, restored.stderr);
  const other = await own.run('restore', `${file}x`, '--identity', own.at('key'));
  assert.match(other.stderr, /^andromeda: There is no backup s3:\S+x where the configuration keeps them/);
  assert.doesNotMatch(
    made.stdout + made.stderr + doctor.stdout + restored.stderr,
    RegExp(s3Key.secretAccessKey.slice(0, 9)),
  );
});
