/** A real Slurm cluster whose daemons are down, or where a change is cut off: each ends converged. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { noSlurm, type SlurmLab, startSlurmLab } from './lab.ts';
import { assertConverged, type Cluster, driverOf, manifest, person } from './people.ts';

const hosts = ['head', 'a1', 'a2'];
const ada = person('ada', 30_001);
const bob = person('bob', 30_002);
const cy = person('cy', 30_003);

test('interruptions of a Slurm cluster', { skip: noSlurm }, async (t) => {
  let lab: SlurmLab;
  let beta: Cluster;
  before(async () => {
    lab = startSlurmLab();
    beta = driverOf(lab);
    await beta.apply(manifest([ada]));
  });
  after(() => lab?.[Symbol.dispose]());
  const shell = async (host: string, command: string) => (await lab.on(host, command)).out;
  const converged = (people: readonly { username: string; uid: number }[]) =>
    assertConverged(lab, hosts, people);

  await t.test(
    'with slurmdbd down people can log in, and have their association when it is back',
    async () => {
      lab.control('stop', 'slurmdbd');
      const next = manifest([ada]);
      const report = await beta.apply(next);
      assert.deepEqual([report.manifestGeneration, report.failure], [next.generation, null]);
      assert.deepEqual(
        [report.scheduler?.ready?.status, report.scheduler?.ready?.reason],
        ['False', 'AccountingDown'],
      );
      assert.equal(report.drifted, true);
      lab.control('start', 'slurmdbd');
      assert.equal((await beta.apply(next)).scheduler?.ready?.status, 'True');
      await converged([ada]);
    },
  );

  await t.test('with slurmctld down it says so, and goes on with people', async () => {
    lab.control('stop', 'slurmctld');
    const next = manifest([ada, bob]);
    const report = await beta.apply(next);
    assert.equal(report.manifestGeneration, next.generation);
    assert.deepEqual(
      [report.scheduler?.ready?.status, report.scheduler?.ready?.reason],
      ['False', 'ControllerDown'],
    );
    assert.equal(report.controlPlaneReady, false);
    lab.control('start', 'slurmctld');
    assert.equal((await beta.apply(next)).scheduler?.ready?.status, 'True');
    await converged([ada, bob]);
    assert.equal(await shell('head', 'runuser -u bob -- srun -Q id -un 2> /dev/null'), 'bob');
  });

  await t.test('accounting that was left half done is finished', async () => {
    await shell(
      'head',
      'sacctmgr -i delete user name=ada,bob account=physics; sacctmgr -i add user zoe account=physics cluster=lab',
    );
    const next = manifest([ada, bob, cy]);
    assert.equal((await beta.apply(next)).drifted, undefined);
    await converged([ada, bob, cy]);
  });

  await t.test('cut off at any step, here or on a host, it converges with the next pass', async () => {
    const others = Array.from({ length: 12 }, (_, index) => person(`p${index}`, 30_100 + index));
    for (const [index, afterMs] of [200, 600, 1_200, 1_900].entries()) {
      const people = index % 2 === 0 ? [ada, ...others] : [ada, bob, others[index] ?? ada];
      const cut = new AbortController();
      // The client is killed; what runs on a host is ended there.
      setTimeout(() => cut.abort(), afterMs);
      const ending = lab.on(
        index % 3 === 0 ? 'head' : 'a1',
        `sleep ${afterMs / 1000}; pkill -KILL -f "sh -s"; true`,
      );
      await beta.driver.apply(manifest(people), cut.signal).catch(() => {});
      await ending;
    }
    // What a script leaves that is killed while it makes homes.
    for (const host of hosts) await shell(host, 'mkdir -p "/home/.andromeda-99999-$(uname -n)/zoe"');
    const fresh = driverOf(lab);
    const next = manifest([ada, bob, ...others.slice(0, 3)]);
    assert.deepEqual([(await fresh.apply(next)).failure, (await fresh.observe()).drifted], [null, undefined]);
    await converged([ada, bob, ...others.slice(0, 3)]);
    for (const host of hosts) assert.equal(await shell(host, 'ls -A /home | grep andromeda'), '');
  });

  await t.test('two changes at once come one after the other on each host', async () => {
    const [one, two] = [manifest([ada, bob]), manifest([ada, cy])];
    const other = driverOf(lab);
    await Promise.all([beta.observe(), other.observe()]);
    await Promise.all([
      beta.driver.apply(one, AbortSignal.timeout(60_000)),
      other.driver.apply(two, AbortSignal.timeout(60_000)),
    ]);
    const report = await beta.apply(two);
    assert.deepEqual([report.failure, report.drifted], [null, undefined]);
    await converged([ada, cy]);
  });

  await t.test('200 people at once', async () => {
    const people = Array.from({ length: 200 }, (_, index) => person(`q${index}`, 31_000 + index));
    const next = manifest(people);
    // In one pass, whatever the machine is busy with.
    const report = await beta.apply(next);
    assert.deepEqual([report.failure, report.drifted], [null, undefined]);
    await converged(people);
    // What was there before the last edit: everyone came with one, for each costs many flushes of the disk.
    for (const host of hosts) assert.equal(await shell(host, 'grep -c ^q /etc/passwd-'), '0', host);
    assert.equal(await shell('head', 'runuser -u q199 -- srun -Q id -un 2> /dev/null'), 'q199');
  });
});
