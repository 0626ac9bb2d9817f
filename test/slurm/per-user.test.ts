/** A real Slurm cluster where each person has their own login node, and people who come restart things. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { eventually } from '../support/app.ts';
import { newPublicKey } from '../support/ssh-keys.ts';
import { sshPerson } from '../support/ssh-person.ts';
import { noSlurm, type SlurmLab, startSlurmLab } from './lab.ts';
import { associations } from './people.ts';
import { accessList, crowd, startService } from './service.ts';

test("people's own login nodes, and fifty first keys", { skip: noSlurm }, async (t) => {
  let lab: SlurmLab;
  before(() => {
    lab = startSlurmLab({ logins: 'ada abe', nodes: 'a1' });
  });
  after(() => lab?.[Symbol.dispose]());

  await t.test('PerUser, restart', async (t) => {
    const restarts = join(lab.directory, 'restarts');
    writeFileSync(restarts, '');
    const counted = (daemon: string) => `echo ${daemon} >> ${restarts}`;
    const perUser = { name: 'login', host: '0x7f001{username}', port: lab.port, hostKey: lab.hostKey };
    await using service = await startService(lab, {
      loginMode: 'PerUser',
      login: [perUser],
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
      assert.equal((await abe.ssh([abe.target, 'hostname; id -un'])).out, 'abe\nabe\n');
      using ada = await sshPerson(service, 'ada');
      assert.equal((await ada.ssh([ada.target, 'hostname; srun -Q hostname'])).out, 'ada\na1\n');
    });

    await t.test(
      'fifty first keys within a few seconds cost a handful of restarts, and close open sessions',
      async () => {
        const session = abe.start([abe.target, 'echo in; sleep 100']);
        await session.said;
        writeFileSync(restarts, '');
        await Promise.all(
          crowd.map((name) =>
            service.write('/me/ssh-keys', { as: name, body: { public_key: newPublicKey() } }),
          ),
        );
        const state = async () =>
          (await accessList(service, abe.orgId)).users.every(
            (one: { username: string; desired_login_state: string }) =>
              one.username === 'eve' || one.desired_login_state === 'ready',
          );
        // The list follows each key by a transaction of its own.
        await eventually(state, (ready) => ready);
        await eventually(
          () => associations(lab),
          (names) => names.length === 52,
        );
        await eventually(
          async () => (await accessList(service, abe.orgId)).state,
          (is) => is === 'converged',
        );
        const ended = await session.ended;
        assert.equal(ended.status, 255);
        assert.match(ended.err, /login node is restarting/);
        const count = readFileSync(restarts, 'utf8')
          .split('\n')
          .filter((line) => line === 'controller').length;
        assert.ok(count >= 1 && count <= 4, `${count} restarts`);
      },
    );
  });
});
