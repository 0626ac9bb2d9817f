/** Files through the gateway, both ways, with what people copy them with. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fails } from '../../support/heard.ts';
import { missing } from '../../sync/login-node/helpers.ts';
import { type Lab, LOGIN, openLab, whyNot } from '../lab.ts';
import { withEachNode } from './nodes.ts';

const bytes = randomBytes(3_000_000);

withEachNode('files', {}, (at) => {
  /** A folder with a large file, a small one, an empty one, an executable and a link, below the lab's. */
  function tree(name: string): string {
    const top = join(at.lab.dir, name);
    mkdirSync(join(top, 'deep er'), { recursive: true });
    writeFileSync(join(top, 'large'), bytes);
    writeFileSync(join(top, 'deep er', "it's small"), name);
    writeFileSync(join(top, 'empty'), '');
    writeFileSync(join(top, 'program'), '#!/bin/sh\n');
    chmodSync(join(top, 'program'), 0o755);
    symlinkSync('large', join(top, 'link'));
    return top;
  }

  function sameTree(top: string, name: string) {
    assert.ok(readFileSync(join(top, 'large')).equals(bytes));
    assert.equal(readFileSync(join(top, 'deep er', "it's small"), 'utf8'), name);
    assert.equal(statSync(join(top, 'empty')).size, 0);
    assert.equal(statSync(join(top, 'program')).mode & 0o777, 0o755);
  }

  const curl = spawnSync('curl', ['-V'], { encoding: 'utf8' }).stdout ?? '';
  test(`curl sftp://, up and down (${/libssh2?\/[\d.]+/.exec(curl)?.[0]})`, {
    skip: !/ sftp /.test(curl) && 'curl has no sftp here',
  }, async () => {
    const { lab, folder } = at;
    writeFileSync(join(lab.dir, 'sent'), bytes);
    const key = ['--key', 'user', '--pubkey', 'user.pub', '-u', `${LOGIN}:`];
    const url = `sftp://127.0.0.1:${lab.gateway.port}${folder}/by-curl`;
    for (const args of [
      ['-T', 'sent', url],
      ['-o', 'got', url],
    ]) {
      const ran = await lab.run('curl', ['-sSk', ...key, ...args]);
      assert.equal(ran.status, 0, ran.err);
    }
    assert.ok(readFileSync(join(lab.dir, 'got')).equals(bytes));
  });

  for (const [what, options, skip] of [
    ['scp', ['-s'], false],
    ['scp -O', ['-O'], missing('scp')],
  ] as const)
    test(`${what}: a folder up and down, modes kept, nothing on stderr`, { skip }, async () => {
      const name = `by${options[0]}`;
      const scp = (from: string, to: string) =>
        at.lab.run('scp', [...at.lab.options, ...options, '-rpq', from, to]);
      const up = await scp(tree(name), `gateway:${at.folder}/`);
      assert.deepEqual([up.status, up.err], [0, '']);
      const down = await scp(`gateway:${at.folder}/${name}`, join(at.lab.dir, `${name} back`));
      assert.deepEqual([down.status, down.err], [0, '']);
      sameTree(join(at.lab.dir, `${name} back`), name);
    });

  test('scp of a file that is not there says so and fails', async () => {
    for (const option of ['-s', '-O']) {
      fails(
        await at.lab.run('scp', [...at.lab.options, option, `gateway:${at.folder}/none`, at.lab.dir]),
        1,
        /No such file or directory/,
      );
    }
  });

  test('sftp: put, list, rename, resume, get, remove', async () => {
    const from = tree('by sftp');
    const there = `${at.folder}/sftp place`;
    const half = join(at.lab.dir, 'half');
    writeFileSync(half, bytes.subarray(0, 1_000_000));
    const batch = [
      `mkdir "${there}"`,
      `cd "${there}"`,
      `put "${from}/large" one`,
      'rename one two',
      'chmod 600 two',
      `reget two "${half}"`,
      `put -r "${from}"`,
      `get -rp "by sftp" "${at.lab.dir}/by sftp back"`,
      'ls -l two',
      'rm two',
      '-ls two',
    ];
    const ran = await at.lab.run('sftp', [...at.lab.options, '-b', '-', 'gateway'], `${batch.join('\n')}\n`);
    assert.equal(ran.status, 0, ran.err);
    assert.match(ran.out, /-rw-------.* 3000000 .*two/);
    assert.match(ran.err, /"?.*two"? not found/);
    assert.ok(readFileSync(half).equals(bytes));
    sameTree(join(at.lab.dir, 'by sftp back'), 'by sftp');
  });

  test('rsync up and down: a first time, then only what changed', { skip: missing('rsync') }, async () => {
    const rsync = (from: string, to: string) => {
      const rsh = `ssh ${at.lab.options.join(' ')}`;
      return at.lab.run('rsync', ['-rlpt', '--delete', '--stats', '-e', rsh, from, to]);
    };
    const from = tree('by rsync');
    const there = `gateway:${at.folder}/rsync/`;
    const back = join(at.lab.dir, 'by rsync back');
    for (const [source, target] of [
      [`${from}/`, there],
      [there, `${back}/`],
    ] as const) {
      const first = await rsync(source, target);
      assert.deepEqual([first.status, first.err], [0, '']);
      assert.match(first.out, /regular files transferred: 4/);
    }
    sameTree(back, 'by rsync');
    writeFileSync(join(from, 'large'), Buffer.concat([bytes.subarray(0, 1_500_000), bytes]));
    const second = await rsync(`${from}/`, there);
    assert.match(second.out, /regular files transferred: 1\b/);
    const [, literal = ''] = /Literal data: ([\d,]+)/.exec(second.out) ?? [];
    assert.ok(Number(literal.replaceAll(',', '')) < 100_000, second.out);
    assert.match((await rsync(there, `${back}/`)).out, /regular files transferred: 1\b/);
    assert.equal(statSync(join(back, 'large')).size, bytes.length + 1_500_000);
  });
});

describe('a login node without scp and rsync', { skip: whyNot }, () => {
  let lab: Lab;
  before(async () => {
    lab = await openLab({}, ['SetEnv HOME=/nonexistent PATH=/nonexistent']);
    writeFileSync(join(lab.dir, 'file'), 'content');
  });
  after(() => lab.close());

  test('SFTP including modern scp works all the same', async () => {
    const to = join(lab.dir, 'copy');
    const ran = await lab.run('scp', [...lab.options, '-s', '-q', `gateway:${lab.dir}/file`, to]);
    assert.deepEqual([ran.status, ran.err], [0, '']);
  });

  for (const [program, args] of [
    ['scp', ['-O']],
    ['rsync', ['-e', 'ssh -F ssh_config']],
  ] as const)
    test(`legacy ${program} works only when that program exists on the login node, and says so`, {
      skip: missing(program),
    }, async () => {
      const options = program === 'scp' ? lab.options : [];
      const ran = await lab.run(program, [
        ...options,
        ...args,
        `${lab.dir}/file`,
        `gateway:${lab.dir}/other`,
      ]);
      assert.notEqual(ran.status, 0);
      assert.match(
        ran.err,
        new RegExp(`${program}: (command not found|No such file or directory|not found)`),
      );
    });
});
