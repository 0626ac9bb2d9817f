/** Hosts of a real Slurm cluster that several servers look after, one after the other; and that two clusters have people on. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { noSlurm, startSlurmLab } from './lab.ts';
import { accountsOn, associations, driverOf, manifest, person } from './people.ts';

const ada = person('ada', 30_001);
const bob = person('bob', 30_002);
const cy = person('cy', 30_003);

test('hosts with several masters', { skip: noSlurm }, async (t) => {
  using lab = startSlurmLab({ nodes: 'a1' });
  const shell = async (host: string, command: string) => (await lab.on(host, command)).out;
  const restored = driverOf(lab, {}, { fence: 3_000 });

  await t.test('hosts take nothing late from a server that another took over from', async () => {
    const people = async () => [await accountsOn(lab, 'head'), await accountsOn(lab, 'a1')];
    const both = ['ada:30001', 'bob:30002'];
    const [before, next] = [manifest([ada]), manifest([ada, bob])];
    const [older, newer] = [driverOf(lab, {}, { fence: 1_000 }), driverOf(lab, {}, { fence: 2_000 })];
    await older.observe();
    assert.equal((await newer.apply(next)).failure, null);
    const late = await older.apply(manifest([ada]));
    assert.match(late.failure ?? '', /another server looks after this host by now; nothing was changed/);
    assert.equal(late.manifestGeneration, next.generation);
    // What the same server sent before something newer, and comes behind it.
    const lower = await newer.apply(before);
    assert.match(lower.failure ?? '', /this host has a newer list already; nothing was changed/);
    assert.equal(lower.manifestGeneration, next.generation);
    assert.deepEqual(await people(), [both, both]);
    // A database that was restored knows of no newer one, and its server has a higher token.
    const report = await restored.apply(before);
    assert.deepEqual([report.failure, report.manifestGeneration], [null, before.generation]);
  });

  await t.test('of two clusters one has the configuration, and both have their people', async () => {
    const other = driverOf(lab, {}, { id: 'a6d0a7f2-58f4-4a55-8d37-3c9b8a9d1e01' });
    const configuration = (count: number) => ({
      slurmExtraConfig: `MaxJobCount=${count}`,
      prolog: { 'own.sh': `#!/bin/sh\n# ${count}\n` },
    });
    const etc = `${lab.directory}/etc`;
    const assertInForce = async (count: number) => {
      const command = `grep -h ^MaxJobCount ${etc}/slurm.conf; tail -n 1 ${etc}/andromeda/prolog.d/50-own.sh`;
      assert.equal(await shell('a1', command), `MaxJobCount=${count}\n# ${count}`);
      const [here, there] = [await restored.observe(), await other.observe()];
      assert.deepEqual([here.drifted, there.drifted], [undefined, undefined], 'nothing is undone');
    };
    await restored.apply(manifest([ada], configuration(5001)));
    // Of the same name as a person of the one, and never here.
    const namesake = person('ada', 40_001, { loginState: 'waiting_for_key' });
    assert.equal((await other.apply(manifest([cy, namesake]))).failure, null);
    assert.deepEqual(await associations(lab), ['ada', 'cy']);
    await assertInForce(5001);
    const next = manifest([cy, namesake], configuration(5002));
    // A node that was made anew says nothing yet of whose configuration it has.
    await shell('a1', `cp -a ${etc} /run/etc && rm /run/etc/andromeda/owner && mount --bind /run/etc ${etc}`);
    const refused = await other.apply(next);
    const owner = await shell('a1', `cat ${etc}/andromeda/owner; umount -l ${etc}`);
    assert.match(owner, /No such file/, 'what is refused on the controller takes over no node');
    assert.match(
      refused.failure ?? '',
      /another cluster of Andromeda has the configuration.*andromeda\/owner names it/,
    );
    assert.equal(refused.scheduler?.ready?.reason, 'ConfigurationRejected');
    assert.equal(refused.manifestGeneration, next.generation, 'people are there all the same');
    await assertInForce(5001);
    const jobs = ['ada', 'cy'].map((name) => shell('head', `runuser -u ${name} -- srun -Q id -un`));
    assert.deepEqual(await Promise.all(jobs), ['ada', 'cy']);
    // Cleared by the one, it is the other's.
    await restored.apply(manifest([ada]));
    assert.equal((await other.observe()).drifted, true);
    assert.equal((await other.apply(next)).failure, null);
    await assertInForce(5002);
    await restored.driver.release(AbortSignal.timeout(90_000));
    assert.equal((await other.observe()).drifted, undefined);
    assert.deepEqual([await accountsOn(lab, 'a1'), await associations(lab)], [['cy:30003'], ['cy']]);
  });
});
