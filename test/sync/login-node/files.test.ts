import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { bench, clientOptions, isRoot, missing, run, ssh } from './helpers.ts';

test('scp copies there and back', { skip: missing('scp') }, async (t) => {
  const at = await bench(t);
  const [up, down] = [join(at.dir, 'up'), join(at.dir, 'down')];
  const data = randomBytes(3_000_001);
  writeFileSync(up, data, { mode: 0o640 });
  const scp = (...args: string[]) => run('scp', [...clientOptions(at), '-p', ...args]);
  assert.deepEqual(await scp(up, 'ada@127.0.0.1:there'), { code: 0, stdout: '', stderr: '' });
  assert.equal((await scp('ada@127.0.0.1:there', down)).code, 0);
  assert.ok(readFileSync(down).equals(data));
  const owner = isRoot ? '20001' : String(process.getuid?.());
  assert.equal((await ssh(at, 'stat -c "%a %u" there')).stdout, `640 ${owner}\n`);
  mkdirSync(join(at.dir, 'tree/deep'), { recursive: true });
  writeFileSync(join(at.dir, 'tree/deep/ünï'), 'x');
  assert.equal((await scp('-r', join(at.dir, 'tree'), 'ada@127.0.0.1:~/copied')).code, 0);
  assert.equal((await ssh(at, 'cat copied/deep/ünï')).stdout, 'x');
  assert.notEqual((await scp('ada@127.0.0.1:no-such-file', down)).code, 0);
});

test('sftp does its work', { skip: missing('sftp') }, async (t) => {
  const at = await bench(t);
  writeFileSync(join(at.dir, 'file'), 'contents');
  const batch = [
    'pwd',
    'mkdir d',
    `put ${join(at.dir, 'file')} d/a`,
    'rename d/a d/b',
    'ln -s b d/link',
    'ln d/b d/hard',
    'chmod 600 d/b',
    'ls -l d',
    `get d/link ${join(at.dir, 'got')}`,
    'rm d/hard',
    'rm d/link',
    'rm d/b',
    'rmdir d',
    `put -f ${join(at.dir, 'file')} kept`,
    'df',
    '-rm nothing-here',
    'ls',
  ];
  const result = await run('sftp', [...clientOptions(at), '-b', '-', 'ada@127.0.0.1'], batch.join('\n'));
  assert.equal(result.code, 0, result.stderr);
  assert.match(result.stdout, /-rw-------\s.*\s(d\/)?b\n/);
  assert.match(result.stdout, /lrwxrwxrwx\s.*\s(d\/)?link\n/);
  assert.match(result.stdout, /ls\nkept\s*$/);
  assert.equal(readFileSync(join(at.dir, 'got'), 'utf8'), 'contents');
});

test('rsync copies there and back', { skip: missing('rsync') }, async (t) => {
  const at = await bench(t);
  mkdirSync(join(at.dir, 'tree'));
  const data = randomBytes(2_000_000);
  writeFileSync(join(at.dir, 'tree/data'), data);
  const shell = ['ssh', ...clientOptions(at)].join(' ');
  const there = await run('rsync', ['-a', '-e', shell, `${at.dir}/tree/`, 'ada@127.0.0.1:tree/']);
  assert.deepEqual(there, { code: 0, stdout: '', stderr: '' });
  await run('rsync', ['-a', '-e', shell, 'ada@127.0.0.1:tree/', `${at.dir}/back/`]);
  assert.ok(readFileSync(join(at.dir, 'back/data')).equals(data));
});

test('the old scp protocol works too', { skip: missing('scp') }, async (t) => {
  const at = await bench(t);
  writeFileSync(join(at.dir, 'file'), 'old');
  const copied = await run('scp', ['-O', ...clientOptions(at), join(at.dir, 'file'), 'ada@127.0.0.1:']);
  assert.equal(copied.code, 0, copied.stderr);
  assert.equal((await ssh(at, 'cat file')).stdout, 'old');
});
