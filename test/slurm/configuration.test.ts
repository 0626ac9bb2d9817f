/**
 * Slurm configuration on a real cluster. With rollout: live: taken, refused before it does harm, put back; with rollout: restart:
 * what restarts, and what goes on.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { becomes } from '../support/app.ts';
import { isFull, noSlurm, startSlurmLab } from './lab.ts';
import { driverOf, manifest, person, state, statusOf } from './people.ts';

const ada = person('ada', 30_001);
const bob = person('bob', 30_002);
const cy = person('cy', 30_003);

test('the configuration of a Slurm cluster', { skip: noSlurm }, async (t) => {
  using lab = startSlurmLab();
  const { file, pid, runJob, shell, stateOf } = lab;
  /** Notes who runs now; which of these restarted since, it says. */
  const restartsOf = (...daemons: string[]) => {
    const before = daemons.map(pid);
    return () => daemons.filter((daemon, index) => pid(daemon) !== before[index]);
  };
  const all = ['sshd-head', 'slurmctld', 'slurmdbd', 'slurmd-a1', 'slurmd-a2'];
  const original = file('slurm.conf');
  const taken = {
    slurmExtraConfig: 'SlurmdTimeout=60',
    prolog: { 'mark.sh': `#!/bin/sh\necho prolog $SLURM_JOB_ID >> ${lab.directory}/marks\n` },
    controllerEtc: { 'notes.txt': 'ours\n' },
  };
  const live = driverOf(lab);
  await live.apply(manifest([ada]));

  await t.test('live: partitions, lines, scripts and files are taken up, and jobs go on', async () => {
    const job = await runJob('-w a1');
    const restarted = restartsOf(...all);
    await live.converge(
      manifest([ada], {
        ...taken,
        slurmPartitions: 'PartitionName=main Nodes=a1\nPartitionName=gpu Nodes=a1,a2 Default=YES State=UP',
        loginS6Packages: `echo login >> ${lab.directory}/marks`,
      }),
    );
    assert.match(
      file('slurm.conf'),
      /^#andromeda: PartitionName=main .*\n# BEGIN andromeda.*\nPartitionName=main /m,
    );
    assert.equal(file('notes.txt'), 'ours\n');
    assert.equal(
      await shell('head', "sinfo -h -o %R | sort -u; scontrol show config | grep -o '^SlurmdTimeout.*sec'"),
      'gpu\nmain\nSlurmdTimeout           = 60 sec',
    );
    assert.deepEqual(restarted(), ['slurmctld', 'slurmd-a1', 'slurmd-a2']);
    assert.deepEqual(live.ended, []);
    assert.equal(await stateOf(job), 'RUNNING');
    const next = await shell('head', "runuser -u ada -- srun -Q sh -c 'echo $SLURM_JOB_ID'");
    assert.equal(file('../marks'), `login\nprolog ${next}\n`, "the site's prolog and ours run");
    await shell('head', `scancel ${job}`);
  });

  await t.test('live: what only the controller reads restarts no slurmd', async () => {
    const restarted = restartsOf(...all);
    await live.converge(
      manifest([ada], { ...taken, slurmPartitions: 'PartitionName=other Nodes=a1,a2 Default=YES' }),
    );
    assert.deepEqual(restarted(), ['slurmctld']);
    assert.equal(await shell('head', 'sinfo -h -o %R'), 'other');
  });

  const refused = [
    [{ slurmExtraConfig: 'Nonsense=1' }, /unrecognized key: Nonsense/],
    [{ slurmPartitions: 'PartitionName=x Nodes=zz9 Default=YES' }, /zz9/],
    [{ gresConf: 'Name=gpu Typ=h100' }, /unrecognized key: Typ/],
    [{ cgroupExtraConfig: 'Constrain=maybe' }, /unrecognized key: Constrain/],
    [{ controllerEtc: { 'slurmdbd.conf': '' } }, /slurmdbd\.conf is there already and is not ours/],
  ] as const;

  for (const [configuration, reason] of isFull ? refused : refused.slice(0, 1))
    await t.test(`${JSON.stringify(configuration)} is refused before it does harm, and says so`, async () => {
      const files = ['slurm.conf', 'gres.conf', 'slurmdbd.conf'].map(file);
      const before = pid('slurmctld');
      const next = manifest([ada, bob], configuration);
      const report = await live.apply(next);
      const ready = report.scheduler?.ready;
      assert.equal(statusOf(report), 'False ConfigurationRejected');
      assert.equal(ready?.observedGeneration, next.desiredGeneration);
      assert.match(ready?.message ?? '', reason);
      assert.match(report.failure ?? '', reason);
      assert.equal(report.manifestGeneration, next.generation, 'people are there all the same');
      assert.ok(report.desiredGeneration < next.desiredGeneration);
      assert.deepEqual(['slurm.conf', 'gres.conf', 'slurmdbd.conf'].map(file), files);
      assert.equal(pid('slurmctld'), before);
    });

  await t.test('one that passes the trial and kills slurmctld is taken back for good', async () => {
    // A prolog of the controller's own that is not there passes a trial, as what is not known yet would.
    const kill = `[ -f ${lab.directory}/etc/poison ] && exit 1`;
    const command = `sh -c '${kill}; ${lab.restartCommand('slurmctld')}'`;
    const commands = { ...lab.settings().commands, restartController: command };
    const wary = driverOf(lab, { commands });
    const next = manifest([ada], {
      slurmExtraConfig: 'NodeName=b2 NodeAddr=127.0.0.9 CPUs=2 State=FUTURE',
      controllerEtc: { poison: 'x' },
    });
    const before = file('slurm.conf');
    const report = await wary.apply(next);
    assert.match(report.scheduler?.ready?.message ?? '', /the last good one was put back/);
    assert.equal(report.scheduler?.ready?.reason, 'ConfigurationRejected');
    assert.equal(file('slurm.conf'), before);
    assert.match(
      await shell('head', `scontrol ping; ls ${lab.directory}/etc/poison`),
      /UP[\s\S]*No such file/,
    );
    const running = pid('slurmctld');
    await wary.apply(next);
    assert.equal(pid('slurmctld'), running);
  });

  await t.test("back to none, the site's files are what they were", async () => {
    assert.equal((await live.converge(manifest([ada]))).scheduler?.ready?.status, 'True');
    assert.equal(file('slurm.conf'), original);
    assert.equal(await shell('head', 'sinfo -h -o %R'), 'main');
  });

  const restarting = driverOf(lab, { rollout: 'restart' });

  await t.test('restart: a new account restarts everything once, and ends sessions and jobs', async () => {
    const job = await runJob('--no-requeue -w a2');
    const restarted = restartsOf(...all);
    const next = manifest([ada, cy]);
    assert.equal((await restarting.converge(next)).manifestGeneration, next.generation);
    assert.deepEqual(restarted(), all);
    assert.deepEqual(restarting.ended, [`127.0.0.1:${lab.port}`]);
    assert.equal(await stateOf(job), 'gone');
    await becomes(() => shell('head', 'sinfo -h -o %T'), 'idle');
  });

  if (!isFull) return;

  await t.test('restart: another key, or another shell, restarts nothing', async () => {
    const restarted = restartsOf(...all);
    const other = { ...ada, keySetGeneration: 2, keyFingerprints: ['SHA256:a', 'SHA256:b'] };
    await restarting.apply(manifest([other, { ...cy, shell: '/bin/sh' }]));
    assert.deepEqual(restarted(), []);
    assert.equal(restarting.ended.length, 1);
  });

  await t.test('restart: a configuration restarts all but accounting, and jobs go on', async () => {
    const job = await runJob('-w a2');
    const restarted = restartsOf(...all);
    await restarting.converge(manifest([ada, cy], { slurmExtraConfig: 'SlurmdTimeout=70' }));
    assert.deepEqual(restarted(), all.toSpliced(2, 1));
    assert.equal(restarting.ended.length, 2);
    assert.equal(await stateOf(job), 'RUNNING');
    await shell('head', `scancel ${job}`);
  });

  const started = {
    slurmExtraConfig: 'SlurmdTimeout=70',
    computeS6Packages: `hostname >> ${lab.directory}/started`,
  };

  await t.test('restart: what compute nodes start with restarts them too, and runs there', async () => {
    const restarted = restartsOf('slurmd-a1', 'slurmd-a2', 'slurmdbd');
    await restarting.converge(manifest([ada, cy], started));
    assert.deepEqual(restarted(), ['slurmd-a1', 'slurmd-a2']);
    assert.equal(file('../started'), 'a1\na2\n');
  });

  await t.test('a restart that fails is said in words and tried again', async () => {
    const tried = join(lab.directory, 'tried');
    const commands = {
      ...lab.settings().commands,
      restartAccounting: 'echo no such unit >&2; exit 5',
      restartCompute: `echo {name} >> ${tried}; exit 6`,
    };
    const clumsy = driverOf(lab, { rollout: 'restart', commands });
    const next = manifest([ada], started);
    const report = await clumsy.apply(next);
    assert.match(report.failure ?? '', /restartAccounting ended with 5: no such unit/);
    assert.equal(report.manifestGeneration, next.generation, 'people do not wait for accounting');
    assert.equal(report.drifted, true);
    assert.match(await shell('head', `cat ${state}/owed`), /^accounting$/);
    assert.match(report.failure ?? '', /restartCompute of a1 ended with 6/);
    await clumsy.apply(next);
    assert.equal(readFileSync(tried, 'utf8'), 'a1\na1\n', 'no other node is lost to it');
    const restarted = restartsOf('slurmctld', 'slurmdbd');
    await restarting.converge(next);
    assert.deepEqual(restarted(), ['slurmdbd']);
  });

  await t.test('a node that was down before, or is powered down, condemns nothing', async () => {
    const power =
      'SuspendProgram=/bin/true\nResumeProgram=/bin/true\nSuspendTime=3600\nSuspendTimeout=5\nResumeTimeout=30\n';
    await shell('head', `printf '${power}' >> ${lab.directory}/etc/slurm.conf`);
    lab.control('restart', 'slurmctld');
    lab.control('stop', 'slurmd-a1');
    await shell('head', 'scontrol update nodename=a1 state=down reason=dead');
    const { restartCompute } = lab.settings().commands ?? {};
    const powerDown = 'scontrol update nodename=a2 state=power_down';
    const command = `[ {name} != a1 ] || { ${powerDown}; exit 7; }; ${restartCompute}`;
    const dead = driverOf(lab, { commands: { ...lab.settings().commands, restartCompute: command } });
    const next = manifest([ada], {
      slurmExtraConfig: 'SlurmdTimeout=64',
      gresConf: `NodeName=a2 Name=gpu Type=h100 File=${lab.directory}/dev/gpu[0-7]`,
    });
    const report = await dead.apply(next);
    assert.deepEqual([report.desiredGeneration, statusOf(report)], [next.desiredGeneration, 'True Ready']);
    assert.match(file('slurm.conf'), /SlurmdTimeout=64/);
    assert.match(await shell('a1', `cat ${state}/owed`), /^slurmd a1$/m);
    assert.match(await shell('head', 'scontrol -o show node a2'), / State=\S*POWER\S*DOWN/);
  });
});
