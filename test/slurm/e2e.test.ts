/** People on a real Slurm cluster through the gateway, and operators through the API; Shared, live. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { alpha, eventually } from '../support/app.ts';
import { sshPerson } from '../support/ssh-person.ts';
import { noSlurm, type SlurmLab, startSlurmLab } from './lab.ts';
import { associations } from './people.ts';
import { accessList, labOf, permit, startService } from './service.ts';

test('a real Slurm cluster, from end to end', { skip: noSlurm }, async (t) => {
  let lab: SlurmLab;
  before(() => {
    lab = startSlurmLab({ homes: 'shared' });
  });
  after(() => lab?.[Symbol.dispose]());
  const shell = async (host: string, command: string) => (await lab.on(host, command)).out;

  await t.test('Shared, live', async (t) => {
    await using service = await startService(lab, { rollout: 'live' });
    using abe = await sshPerson(service, 'abe');
    const ready = async (condition: (ready: Record<string, unknown> | undefined) => boolean) =>
      (
        await eventually(
          async () =>
            (
              await service.platform(`/clusters/${alpha}/options?businessOrgId=${abe.orgId}`, { as: 'ada' })
            ).body,
          (options) => condition(options.scheduler?.ready),
        )
      ).scheduler.ready;

    await t.test(
      'a member with a key logs in to the real sshd, runs srun and submits with sbatch',
      async () => {
        const login = await abe.ssh([abe.target, 'id -un; hostname; pwd; srun -Q hostname']);
        assert.deepEqual([login.status, login.out, login.err], [0, 'abe\nhead\n/home/abe\na1\n', '']);
        const batch = await abe.ssh([abe.target, 'sbatch --wrap "hostname > out; id -un >> out"']);
        assert.match(batch.out, /Submitted batch job \d+/);
        await eventually(
          () => shell('head', 'cat /home/abe/out'),
          (text) => text === 'a1\nabe',
        );
        assert.equal(
          (await accessList(service, abe.orgId)).users.find(
            (one: { username: string }) => one.username === 'abe',
          ).allocation.uid >= 20_000,
          true,
        );
      },
    );

    await t.test('machines are listed', async () => {
      const { body } = await service.platform(`/clusters/${alpha}/machines?businessOrgId=${abe.orgId}`, {
        as: 'ada',
      });
      assert.deepEqual(
        body.items
          .map((one: { name: string; hardware: object; observed: { ready: boolean } }) => [
            one.name,
            one.hardware,
            one.observed.ready,
          ])
          .sort(),
        ['a1', 'a2'].map((name) => [
          name,
          { gpu_model: 'h100', gpu_count: 8, cpu_cores: 64, memory_gib: 500 },
          true,
        ]),
      );
    });

    await t.test("another's first key closes no session and ends no job", async (t) => {
      const open = abe.start([abe.target, 'echo in; read line; echo "$line"']);
      assert.equal(await open.said, 'in\n');
      const { body: eve } = await service.business('/me', { as: 'eve' });
      await permit(service, { orgId: abe.orgId, userId: eve.user.id }, ['clusters.ssh']);
      using person = await sshPerson(service, 'eve');
      assert.equal((await person.ssh([person.target, 'srun -Q id -un'])).out, 'eve\n');
      open.child.stdin?.end('still here\n');
      const ended = await open.ended;
      assert.deepEqual([ended.status, ended.out, ended.err], [0, 'in\nstill here\n', '']);

      await t.test('who is removed cannot log in or submit, and nothing of theirs runs on', async () => {
        const session = person.start([person.target, 'echo in; sleep 100']);
        await session.said;
        await person.ssh([person.target, 'sbatch --wrap "sleep 300"']);
        await permit(service, person, []);
        assert.equal((await session.ended).status, 255);
        const refused = await person.ssh([person.target, 'true']);
        assert.deepEqual([refused.status, /no SSH access/.test(refused.err)], [255, true]);
        await eventually(
          () => associations(lab),
          (names) => !names.includes('eve'),
        );
        assert.match(await shell('head', 'runuser -u eve -- sbatch --wrap true'), /Invalid account/);
        assert.equal(await shell('head', 'pgrep -u eve; squeue -h -u eve'), '');
      });
    });

    await t.test('admin plan says that nothing restarts, and whose jobs end', async () => {
      const job = await abe.ssh([abe.target, 'sbatch --parsable --job-name long --wrap "sleep 300"']);
      const wanted = labOf(lab.settings({ rollout: 'live' }));
      for (const one of wanted.organizations?.[0]?.members ?? [])
        if (one.username === 'abe') one.permissions = [];
      const plan = async () =>
        (
          await service.business('/operator/lab/plan', {
            as: 'root',
            method: 'POST',
            body: { lab: { ...wanted, users: [] } },
          })
        ).body;
      const { restarts } = await eventually(plan, (body) => (body.restarts[0]?.ended_jobs.length ?? 0) > 0);
      const [restart] = restarts;
      assert.deepEqual([restart.rollout, restart.removed, restart.restarts], ['live', ['abe'], []]);
      assert.deepEqual(
        restart.ended_jobs.map((one: { id: string; user: string; name: string }) => [
          one.id,
          one.user,
          one.name,
        ]),
        [[job.out.trim(), 'abe', 'long']],
      );
      await shell('head', 'scancel -u abe');
    });

    await t.test('a configuration is applied; a broken one is refused, in words, everywhere', async () => {
      const put = (body: object) =>
        service.platform(`/clusters/${alpha}/scheduler-configuration?businessOrgId=${abe.orgId}`, {
          as: 'ada',
          method: 'PUT',
          body,
        });
      assert.equal((await put({ slurmExtraConfig: 'SlurmdTimeout=77' })).status, 200);
      await eventually(
        () => shell('head', 'scontrol show config | grep ^SlurmdTimeout'),
        (text) => text.includes('77'),
      );
      await ready((condition) => condition?.['status'] === 'True');
      assert.equal((await put({ slurmExtraConfig: 'Nonsense=77' })).status, 200);
      const condition = await ready((one) => one?.['status'] === 'False');
      assert.equal(condition.reason, 'ConfigurationRejected');
      assert.match(condition.message, /unrecognized key: Nonsense/);
      assert.equal((await accessList(service, abe.orgId)).state, 'failed');
      const { body } = await service.business('/operator/clusters', { as: 'root' });
      assert.match(body.clusters[0].failure, /unrecognized key: Nonsense/);
      const job = await abe.ssh([abe.target, 'srun -Q hostname']);
      assert.deepEqual([job.status, job.out, job.err], [0, 'a1\n', ''], 'people go on');
      await put({});
      await ready((one) => one?.['status'] === 'True');
    });

    await t.test('released, nothing of ours is left but homes', async () => {
      await service.write(`/operator/clusters/${alpha}/release`, { as: 'root' });
      const state = async () =>
        (await service.business('/operator/clusters', { as: 'root' })).body.clusters[0].cluster.state;
      await eventually(state, (is) => is === 'released');
      for (const host of ['head', 'a1', 'a2']) {
        const left =
          'getent passwd abe ada eve; ls -A /var/lib/andromeda-slurm 2> /dev/null; test -d /home/abe && echo home';
        assert.equal(await shell(host, left), 'home', host);
      }
      assert.deepEqual(await associations(lab), []);
      assert.equal((await abe.ssh([abe.target, 'true'])).status, 255);
      await shell('head', 'rm -rf /home/*');
    });
  });
});
