/** Release files: one that is sound takes the place of what was offered; anything else changes nothing. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { openSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { gunzipSync, gzipSync } from 'node:zlib';
import { packTar, type TarEntry } from '../../scripts/build/client/tar.ts';
import { addRelease } from '../../src/clients/release-file.ts';
import { readRelease } from '../../src/clients/store.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { entry, type Given, manifestOf, writeRelease } from './release.ts';

const program = join(import.meta.dirname, '../../scripts/andromeda');
const linux: Given = {
  platform: 'linux-x64',
  name: 'andromeda-linux-x64',
  content: Buffer.alloc(70_000, 'l'),
};
const windows: Given = { platform: 'win32-x64', name: 'andromeda.exe', content: Buffer.alloc(513, 'w') };

test('the command adds a release, lists it, and replaces it by the next', () => {
  using data = temporaryDirectory();
  using directory = temporaryDirectory();
  const run = (...args: string[]) =>
    spawnSync(program, ['clients', ...args, '--data', data.path], { encoding: 'utf8' });
  assert.match(run('list').stdout, /^The portable client alone is offered/);
  const strange = run('add', writeRelease(directory.path, '1.2.2', [linux]));
  assert.deepEqual([strange.status, strange.stdout], [1, '']);
  assert.match(strange.stderr, /cannot be used: no installation has its data there/);
  assert.deepEqual(readdirSync(data.path), [], 'nothing is made there');
  writeFileSync(join(data.path, 'andromeda.db'), '');
  assert.match(run('add', directory.path).stderr, /it is a directory; name a release file\.\n$/);
  const below = join(directory.path, 'andromeda-clients-1.2.2.tar.gz', 'x');
  assert.match(run('add', below).stderr, /a part of its path is no directory\.\n$/);
  const added = run('add', writeRelease(directory.path, '1.2.3', [linux, windows]));
  assert.deepEqual([added.status, added.stderr], [0, '']);
  assert.match(
    added.stdout,
    /^The clients of 1\.2\.3 are offered now.*\n {2}linux-x64 +andromeda-linux-x64\n/,
  );
  assert.match(run('list').stdout, /\n[0-9a-f]{64} +0\.0 MiB {2}andromeda\.exe\n/);
  assert.equal(run('add', writeRelease(directory.path, '1.2.4', [linux])).status, 0);
  const release = readRelease(data.path);
  assert.deepEqual(
    [release?.version, release?.files.map(({ name }) => name)],
    ['1.2.4', ['andromeda-linux-x64']],
  );
  assert.ok(readFileSync(join(release?.directory ?? '', linux.name)).equals(linux.content));
  assert.equal(readdirSync(join(data.path, 'clients')).length, 2, 'the folder, and what names it');
  const missing = run('add', join(directory.path, 'nothing.tar.gz'));
  assert.deepEqual([missing.status, missing.stdout], [1, '']);
});

test("what tar itself makes is read as well, in one entry's order", async () => {
  using data = temporaryDirectory();
  using directory = temporaryDirectory();
  writeFileSync(join(directory.path, 'clients.json'), manifestOf('1.0.0', [linux]));
  writeFileSync(join(directory.path, linux.name), linux.content);
  const file = join(directory.path, 'release.tar.gz');
  const names = ['clients.json', linux.name];
  execFileSync('tar', ['--format=ustar', '-czf', file, ...names], { cwd: directory.path });
  assert.equal((await addRelease(data.path, openSync(file, 'r'))).version, '1.0.0');
});

/** A tar in gzip, its bytes changed before it is packed. */
function changed(entries: readonly TarEntry[], change: (tar: Buffer) => Buffer): Buffer {
  return gzipSync(change(gunzipSync(packTar(entries))));
}

/** Gives the header at `at` its right sum again. */
function summed(tar: Buffer, at: number): Buffer {
  const block = tar.subarray(at, at + 512).fill(' ', 148, 156);
  block.write(
    `${block
      .reduce((sum, byte) => sum + byte, 0)
      .toString(8)
      .padStart(6, '0')}\0 `,
    148,
  );
  return tar;
}

const list = (files: readonly Given[], changes?: object) =>
  entry('clients.json', manifestOf('1.0.0', files, changes));
const body = entry(linux.name, linux.content);
const sound = [list([linux]), body];
/** Where the second header begins. */
const second = 1024;

const refused: [what: string, file: Buffer, why: RegExp][] = [
  ['no gzip', Buffer.from('hello'), /damaged, or no gzip/],
  ['nothing', Buffer.alloc(0), /damaged|ends in the middle/],
  ['half a file', packTar(sound).subarray(0, 200), /damaged/],
  [
    'something behind the gzip',
    Buffer.concat([packTar(sound), Buffer.from('more')]),
    /damaged|behind its end/,
  ],
  ['a second gzip behind it', Buffer.concat([packTar(sound), packTar(sound)]), /behind its end/],
  ['a tar that ends in the middle', changed(sound, (tar) => tar.subarray(0, 40_000)), /ends in the middle/],
  ['a tar without an end', changed(sound, (tar) => tar.subarray(0, -1024)), /ends in the middle/],
  ['no list', packTar([body]), /clients\.json is not the first/],
  ['a list that comes second', packTar([body, list([linux])]), /clients\.json is not the first/],
  ['a list that is no JSON', packTar([entry('clients.json', '{')]), /no JSON object/],
  ['another format', packTar([list([linux], { format: 2 }), body]), /format is not 1/],
  ['no version', packTar([list([linux], { version: '; rm -rf /' }), body]), /version/],
  ['a file that is listed and missing', packTar([list([linux])]), /listed, and not in it/],
  ['a file that is not listed', packTar([...sound, entry('more', 'x')]), /more is not in its list/],
  ['a file twice', packTar([...sound, body]), /twice/],
  [
    'other bytes',
    packTar([list([linux]), entry(linux.name, Buffer.alloc(70_000, 'x'))]),
    /does not have the SHA-256/,
  ],
  ['another size', packTar([list([linux]), entry(linux.name, 'x')]), /clients\.json says 70000/],
  ['a list too large', packTar([entry('clients.json', 'x'.repeat(65_537))]), /may have 65536/],
  [
    'a signature too large',
    packTar([list([linux]), entry('clients.json.sig', 'x'.repeat(20_000))]),
    /may have 16384/,
  ],
  ['a name outside', packTar([list([linux]), entry('../escaped', 'x')]), /no name that a file/],
  ['an absolute name', packTar([list([linux]), entry('/tmp/escaped', 'x')]), /no name that a file/],
  ['a name with a folder', packTar([list([linux]), entry('a/b', 'x')]), /no name that a file/],
  [
    'a name that goes on in its prefix',
    changed(sound, (tar) => {
      tar.write('../..', second + 345);
      return summed(tar, second);
    }),
    /no name that a file/,
  ],
  ...['1', '2', '3', '5', 'L', 'x', 'g'].map((type): [string, Buffer, RegExp] => [
    `an entry of type ${type}`,
    changed(sound, (tar) => {
      tar.write(type, second + 156);
      return summed(tar, second);
    }),
    /no regular file/,
  ]),
  ['a damaged header', changed(sound, (tar) => tar.fill('z', second, second + 3)), /header in it is damaged/],
  [
    'a negative size',
    changed(sound, (tar) => {
      tar.write('-0000000001\0', second + 124);
      return summed(tar, second);
    }),
    /a number in it is none/,
  ],
  ['a bomb', gzipSync(Buffer.alloc(64 * 2 ** 20)), /end is too long/],
  ['two files for one platform', packTar([list([linux, { ...linux, name: 'other' }]), body]), /one platform/],
  ['no files at all', packTar([list([])]), /lists no files/],
  [
    'a platform with control characters',
    packTar([list([{ ...linux, platform: '\x1b[2Jx\u009b\u202e' }]), body]),
    /^[\x20-\x7e]*for "\\u001b\[2Jx\?\?", which is no platform[\x20-\x7e]*$/,
  ],
  ['a platform that there is not', packTar([list([{ ...linux, platform: 'plan9' }]), body]), /no platform/],
  [
    'a name that is an address of ours',
    packTar([list([{ ...linux, name: 'list.json' }]), body]),
    /name of the file/,
  ],
  ['a size beyond all', packTar([list([{ ...linux, listed: { bytes: 2 ** 40 } }]), body]), /no size/],
];

test('a release file that is not sound is refused, and what was offered stays', async (t) => {
  using data = temporaryDirectory();
  using directory = temporaryDirectory();
  await addRelease(data.path, openSync(writeRelease(directory.path, '0.0.1', [windows]), 'r'));
  const before = readdirSync(join(data.path, 'clients')).sort();
  const file = join(directory.path, 'refused.tar.gz');
  for (const [what, content, why] of refused) {
    await t.test(what, async () => {
      writeFileSync(file, content);
      await assert.rejects(addRelease(data.path, openSync(file, 'r')), (error: Error) => {
        assert.match(error.message, why);
        return true;
      });
      assert.deepEqual(readdirSync(join(data.path, 'clients')).sort(), before);
      assert.deepEqual(readdirSync(data.path), ['clients']);
      assert.equal(readRelease(data.path)?.version, '0.0.1');
    });
  }
});

test('a folder that another names, and a file that leads elsewhere, are not followed', async () => {
  using data = temporaryDirectory();
  using directory = temporaryDirectory();
  await addRelease(data.path, openSync(writeRelease(directory.path, '0.0.1', [windows]), 'r'));
  for (const name of ['../..', '.', '', 'release-x', '/etc']) {
    writeFileSync(join(data.path, 'clients/current'), `${name}\n`);
    assert.equal(readRelease(data.path), undefined, name);
  }
  symlinkSync('/etc', join(data.path, 'clients/release-etc'));
  writeFileSync(join(data.path, 'clients/current'), 'release-etc\n');
  assert.equal(readRelease(data.path), undefined);
});
