/**
 * A day of people from a directory, as they and their operator see it: the login node and the controller have them from sssd, compute
 * nodes in files of their own with the same numbers.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { alpha, becomes, eventually } from '../support/app.ts';
import { newPublicKey } from '../support/ssh-keys.ts';
import { sshPerson } from '../support/ssh-person.ts';
import { noDirectory, startDirectory, uidOf } from './directory.ts';
import { startSlurmLab } from './lab.ts';
import { associations } from './people.ts';
import { accessList, permit, startService } from './service.ts';

import './directory.test.ts';

test('a day of people from a directory', { skip: noDirectory }, async () => {
  using lab = startSlurmLab();
  const { shell } = lab;
  const directory = await startDirectory(lab, ['head']);
  const { login, controller } = directory.settings;
  const people = ['dn01', 'dn02', 'dn03', 'dn04', 'zoe'];
  await using service = await startService(lab, { login, controller, rollout: 'live' }, {}, people);
  for (const host of ['a1', 'a2']) await shell(host, 'groupadd -g 33000 users-of-directory');
  const passwd = await shell('head', 'cat /etc/passwd /etc/shadow /etc/group');

  // The first key gives a person the directory's number, everywhere.
  using first = await sshPerson(service, 'dn01');
  const uid = uidOf('dn01');
  const { users } = await accessList(service, first.orgId);
  const listed = users.find(({ username }: { username: string }) => username === 'dn01');
  assert.deepEqual([listed.allocation.uid, listed.allocation.gid], [uid, 33_000]);
  const login1 = await first.ssh([first.target, 'cd /; id -u; srun -Q id -u']);
  assert.deepEqual([login1.out, login1.status], [`${uid}\n${uid}\n`, 0], login1.err);
  await becomes(() => shell('a1', 'getent passwd dn01 | cut -d: -f1,3,4'), `dn01:${uid}:33000`);

  // Another's first key, and the directory going away, close no session. Logins go on.
  const open = first.start([first.target, 'echo in; read line; echo "$line"']);
  assert.equal(await open.said, 'in\n');
  using second = await sshPerson(service, 'dn02');
  await directory.hang();
  assert.equal((await second.ssh([second.target, 'id -u'])).out, `${uidOf('dn02')}\n`);
  await directory.goOn();

  // A person who is not in the directory reads which host says so, and so does the operator.
  const { body: me } = await service.business('/me', { as: 'zoe' });
  await permit(service, { orgId: first.orgId, userId: me.user.id }, ['clusters.read', 'clusters.ssh']);
  await service.write('/me/ssh-keys', { as: 'zoe', body: { public_key: newPublicKey() } });
  const path = `/clusters/${alpha}/ssh-access?organizationId=${first.orgId}`;
  const access = await eventually(
    async () => (await service.platform(path, { as: 'zoe' })).body,
    ({ waiting_hosts: [host] = [] }) => /no account/.test(host?.message),
  );
  assert.deepEqual([access.ready, access.reason], [false, 'projection_pending']);
  assert.equal(access.waiting_hosts[0].message, 'the directory has no account zoe');
  const { body } = await service.business('/operator/clusters', { as: 'root' });
  assert.match(JSON.stringify(body.clusters[0]), /the directory has no account zoe/);

  // Who leaves loses session, process, job and association.
  const running = second.start([second.target, 'cd /; sbatch -o /dev/null --wrap "sleep 900"; sleep 900']);
  assert.match(await running.said, /Submitted/);
  await permit(service, second, []);
  assert.equal((await running.ended).status, 255);
  await becomes(async () => (await associations(lab)).join(), 'dn01');
  await becomes(() => shell('head', `pgrep -u ${uidOf('dn02')}; squeue -h`), '');
  assert.equal(
    await shell('head', 'id -u dn02; cat /etc/passwd /etc/shadow /etc/group'),
    `${uidOf('dn02')}\n${passwd}`,
  );

  // Without sssd's tools, PAM is asked by su.
  await shell('head', 'mount --bind /dev/null /usr/sbin/sssctl');
  await directory.replace('dn03', 'shadowExpire', 1);
  const { body: third } = await service.business('/me', { as: 'dn03' });
  await permit(service, { orgId: first.orgId, userId: third.user.id }, ['clusters.read', 'clusters.ssh']);
  await service.write('/me/ssh-keys', { as: 'dn03', body: { public_key: newPublicKey() } });
  await eventually(
    async () => (await service.platform(path, { as: 'dn03' })).body,
    ({ waiting_hosts: [host] = [] }) => host?.message === 'dn03 may not log in: su: User account has expired',
  );
  await directory.replace('dn03', 'shadowExpire', 99_999);
  await becomes(async () => (await service.platform(path, { as: 'dn03' })).body.ready, true);
  open.child.stdin?.end('still here\n');
  assert.equal((await open.ended).out, 'in\nstill here\n');
});
