/** People whose name or home somebody else has on a real Slurm cluster: ready means that the login works. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { alpha, eventually } from '../support/app.ts';
import { sshPerson } from '../support/ssh-person.ts';
import { noSlurm, type SlurmLab, startSlurmLab } from './lab.ts';
import { startService } from './service.ts';

test('names that are taken on a Slurm cluster', { skip: noSlurm }, async (t) => {
  let lab: SlurmLab;
  before(() => {
    lab = startSlurmLab({ homes: 'shared', nodes: 'a1' });
  });
  after(() => lab?.[Symbol.dispose]());
  const shell = async (host: string, command: string) => (await lab.on(host, command)).out;

  await t.test('through the gateway', async (t) => {
    await using service = await startService(lab, { rollout: 'live' });
    await t.test(
      'who had to wait for a foreign account can log in as soon as the list says ready',
      async () => {
        const everywhere = (command: string) =>
          Promise.all(['head', 'a1'].map((host) => shell(host, command)));
        const loginOf = (name: string) => sshPerson(service, name);
        // Each way out of the way, and what it leaves behind.
        const ways = {
          p1: 'usermod -l old1 p1; groupmod -n old1 p1',
          p2: 'passwd -l p2; chage -E 1 p2; gpasswd -a p2 staff; sed -i /^p2:/d /etc/passwd /etc/group',
          p3: 'userdel p3; groupdel p3; rm -rf /home/p3',
        };
        const names = Object.keys(ways);
        await everywhere(
          names.map((name, index) => `useradd -u ${1501 + index} -U -M -p '!' ${name}`).join('; '),
        );
        await shell('head', 'mkdir /home/p3; chown 1503:1503 /home/p3');
        const people = names.map((name) => loginOf(name));
        await eventually(
          async () => (await service.business('/operator/clusters', { as: 'root' })).body.clusters[0].failure,
          (words) => names.every((name) => words?.includes(`the account ${name} `)),
        );
        await everywhere(Object.values(ways).join('; '));
        // The first login comes at the moment at which the list says that it will work.
        const first = await Promise.all(
          people.map(async (coming) => {
            using person = await coming;
            const login = await person.ssh([person.target, 'id -un; id -Gn; pwd']);
            // The list may say ready before the compute nodes have the account; jobs follow.
            const inJob = () => person.ssh([person.target, 'srun -Q id -un']);
            const job = await eventually(inJob, ({ status }) => status === 0);
            return [login.status, login.out, login.err, job.out];
          }),
        );
        assert.deepEqual(
          first,
          names.map((name) => [0, `${name}\n${name}\n/home/${name}\n`, '', `${name}\n`]),
        );
      },
    );

    await t.test(
      'whose home is another’s is not ready, in words, until the home is out of the way',
      async () => {
        await shell('head', 'mkdir /home/p4; chown 1504 /home/p4');
        const { body: p4 } = await service.business('/me', { as: 'p4' });
        const coming = sshPerson(service, 'p4');
        const failure = async () =>
          (await service.business('/operator/clusters', { as: 'root' })).body.clusters[0].failure;
        assert.match(await eventually(failure, (words) => words !== null), /\/home\/p4 belongs to/);
        const { body } = await service.platform(
          `/clusters/${alpha}/ssh-access?organizationId=${p4.memberships[0].org_id}`,
          {
            as: 'p4',
          },
        );
        assert.equal(body.ready, false);
        assert.equal(await shell('head', 'stat -c %u /home/p4'), '1504');
        await shell('head', 'mv /home/p4 /home/p4.old');
        using person = await coming;
        assert.equal((await person.ssh([person.target, 'id -un'])).out, 'p4\n');
      },
    );
  });
});
