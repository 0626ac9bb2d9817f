/**
 * The clients of dist/release: the archive is what its list says, those that can be run here run, and those for macOS and Windows
 * are looked at by programs that share nothing with the ones that made them. Part of `npm run release:test`.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { runnerFor } from '../../../scripts/packages/emulators.ts';
import { temporaryDirectory } from '../../support/directory.ts';
import { released } from './released.ts';

interface Listed {
  platform: string;
  name: string;
  bytes: number;
  sha256: string;
  tested: boolean;
  note: string;
}

const directory = temporaryDirectory();
after(() => directory[Symbol.dispose]());
const at = (name: string) => join(directory.path, name);
let list: { format: number; version: string; files: Listed[] };
before(() => {
  execFileSync('tar', ['xzf', released(/-clients-.*\.tar\.gz$/)], { cwd: directory.path });
  list = JSON.parse(readFileSync(at('clients.json'), 'utf8'));
});
const named = (platform: string) => list.files.find((file) => file.platform === platform)?.name ?? '';

test('the list names five platforms, with the size and the sum of each file', () => {
  assert.equal(list.format, 1);
  assert.deepEqual(
    list.files.map(({ platform }) => platform),
    ['linux-x64', 'linux-arm64', 'win32-x64', 'darwin-arm64', 'darwin-x64'],
  );
  for (const { name, bytes, sha256, note } of list.files) {
    const content = readFileSync(at(name));
    assert.equal(content.length, bytes);
    assert.equal(createHash('sha256').update(content).digest('hex'), sha256);
    assert.ok(note.length <= 300);
  }
});

test('what can be run here runs, is said to be tested, and nothing else is', () => {
  for (const { platform, name, tested } of list.files) {
    const runner = runnerFor(platform);
    assert.equal(tested, runner !== undefined, platform);
    if (!runner) continue;
    const [command = '', ...args] = [...runner, at(name)];
    const run = (...more: string[]) =>
      spawnSync(command, [...args, ...more], { encoding: 'utf8', env: { HOME: directory.path } });
    assert.match(run('version').stdout, new RegExp(`^andromeda ${list.version}\n`));
    assert.match(run('version', '--licences').stdout, /^Node\.js, which runs the program$/m);
    const signedOut = run('call', 'business', 'GET', '/me');
    assert.equal(signedOut.status, 1);
    assert.match(signedOut.stderr, /auth login/);
  }
});

test('an independent reader finds every page for macOS signed', () => {
  for (const platform of ['darwin-arm64', 'darwin-x64']) {
    const script = join(import.meta.dirname, '../verify-mach-o.py');
    const output = execFileSync('python3', [script, at(named(platform))], { encoding: 'utf8' });
    assert.match(output, /^andromeda: \d{5} pages of 4096 bytes, all as signed\n$/);
  }
});

test('the executable for Windows carries no signature, and the checksum of its content', () => {
  const { stdout, stderr } = spawnSync('osslsigncode', ['verify', '-in', at(named('win32-x64'))], {
    encoding: 'utf8',
  });
  const output = stdout + stderr;
  assert.match(output, /No signature found/);
  assert.match(output, /^PE checksum +: [0-9A-F]{8}$/m);
  assert.doesNotMatch(output, /MISMATCH/i);
});
