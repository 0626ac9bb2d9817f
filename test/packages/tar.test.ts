/** Archives of a release: read by tar, and the same bytes for the same content. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { requireIntegrity } from '../../scripts/packages/fetched.ts';
import { type TarEntry, writeTar } from '../../scripts/packages/tar.ts';
import { temporaryDirectory } from '../support/directory.ts';

test('tar reads an archive, whose bytes follow from its content alone', async () => {
  using directory = temporaryDirectory();
  const at = (name: string) => join(directory.path, name);
  writeFileSync(at('large'), Buffer.alloc(3_000_001, 'andromeda'), { mode: 0o600 });
  const entries: TarEntry[] = [
    { name: 'folder/', mode: 0o755 },
    { name: 'folder/text', mode: 0o644, content: Buffer.from('text\n') },
    { name: 'large', mode: 0o755, content: { path: at('large') } },
  ];
  for (const gzip of [false, true]) {
    await writeTar(at('one'), entries, { seconds: 1_700_000_000, gzip });
    utimesSync(at('large'), 1, 1);
    await writeTar(at('two'), entries, { seconds: 1_700_000_000, gzip });
    assert.ok(readFileSync(at('one')).equals(readFileSync(at('two'))));
  }
  const env = { ...process.env, TZ: 'UTC' };
  const listed = execFileSync('tar', ['tvf', at('one')], { encoding: 'utf8', env });
  assert.deepEqual(
    listed
      .trimEnd()
      .split('\n')
      .map((line) => line.replace(/ +/g, ' ')),
    [
      'drwxr-xr-x 0/0 0 2023-11-14 22:13 folder/',
      '-rw-r--r-- 0/0 5 2023-11-14 22:13 folder/text',
      '-rwxr-xr-x 0/0 3000001 2023-11-14 22:13 large',
    ],
  );
  execFileSync('tar', ['xf', at('one'), 'folder'], { cwd: directory.path });
  assert.equal(readFileSync(at('folder/text'), 'utf8'), 'text\n');
  const long = { name: 'x'.repeat(101), mode: 0o644, content: Buffer.alloc(0) };
  await assert.rejects(writeTar(at('three'), [long], { seconds: 0 }), /too long a name/);
});

test('a fetched file that is not the one that was pinned is refused', () => {
  const content = Buffer.from('content');
  const integrity = `sha512-${createHash('sha512').update(content).digest('base64')}`;
  requireIntegrity('file', content, integrity);
  assert.throws(
    () => requireIntegrity('file', Buffer.from('other'), integrity),
    /not the file that was pinned/,
  );
});
