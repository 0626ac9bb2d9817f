/** A file server makes the homes of a real Slurm cluster, and has its people's groups. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { noSlurm, startSlurmLab } from './lab.ts';
import { accountsOn, driverOf, inTime, manifest, person } from './people.ts';

test('a file server makes the homes of a Slurm cluster, and nothing waits for it', {
  skip: noSlurm,
}, async () => {
  // A host that the cluster has as no login node; its name is its address.
  using lab = startSlurmLab({ LOGINS: '0f5' });
  const { shell } = lab;
  const [ada, bob] = [person('ada', 30_001), person('bob', 30_002)];
  const beta = driverOf(lab, {
    homes: { ...lab.settings().controller, host: '127.0.16.245', path: '/home' },
  });
  const groups = [{ name: 'vision', gid: 5_003, members: ['ada'] }];
  await beta.converge({ ...manifest([ada]), groups });
  for (const host of ['head', 'a1', '0f5']) assert.equal(await shell(host, 'id -Gn ada'), 'ada vision', host);
  assert.equal(await shell('0f5', 'stat -c %U:%a /home/ada'), 'ada:700');
  assert.equal(await shell('head', 'ls -A /home'), '', 'only the server makes them');

  lab.control('stop', 'sshd-0f5');
  const next = manifest([ada, bob]);
  const away = await beta.apply(next);
  assert.deepEqual([away.manifestGeneration, away.failure, away.waiting?.length], [next.generation, null, 1]);
  assert.match(away.waiting?.[0]?.host ?? '', /^127\.0\.16\.245:/);
  lab.control('start', 'sshd-0f5');
  await beta.converge(next);
  assert.equal(await shell('0f5', 'ls -A /home'), 'ada\nbob');

  await beta.driver.release(inTime());
  for (const host of ['head', 'a1', '0f5']) {
    assert.deepEqual(await accountsOn(lab, host), [], host);
    assert.equal((await lab.on(host, 'getent group vision')).status, 2, host);
  }
  assert.equal(await shell('0f5', 'ls -A /home'), 'ada\nbob', 'homes stay');
});
