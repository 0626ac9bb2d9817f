/** The signature of a release: OpenSSH checks it, for this purpose, by this key and for these bytes alone. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { partsAskedFor, serversFor } from '../../scripts/packages/parts.ts';
import { billOfServer } from '../../scripts/packages/sbom.ts';
import { namespace, signFile } from '../../scripts/packages/sign.ts';
import { temporaryDirectory } from '../support/directory.ts';

const root = join(import.meta.dirname, '../..');

test('ssh-keygen takes the signature of the list, and of no other', () => {
  using directory = temporaryDirectory();
  const at = (name: string) => join(directory.path, name);
  for (const key of ['key', 'other'])
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', at(key)]);
  const list = '00  file\n';
  writeFileSync(at('SHA256SUMS'), list);
  const signature = signFile(at('SHA256SUMS'), at('key'));
  const first = readFileSync(signature);
  assert.ok(readFileSync(signFile(at('SHA256SUMS'), at('key'))).equals(first), 'the same bytes again');
  const accepts = (text: string, key: string, purpose = namespace) => {
    writeFileSync(at('signers'), `releases@example.org ${readFileSync(at(`${key}.pub`), 'utf8')}`);
    const args = ['-Y', 'verify', '-f', at('signers'), '-I', 'releases@example.org', '-n', purpose];
    return spawnSync('ssh-keygen', [...args, '-s', signature], { input: text }).status === 0;
  };
  assert.ok(accepts(list, 'key'));
  assert.ok(!accepts(`${list} `, 'key'));
  assert.ok(!accepts(list, 'other'));
  assert.ok(!accepts(list, 'key', 'file'));
});

test('a release consists of the parts that were asked for, and of the servers that they are made of', () => {
  assert.deepEqual(partsAskedFor('deb,clients'), ['clients', 'deb']);
  assert.deepEqual(serversFor(['clients']), []);
  assert.deepEqual(serversFor(['deb']), [process.arch === 'arm64' ? 'linux-arm64' : 'linux-x64']);
  assert.deepEqual(serversFor(['linux-arm64', 'image']), ['linux-arm64']);
  assert.throws(() => partsAskedFor('rpm'), /There is no part rpm; there are linux-x64, /);
});

test('what a server is made of is named with the addon of its own platform', () => {
  const names = (platform: string, debs: string[] = []) => {
    const { components } = JSON.parse(billOfServer(root, platform, debs));
    return components.map(({ name }: { name: string }) => name) as string[];
  };
  const arm64 = names('linux-arm64', ['libc6 2.36-9']);
  assert.ok(arm64.includes('@napi-rs/keyring-linux-arm64-gnu') && arm64.includes('better-sqlite3'));
  assert.ok(!arm64.includes('@napi-rs/keyring-linux-x64-gnu') && !arm64.includes('esbuild'));
  assert.deepEqual(arm64.slice(-2), ['node', 'libc6']);
  assert.ok(names('linux-x64').includes('@napi-rs/keyring-linux-x64-gnu'));
});
