/** Signatures of security keys, as OpenSSH makes and checks them (its PROTOCOL.u2f). */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import ssh2 from 'ssh2';
import { parseSshPublicKey } from '../../src/domain/access/ssh-key.ts';
import { checkSignature, generateSshKey, loadSshKey, readUserKey } from '../../src/lib/ssh/public-key.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { newSecurityKey, type Said } from '../support/security-keys.ts';
import { lengthPrefixed, newPublicKey } from '../support/ssh-keys.ts';

const type = 'sk-ssh-ed25519@openssh.com';

function userKey(publicKey: string) {
  const [name = '', encoded = ''] = publicKey.split(' ');
  const key = readUserKey(name, Buffer.from(encoded, 'base64'));
  assert.ok(key, publicKey);
  return key;
}

/** What `ssh-keygen -Y sign -n test` signs (PROTOCOL.sshsig). */
function sshsigData(message: string): Buffer {
  const hash = createHash('sha512').update(message).digest();
  return Buffer.concat([
    Buffer.from('SSHSIG'),
    ...['test', '', 'sha512', hash].map((part) => lengthPrefixed(part)),
  ]);
}

/** Made by `ssh-keygen -Y sign` of OpenSSH 9.2 and test/support/security-key/provider.c, over "hello". */
const vector = {
  publicKey: `${type} AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29tAAAAIEyLq+0I2YKAL/X8sZvVCn3zJ/s5SRCjQAJAWc0kqQU9AAAABHNzaDo=`,
  fingerprint: 'SHA256:OUGLB7bGMUyo0YeGq81CERZK9FcwK6wd+Gjf5ZfsHtA',
  signature: Buffer.from(
    'AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29tAAAAQLYNmGj8fIi3QBVND0GsHRKQzZCiSl7rT8+LTmGi5vcwI8/CCdOFG9OZLv3+vv33xEdZSy5tNGO2ByXRnDUG2QwBAAAABw==',
    'base64',
  ),
};

test('a signature that OpenSSH made of a security key is right', () => {
  const key = userKey(vector.publicKey);
  assert.equal(key.fingerprint, vector.fingerprint);
  assert.equal(key.text, vector.publicKey);
  assert.equal(checkSignature(key, vector.signature, sshsigData('hello')), 'right');
  assert.equal(checkSignature(key, vector.signature, sshsigData('hallo')), 'wrong');
});

test('no byte of a signature that OpenSSH made can be changed, added or taken away: flags and counter neither', () => {
  const key = userKey(vector.publicKey);
  const { signature } = vector;
  for (let at = 0; at < signature.length; at += 1) {
    const changed = Buffer.from(signature);
    changed[at] = (changed[at] ?? 0) ^ 0x04;
    assert.equal(checkSignature(key, changed, sshsigData('hello')), 'wrong', `byte ${at}`);
    assert.equal(
      checkSignature(key, signature.subarray(0, at), sshsigData('hello')),
      'wrong',
      `cut at ${at}`,
    );
  }
  const longer = Buffer.concat([signature, Buffer.from([0])]);
  assert.equal(checkSignature(key, longer, sshsigData('hello')), 'wrong');
});

test("OpenSSH takes what the tests' own security key signs, and so does the gateway", () => {
  using directory = temporaryDirectory();
  const key = newSecurityKey();
  const data = sshsigData('hello');
  const signature = key.sign(data, { counter: 0xfffffffe });
  const parts = [key.blob, 'test', '', 'sha512', signature].map((part) => lengthPrefixed(part));
  const whole = Buffer.concat([Buffer.from('SSHSIG'), Buffer.from([0, 0, 0, 1]), ...parts]);
  const [allowed, signed] = ['allowed', 'signed'].map((name) => join(directory.path, name)) as [
    string,
    string,
  ];
  writeFileSync(allowed, `ada ${key.publicKey}\n`);
  const lines = whole.toString('base64').match(/.{1,70}/g) ?? [];
  writeFileSync(
    signed,
    ['-----BEGIN SSH SIGNATURE-----', ...lines, '-----END SSH SIGNATURE-----', ''].join('\n'),
  );
  const args = ['-Y', 'verify', '-f', allowed, '-I', 'ada', '-n', 'test', '-s', signed];
  const verified = spawnSync('ssh-keygen', args, { input: 'hello', encoding: 'utf8' });
  assert.equal(verified.status, 0, verified.stderr + verified.stdout);
  assert.equal(checkSignature(userKey(key.publicKey), signature, data), 'right');
});

const key = newSecurityKey('ssh:lab');
const data = randomBytes(200);
const cases: [string, Said, 'right' | 'wrong' | 'untouched'][] = [
  ['touched', {}, 'right'],
  ['touched, with a PIN too', { flags: 0x05 }, 'right'],
  ['with any counter', { counter: 0 }, 'right'],
  ['without a touch', { flags: 0 }, 'untouched'],
  ['with a PIN and without a touch', { flags: 0x04 }, 'untouched'],
  ['for another application', { application: 'ssh:' }, 'wrong'],
  ['for a web site', { application: 'https://lab.example' }, 'wrong'],
  ['called that of a plain key', { type: 'ssh-ed25519' }, 'wrong'],
  ['called one of a browser', { type: 'webauthn-sk-ecdsa-sha2-nistp256@openssh.com' }, 'wrong'],
  ['called one of a browser and Ed25519', { type: 'webauthn-sk-ssh-ed25519@openssh.com' }, 'wrong'],
];
for (const [what, said, proof] of cases) {
  test(`a signature of a security key ${what} is ${proof}`, () =>
    assert.equal(checkSignature(userKey(key.publicKey), key.sign(data, said), data), proof));
}

test('another key, and a signature as a plain key makes it, prove nothing', () => {
  const signature = key.sign(data);
  assert.equal(checkSignature(userKey(newSecurityKey('ssh:lab').publicKey), signature, data), 'wrong');
  const plain = Buffer.concat([lengthPrefixed('ssh-ed25519'), signature.subarray(4 + type.length, -5)]);
  assert.equal(checkSignature(userKey(key.publicKey), plain, data), 'wrong');
  assert.equal(checkSignature(userKey(newPublicKey()), signature, data), 'wrong');
});

const { blob } = newSecurityKey();
const none: [string, string, Buffer][] = [
  ['for a web site', type, newSecurityKey('https://lab.example').blob],
  ['for no application', type, newSecurityKey('').blob],
  ['for an application that ends in ssh:', type, newSecurityKey('not-ssh:').blob],
  ['for an application in capitals', type, newSecurityKey('SSH:').blob],
  ['for an application of 256 bytes', type, newSecurityKey(`ssh:${'x'.repeat(252)}`).blob],
  ['that was cut', type, blob.subarray(0, -1)],
  ['without an application', type, blob.subarray(0, -8)],
  ['with something behind it', type, Buffer.concat([blob, Buffer.from([0])])],
  ['called a plain one', 'ssh-ed25519', blob],
  ['called one of a browser', 'webauthn-sk-ssh-ed25519@openssh.com', blob],
  ['with a certificate', 'sk-ssh-ed25519-cert-v01@openssh.com', blob],
  ['of nothing', type, Buffer.alloc(0)],
];
for (const [what, name, bytes] of none) {
  test(`no user key: a security key ${what}`, () => assert.equal(readUserKey(name, bytes), undefined));
}

test('a key with the longest application is one', () => {
  assert.ok(readUserKey(type, newSecurityKey(`ssh:${'x'.repeat(251)}`).blob));
});

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
