/** Hosts that are taken out of a real Slurm cluster: cleaned, or named as left behind. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { noSlurm, type SlurmLab, startSlurmLab } from './lab.ts';
import { accountsOn, assertConverged, type Cluster, driverOf, manifest, person } from './people.ts';

const ada = person('ada', 30_001);
const bob = person('bob', 30_002);

test('hosts that leave a Slurm cluster', { skip: noSlurm }, async (t) => {
  let lab: SlurmLab;
  let beta: Cluster;
  const head = () => ({ name: 'login1', host: '127.0.0.1', port: lab.port, hostKey: lab.hostKey });
  const other = () => ({ name: 'login2', host: '0x7f001bb1', port: lab.port, hostKey: lab.hostKey });
  before(() => {
    lab = startSlurmLab({ logins: 'bb1', nodes: 'a1' });
    beta = driverOf(lab, { login: [head(), other()] });
  });
  after(() => lab?.[Symbol.dispose]());
  const shell = async (host: string, command: string) => (await lab.on(host, command)).out;
  await t.test('a host under another name is the same host', async () => {
    await beta.apply(manifest([ada, bob]));
    const before = await accountsOn(lab, 'bb1');
    const address = await shell('head', "getent hosts bb1 | awk '{ print $1 }'");
    const renamed = driverOf(lab, { login: [head(), { ...other(), host: address }] });
    const report = await renamed.apply(manifest([ada, bob]));
    assert.deepEqual([report.failure, report.drifted], [null, undefined]);
    assert.deepEqual(await accountsOn(lab, 'bb1'), before);
    beta = driverOf(lab, { login: [head(), other()] });
    await beta.apply(manifest([ada, bob]));
  });

  await t.test(
    'a host that was taken out is named as left behind while it is away, then cleaned',
    async () => {
      const without = driverOf(lab, { login: [head()] });
      lab.control('stop', 'sshd-bb1');
      const next = manifest([ada, bob], { slurmExtraConfig: 'MaxJobCount=5000' });
      const report = await without.apply(next);
      const left =
        /0x7f001bb1:\d+ is not a host of this cluster any more and still has accounts of ours: .*reached/;
      assert.match(report.failure ?? '', left);
      assert.equal(report.manifestGeneration, next.generation);
      await assert.rejects(without.driver.release(AbortSignal.timeout(60_000)), left);
      await without.apply(next);
      lab.control('start', 'sshd-bb1');
      assert.equal((await without.observe()).drifted, true);
      const cleaned = await without.apply(next);
      assert.deepEqual([cleaned.failure, cleaned.drifted], [null, undefined]);
      assert.deepEqual(await accountsOn(lab, 'bb1'), []);
      assert.equal(await shell('bb1', 'ls -A /var/lib/andromeda-slurm 2> /dev/null; ls /home'), 'ada\nbob');
      // It shares its slurm.conf with the hosts in use.
      assert.match(await shell('head', `cat ${lab.directory}/etc/slurm.conf`), /MaxJobCount=5000/);
      await assertConverged(lab, ['head', 'a1'], [ada, bob]);
      await without.driver.release(AbortSignal.timeout(60_000));
      assert.deepEqual(await accountsOn(lab, 'head'), []);
    },
  );
});
