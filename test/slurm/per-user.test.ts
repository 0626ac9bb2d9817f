/** A real Slurm cluster where each person has their own login node, and people who come restart things. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { becomes, eventually } from '../support/app.ts';
import { fails } from '../support/heard.ts';
import { newPublicKey } from '../support/ssh-keys.ts';
import { sshPerson } from '../support/ssh-person.ts';
import { noSlurm, startSlurmLab } from './lab.ts';
import { associations } from './people.ts';
import { accessList, crowd, startService } from './service.ts';

test("people's own login nodes behind a hop, and many first keys", { skip: noSlurm }, async (t) => {
  using lab = startSlurmLab({ LOGINS: 'ada abe', NODES: 'a1' });
  const restarts = join(lab.directory, 'restarts');
  const counted = (daemon: string) => `echo ${daemon} >> ${restarts}`;
  const { port, hostKey } = lab;
  // Through the head, where people have accounts, too.
  const via = { host: '127.0.0.1', port, hostKey };
  await using service = await startService(lab, {
    loginMode: 'PerUser',
    login: [{ name: 'login', host: '0x7f001{username}', port, hostKey, via }],
    rollout: 'restart',
    commands: {
      restartLogin: counted('login'),
      restartController: counted('controller'),
      restartAccounting: counted('accounting'),
      restartCompute: counted('compute'),
    },
  });
  using abe = await sshPerson(service, 'abe');

  await t.test('each person has their own login node', async () => {
    assert.equal((await abe.access())['login_mode'], 'PerUser');
    const hopLogins = () =>
      readFileSync(join(lab.directory, 'log/sshd-head.log'), 'utf8').match(/publickey for abe/g);
    assert.equal(hopLogins(), null);
    assert.equal((await abe.ssh([abe.target, 'hostname; id -un'])).out, 'abe\nabe\n');
    assert.equal(hopLogins()?.length, 1);
    using ada = await sshPerson(service, 'ada');
    assert.equal((await ada.ssh([ada.target, 'hostname; srun -Q hostname'])).out, 'ada\na1\n');
  });

  await t.test('many first keys at once cost a handful of restarts, and close open sessions', async () => {
    const session = abe.start([abe.target, 'echo in; sleep 100']);
    await session.said;
    writeFileSync(restarts, '');
    const register = (as: string) =>
      service.write('/me/ssh-keys', { as, body: { public_key: newPublicKey() } });
    await Promise.all(crowd.map(register));
    // The list follows each key by a transaction of its own.
    const isReady = (one: { username: string; desired_login_state: string }) =>
      one.username === 'eve' || one.desired_login_state === 'ready';
    const list = () => accessList(service, abe.orgId);
    await eventually(list, ({ users }) => users.every(isReady));
    await becomes(async () => (await associations(lab)).length, crowd.length + 2);
    await eventually(list, ({ state }) => state === 'converged');
    fails(await session.ended, 255, /login node is restarting/);
    const count = readFileSync(restarts, 'utf8').match(/^controller$/gm)?.length ?? 0;
    assert.ok(count >= 1 && count <= 4, `${count} restarts`);
  });
});
