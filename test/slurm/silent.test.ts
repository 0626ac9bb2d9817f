/** A real Slurm cluster whose controller, or every host, is silent; and one with a node that does not come back. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { alpha, eventually } from '../support/app.ts';
import { sshPerson } from '../support/ssh-person.ts';
import { hangSshd, noSlurm, type SlurmLab, startSlurmLab } from './lab.ts';
import { driverOf, manifest, person } from './people.ts';
import { optionsOf, startService } from './service.ts';

test('a Slurm cluster that is silent', { skip: noSlurm }, async (t) => {
  let lab: SlurmLab;
  before(() => {
    lab = startSlurmLab({ logins: 'bb1', nodes: 'a1 a2', homes: 'shared' });
  });
  after(() => lab?.[Symbol.dispose]());
  const login = () => ({ name: 'login1', host: '0x7f001bb1', port: lab.port, hostKey: lab.hostKey });
  const shell = async (host: string, command: string) => (await lab.on(host, command)).out;

  await t.test(
    'without its controller a cluster is unknown after two minutes, and people log in',
    async () => {
      await using service = await startService(lab, { rollout: 'live', login: [login()] });
      using abe = await sshPerson(service, 'abe');
      const machines = async () =>
        (
          await service.platform(`/clusters/${alpha}/machines?businessOrgId=${abe.orgId}`, { as: 'ada' })
        ).body.items.map((one: { observed: { freshness: string } }) => one.observed.freshness);
      const seenSince = async (before: Record<string, unknown>) =>
        await eventually(abe.access, (now) => now['observed_at'] !== before['observed_at']);
      await eventually(
        () => optionsOf(service, abe.orgId),
        ({ state }) => state === 'available',
      );
      await using controller = await hangSshd(lab, 'head');
      await eventually(
        () => optionsOf(service, abe.orgId),
        ({ scheduler }) => scheduler.ready?.reason === 'ControllerUnreachable',
      );
      service.advance(121_000);
      await seenSince(await abe.access());
      const { state, reason } = await optionsOf(service, abe.orgId);
      assert.deepEqual([state, reason], ['unknown', 'observation_stale']);
      assert.deepEqual(await machines(), ['stale', 'stale']);
      assert.equal((await abe.ssh([abe.target, 'hostname'])).out, 'bb1\n');
      const others = await Promise.all(['bb1', 'a1', 'a2'].map((host) => hangSshd(lab, host)));
      await eventually(abe.access, ({ reason }) => reason === 'gateway_unavailable');
      const silent = await eventually(abe.access, (now) => now['observation_current'] === true);
      service.advance(121_000);
      await eventually(abe.access, (now) => now['observation_current'] === false);
      assert.equal((await abe.access())['observed_at'], silent['observed_at']);
      for (const one of [controller, ...others]) await one.back();
      await eventually(
        () => optionsOf(service, abe.orgId),
        ({ state }) => state === 'available',
      );
      assert.deepEqual(await machines(), ['fresh', 'fresh']);
      await eventually(abe.access, ({ ready }) => ready === true);
    },
  );

  await t.test(
    'a node that was retired is not waited for, and one that another process waited for is still known',
    async () => {
      const settings = { login: [login()] };
      const ada = person('ada', 30_001);
      const beta = driverOf(lab, settings);
      const first = manifest([ada]);
      await beta.apply(first);
      await eventually(beta.observe, ({ waiting }) => waiting?.length === 0);
      await using sshd = await hangSshd(lab, 'a2');
      const next = manifest([ada, person('bob', 30_002)]);
      await beta.apply(next);
      const report = await eventually(
        beta.observe,
        ({ waiting }) => waiting?.length === 1 && /cannot be reached/.test(waiting[0]?.message ?? ''),
      );
      const lack = { host: 'a2', generation: first.generation, listVersion: first.listVersion };
      const { message: _, ...named } = report.waiting?.[0] ?? {};
      assert.deepEqual(named, lack);
      const after = await driverOf(lab, settings, { last: report }).observe();
      assert.deepEqual(
        after.waiting?.map(({ message: _, ...one }) => one),
        [lack],
      );
      const without = driverOf(lab, { ...settings, retired: ['a2'] });
      const retired = await without.apply(next);
      assert.deepEqual([retired.waiting, retired.failure], [[], null]);
      const gone = driverOf(lab, settings, { last: report });
      const conf = `${lab.directory}/etc/slurm.conf`;
      await shell('head', `sed -i.all '/^NodeName=a2/d; s/Nodes=a1,a2/Nodes=a1/' ${conf}`);
      lab.control('restart', 'slurmctld');
      const left = await eventually(gone.observe, ({ machines }) => machines?.length === 1);
      assert.deepEqual(left.waiting, [], 'Slurm has no such node any more');
      await shell('head', `mv ${conf}.all ${conf}`);
      lab.control('restart', 'slurmctld');
      await eventually(gone.observe, ({ machines }) => machines?.length === 2);
      await sshd.back();
      await eventually(
        async () => {
          await without.apply(next);
          return shell('a2', 'grep -c ,,,,7b6f1f0e /etc/passwd');
        },
        (count) => count === '0',
      );
    },
  );
});
