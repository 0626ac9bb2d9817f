/**
 * Fair share, QoS and limits in a real slurmdbd: those of the lab file, and those that were set by hand. And hosts that several
 * servers look after, one after the other; and that two clusters have people on.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SlurmAccounting } from '../../src/domain/slurm/accounting.ts';
import { eventually } from '../support/app.ts';
import { isFull, noSlurm, startSlurmLab } from './lab.ts';
import { accountsOn, associations, driverOf, inTime, manifest, person, state } from './people.ts';

const ada = person('ada', 30_001, { isAdmin: true });
const bob = person('bob', 30_002);
const cy = person('cy', 30_003);

test('accounting of people, and hosts with several masters', { skip: noSlurm }, async (t) => {
  using lab = startSlurmLab({ NODES: 'a1' });
  const shell = async (command: string) => {
    const { status, out } = await lab.on('head', command);
    assert.equal(status, 0, `${command}: ${out}`);
    return out;
  };
  /** What an association has of its own, one a line. */
  const own = async (account = 'physics') => {
    const format = 'format=user,fairshare,maxjobs,grptres,defaultqos,qos';
    return (await shell(`sacctmgr -nP show assoc WOPLimits account=${account} ${format}`)).split('\n').sort();
  };
  const open = (accounting: SlurmAccounting) =>
    driverOf(lab, { accounting: { parent: 'science', ...accounting } });
  const people = [ada, bob];
  const asked = {
    ...{ fairshare: 40, qos: ['normal', 'low'], defaultQos: 'normal', maxJobs: 20 },
    ...{ coordinators: 'admins' as const, roles: { admin: { maxJobs: 100 } } },
  };

  await t.test('the account, its administrators and its coordinators get what the file has', async () => {
    await shell('sacctmgr -i add qos high,low; sacctmgr -i add account science; true');
    const beta = open({ ...asked, grpTres: { gpu: 16, cpu: 64, mem: 2048000 } });
    const report = await beta.converge(manifest(people));
    assert.deepEqual(await own(), [
      'ada|1|100|||',
      'bob|1||||',
      '|40|20|cpu=64,gres/gpu=16,mem=2000G|normal|low,normal',
    ]);
    assert.equal(await shell("sacctmgr -nP show assoc account=physics user='' format=parentname"), 'science');
    assert.equal(await shell('sacctmgr -nP show account withcoord physics format=coord'), 'ada');
    assert.deepEqual(report.limits, [
      { name: 'Fairshare', value: '40' },
      { name: 'MaxJobs', value: '20' },
      { name: 'GrpTRES', value: 'cpu=64,gres/gpu=16,mem=2000G' },
      { name: 'DefaultQOS', value: 'normal' },
      { name: 'QOS', value: 'low,normal' },
      { user: 'ada', name: 'MaxJobs', value: '100' },
    ]);
    // An administrator who never had a key has no association, and holds up none of the others.
    const dan = person('dan', 30_004, { isAdmin: true, loginState: 'waiting_for_key', keyFingerprints: [] });
    await beta.converge(manifest([...people, dan]));
    // Slurm enforces it.
    await beta.apply(manifest(people));
    assert.match(await shell('runuser -u ada -- srun -Q --gres=gpu:1 hostname'), /^a[12]$/);
  });

  await t.test('a value set by hand stays, and is shown with what the file has', async () => {
    await shell('sacctmgr -i modify account physics set Fairshare=77');
    await shell('sacctmgr -i modify user bob set MaxJobs=3');
    const beta = open({ ...asked, grpTres: { gpu: 8 } });
    assert.equal((await beta.observe()).drifted, true, 'the file has other limits');
    const report = await beta.converge(manifest(people));
    assert.deepEqual(await own(), ['ada|1|100|||', 'bob|1|3|||', '|77|20|gres/gpu=8|normal|low,normal']);
    assert.deepEqual(report.limits?.[0], { name: 'Fairshare', value: '77', wanted: '40' });
    // Through a pause and back, with another key.
    const paused = person('bob', 30_002, { loginState: 'waiting_for_key', keyFingerprints: [] });
    await beta.apply(manifest([ada, paused]));
    await beta.apply(manifest([ada, bob]));
    assert.ok((await own()).includes('bob|1|3|||'));
  });

  await t.test('who is no administrator any more has the account’s; what the file lacks goes', async () => {
    const { maxJobs, coordinators, roles } = asked;
    const { isAdmin: _, ...former } = ada;
    const next = manifest([former, { ...bob, isAdmin: true }]);
    const report = await open({ maxJobs, coordinators, roles }).converge(next);
    assert.deepEqual(await own(), ['ada|1||||', 'bob|1|3|||', '|77|20|||']);
    const ofBob = report.limits?.find(({ user }) => user === 'bob');
    assert.deepEqual(ofBob, { user: 'bob', name: 'MaxJobs', value: '3', wanted: '100' });
    assert.equal(await shell('sacctmgr -nP show account withcoord physics format=coord'), 'bob');
  });

  const restored = driverOf(lab, {}, { fence: 3_000 });

  await t.test('hosts take nothing late from a server that another took over from', async () => {
    const people = async () => [await accountsOn(lab, 'head'), await accountsOn(lab, 'a1')];
    const both = ['ada:30001', 'bob:30002'];
    const [before, next] = [manifest([ada]), manifest([ada, bob])];
    const [older, newer] = [driverOf(lab, {}, { fence: 1_000 }), driverOf(lab, {}, { fence: 2_000 })];
    await older.observe();
    await newer.converge(next);
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

  if (!isFull) return;

  await t.test('values that were set right before it was cut off are still its own', async () => {
    await open({ maxJobs: 30 }).apply(manifest(people));
    // As it is where the notes of what was set are lost, but not those of what was to be set.
    await shell(
      `cd ${state}; printf 'set\\t.\\tMaxJobs\\t30\\t30\\n' > limits-setting; : > limits; rm limits-digest`,
    );
    await open({ maxJobs: 30 }).apply(manifest(people));
    await open({ maxJobs: 31 }).converge(manifest(people));
    assert.equal((await own()).at(-1), '|77|31|||');
  });

  await t.test('a QoS that is not there is said, and is tried again', async () => {
    const report = await open({ qos: ['none-such'] }).apply(manifest([ada, bob]));
    assert.match(report.failure ?? '', /Slurm does not take QOS=none-such/);
    assert.equal(report.drifted, true);
  });

  await t.test('people move to an account of the site’s, whose own people and values stay', async () => {
    await shell('useradd -M -u 1999 zoe; sacctmgr -i add account hpc Description=site Fairshare=5; true');
    await shell('sacctmgr -i add user zoe account=hpc');
    const eve = person('eve', 30_003);
    const paused = person('eve', 30_003, { loginState: 'waiting_for_key', keyFingerprints: [] });
    const before = open({});
    await before.converge(manifest([ada, bob, eve]));
    await before.converge(manifest([ada, bob, paused]));
    assert.equal((await own()).length, 4);
    const beta = driverOf(lab, { accounting: { account: 'hpc', fairshare: 9 } });
    const job = await lab.runJob('');
    const busy = await beta.apply(manifest([ada, bob, paused]));
    assert.match(busy.failure ?? '', /cannot leave the account physics yet: .*[Jj]ob/);
    await shell(`scancel ${job}; while squeue -h | grep -q .; do sleep 0.1; done`);
    // slurmctld tells slurmdbd of the end of a job with a delay.
    const report = await eventually(
      () => beta.apply(manifest([ada, bob, paused])),
      ({ failure }) => failure === null,
    );
    assert.equal(report.drifted, undefined);
    assert.deepEqual(await own('hpc'), ['ada|1||||', 'bob|1||||', 'eve|1||||', 'zoe|1||||', '|5||||']);
    assert.deepEqual(report.limits, [{ name: 'Fairshare', value: '5', wanted: '9' }]);
    assert.equal(await shell('sacctmgr -nP show account physics'), '');
    assert.match(await shell('runuser -u bob -- srun -Q hostname'), /^a[12]$/);
    await beta.apply(manifest([ada]));
    assert.deepEqual(await own('hpc'), ['ada|1||||', 'zoe|1||||', '|5||||']);
    await beta.driver.release(inTime());
    assert.deepEqual(await own('hpc'), ['zoe|1||||', '|5||||']);
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
      assert.equal(await lab.shell('a1', command), `MaxJobCount=${count}\n# ${count}`);
      const [here, there] = [await restored.observe(), await other.observe()];
      assert.deepEqual([here.drifted, there.drifted], [undefined, undefined], 'nothing is undone');
    };
    await restored.apply(manifest([ada], configuration(5001)));
    // Of the same name as a person of the one, and never here.
    const namesake = person('ada', 40_001, { loginState: 'waiting_for_key' });
    await other.converge(manifest([cy, namesake]));
    assert.deepEqual(await associations(lab), ['ada', 'cy']);
    await assertInForce(5001);
    const next = manifest([cy, namesake], configuration(5002));
    // A node that was made anew says nothing yet of whose configuration it has.
    const anew = `cp -a ${etc} /run/etc && rm /run/etc/andromeda/owner && mount --bind /run/etc ${etc}`;
    await lab.shell('a1', anew);
    const refused = await other.apply(next);
    const owner = await lab.shell('a1', `cat ${etc}/andromeda/owner; umount -l ${etc}`);
    assert.match(owner, /No such file/, 'what is refused on the controller takes over no node');
    const named = /another cluster of Andromeda has the configuration.*andromeda\/owner names it/;
    assert.match(refused.failure ?? '', named);
    assert.equal(refused.scheduler?.ready?.reason, 'ConfigurationRejected');
    assert.equal(refused.manifestGeneration, next.generation, 'people are there all the same');
    await assertInForce(5001);
    const jobs = ['ada', 'cy'].map((name) => lab.shell('head', `runuser -u ${name} -- srun -Q id -un`));
    assert.deepEqual(await Promise.all(jobs), ['ada', 'cy']);
    // Cleared by the one, it is the other's.
    await restored.apply(manifest([ada]));
    assert.equal((await other.observe()).drifted, true);
    await other.converge(next);
    await assertInForce(5002);
    await restored.driver.release(inTime());
    assert.equal((await other.observe()).drifted, undefined);
    assert.deepEqual([await accountsOn(lab, 'a1'), await associations(lab)], [['cy:30003'], ['cy']]);
  });
});
