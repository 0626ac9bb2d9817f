/** A login node that lacks the programs with which legacy scp and rsync need to be answered. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { missing } from '../../sync/login-node/helpers.ts';
import { type Lab, openLab, whyNot } from '../lab.ts';

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
