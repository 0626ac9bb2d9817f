import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import ssh2 from 'ssh2';
import { parseSshPublicKey } from '../../src/domain/access/ssh-key.ts';
import { generateSshKey, loadSshKey } from '../../src/lib/ssh/public-key.ts';
import { temporaryDirectory } from '../support/directory.ts';

test('a key is made once, in a file only its owner reads, and OpenSSH reads it', () => {
  using directory = temporaryDirectory();
  const file = join(directory.path, 'keys/host');
  const made = loadSshKey(file);
  assert.deepEqual(loadSshKey(file), made);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.equal(statSync(join(directory.path, 'keys')).mode & 0o777, 0o700);
  const [type, encoded] = execFileSync('ssh-keygen', ['-y', '-f', file], { encoding: 'utf8' }).split(/\s/);
  assert.equal(`${type} ${encoded}`, made.publicKey);
  assert.equal(parseSshPublicKey(readFileSync(`${file}.pub`, 'utf8')).fingerprint, made.fingerprint);
});

test('every key made is one that ssh2 takes, also those that begin with a zero byte', () => {
  let zeros = 0;
  for (let count = 0; count < 2_000 || zeros === 0; count++) {
    const { privateKey, publicKey } = generateSshKey();
    if (publicKey.startsWith('ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA')) zeros += 1;
    const parsed = ssh2.utils.parseKey(privateKey);
    assert.ok(!(parsed instanceof Error), privateKey);
    assert.equal(`ssh-ed25519 ${parsed.getPublicSSH().toString('base64')}`, publicKey);
  }
});

test('a file that was cut off is not made anew over what is there', () => {
  using directory = temporaryDirectory();
  const file = join(directory.path, 'host');
  writeFileSync(`${file}.new`, 'half');
  const made = loadSshKey(file);
  assert.match(made.publicKey, /^ssh-ed25519 /);
});

test('a file that holds no usable key is named, with what to do, and nothing of it is quoted', () => {
  using directory = temporaryDirectory();
  const file = join(directory.path, 'gateway_host_ed25519');
  const { privateKey } = generateSshKey();
  const locked = join(directory.path, 'locked');
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', 'secret', '-f', locked]);
  const rsa = join(directory.path, 'rsa');
  execFileSync('ssh-keygen', ['-q', '-t', 'rsa', '-N', '', '-f', rsa]);
  const lines = privateKey.split('\n');
  const broken = [
    '',
    'rubbish',
    privateKey.slice(0, 120),
    [...lines.slice(0, 2), ...lines.slice(-2)].join('\n'),
    readFileSync(locked, 'utf8'),
    readFileSync(rsa, 'utf8'),
  ];
  for (const text of broken) {
    writeFileSync(file, text);
    assert.throws(() => loadSshKey(file), {
      code: 'invalid_state',
      message: `The key in ${file} cannot be used: it holds no Ed25519 private key in OpenSSH’s format that is without a passphrase. Restore it from a backup, or move it away to have a new one, which nobody knows yet.`,
    });
  }
});

test('the public part is that of the private key, whatever lies next to it', () => {
  using directory = temporaryDirectory();
  const file = join(directory.path, 'host');
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', file]);
  const [type, encoded] = readFileSync(`${file}.pub`, 'utf8').split(' ');
  writeFileSync(`${file}.pub`, `${generateSshKey().publicKey} another\n`);
  assert.equal(loadSshKey(file).publicKey, `${type} ${encoded}`);
});
