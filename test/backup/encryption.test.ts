/** Backups are encrypted as age does it: its own program decrypts what we encrypt, and we what it encrypts. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { createReadStream, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { decrypt, encrypt, requireRecipients } from '../../src/service/backup/encryption.ts';
import { readIdentities } from '../../src/service/backup/key-files.ts';
import { temporaryDirectory } from '../support/directory.ts';

const skip = spawnSync('age', ['--version']).error && 'age is not installed (apt-get install age)';
// More than one of the chunks that age encrypts, and no round number of them.
const plain = Buffer.alloc(200_001, 'a backup ');

/** A key pair: the file of the private key, and the public one. */
function makeKey(directory: string, name = 'age.txt'): { file: string; recipient: string } {
  const file = join(directory, name);
  execFileSync('age-keygen', ['-o', file], { stdio: 'pipe' });
  return { file, recipient: execFileSync('age-keygen', ['-y', file], { encoding: 'utf8' }).trim() };
}

async function* chunks(bytes: Buffer): AsyncIterable<Uint8Array> {
  for (let at = 0; at < bytes.length; at += 7_777) yield bytes.subarray(at, at + 7_777);
}

async function gather(parts: AsyncIterable<Uint8Array>): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(parts));
}

test('what is encrypted to a key of age, the program age decrypts, and the other way round', {
  skip,
}, async () => {
  using place = temporaryDirectory();
  const [one, other] = [makeKey(place.path), makeKey(place.path, 'other.txt')];
  const sealed = join(place.path, 'sealed.age');
  await writeFile(sealed, encrypt(chunks(plain), [one.recipient, other.recipient]));
  for (const { file, recipient } of [one, other]) {
    assert.ok(execFileSync('age', ['-d', '-i', file, sealed]).equals(plain), 'age reads ours');
    const theirs = execFileSync('age', ['-r', recipient], { input: plain });
    assert.ok((await gather(decrypt(chunks(theirs), readIdentities(file), 'it'))).equals(plain));
    const ours = decrypt(createReadStream(sealed), readIdentities(file), 'it');
    assert.ok((await gather(ours)).equals(plain));
  }
});

test('a key that does not fit and a file that was changed or cut have different messages', {
  skip,
}, async () => {
  using place = temporaryDirectory();
  const [one, other] = [makeKey(place.path), makeKey(place.path, 'other.txt')];
  const sealed = await gather(encrypt(chunks(plain), [one.recipient]));
  const attempt = (bytes: Buffer, file: string) =>
    gather(decrypt(chunks(bytes), readIdentities(file), 'The backup'));
  await assert.rejects(attempt(sealed, other.file), {
    code: 'invalid_request',
    message: /^The backup is encrypted to other keys than that one; /,
  });
  const changed = Buffer.from(sealed);
  changed[100_000] = ~(changed[100_000] ?? 0);
  const damaged = { message: /^The backup is damaged: it cannot be decrypted to its end\./ };
  for (const bytes of [changed, sealed.subarray(0, -1), sealed.subarray(0, 70_000), sealed.subarray(0, 30)])
    await assert.rejects(attempt(bytes, one.file), damaged);
});

test('what is no key is refused in words', async () => {
  using place = temporaryDirectory();
  const file = (name: string, text: string) => {
    writeFileSync(join(place.path, name), text);
    return join(place.path, name);
  };
  const cut = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ';
  for (const one of [cut, 'age1qqqq', 'ecdsa-sha2-nistp256 AAAA', 'Ada'])
    await assert.rejects(requireRecipients([one]), {
      message: /^backup\.encryptTo: .* is no public key of age/,
    });
  assert.throws(() => readIdentities(file('empty', '')), /holds no key of age/);
  assert.throws(() => readIdentities(join(place.path, 'none')), /cannot be read: there is no such file\./);
  assert.throws(
    () => readIdentities(file('sealed', 'age-encryption.org/v1\n-> scrypt')),
    /is itself encrypted/,
  );
  const ssh = file('ssh', '-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n');
  assert.throws(
    () => readIdentities(ssh),
    /encrypted to an SSH key, age's own program decrypts: age --decrypt /,
  );
});
