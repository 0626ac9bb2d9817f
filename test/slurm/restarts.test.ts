/** What restarts on a real cluster with rollout: restart, and what goes on. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { eventually } from '../support/app.ts';
import { noSlurm, type SlurmLab, startSlurmLab } from './lab.ts';
import { type Cluster, driverOf, manifest, person, state } from './people.ts';

const ada = person('ada', 30_001);
const bob = person('bob', 30_002);

test('the restarts of a Slurm cluster', {
  skip: noSlurm,
}, async (t) => {
  let lab: SlurmLab;
  let restarting: Cluster;
  const file = (name: string) => readFileSync(join(lab.directory, 'etc', name), 'utf8');
  const shell = async (host: string, command: string) => (await lab.on(host, command)).out;
  const pid = (daemon: string) => readFileSync(join(lab.directory, 'run', `${daemon}.pid`), 'utf8').trim();
  const submit = (options: string) =>
    shell('head', `runuser -u ada -- sh -c 'cd; sbatch --parsable ${options} --wrap "sleep 500"'`);
  const stateOf = async (job: string) =>
    (await shell('head', `squeue -h -j ${job} -o %T 2>/dev/null`)) || 'gone';
  before(async () => {
    lab = startSlurmLab();
    restarting = driverOf(lab, { rollout: 'restart' });
    await driverOf(lab).apply(manifest([ada]));
  });
  after(() => lab?.[Symbol.dispose]());

  await t.test(
    'restart: a new account restarts everything once, ends sessions first, and jobs on compute nodes end',
    async () => {
      const job = await submit('--no-requeue -w a2');
      await eventually(
        () => stateOf(job),
        (is) => is === 'RUNNING',
      );
      const daemons = ['sshd-head', 'slurmctld', 'slurmdbd', 'slurmd-a1', 'slurmd-a2'];
      const before = daemons.map(pid);
      const next = manifest([ada, bob]);
      const report = await restarting.apply(next);
      assert.deepEqual(
        [report.manifestGeneration, report.failure, report.drifted],
        [next.generation, null, undefined],
      );
      assert.deepEqual(
        daemons.filter((daemon, index) => pid(daemon) === before[index]),
        [],
        'all of them restarted',
      );
      assert.deepEqual(restarting.ended, [`127.0.0.1:${lab.port}`]);
      assert.equal(await stateOf(job), 'gone');
      await eventually(
        () => shell('head', 'sinfo -h -o %T'),
        (states) => states === 'idle',
      );
    },
  );

  await t.test('restart: another key, or another shell, restarts nothing', async () => {
    const daemons = ['sshd-head', 'slurmctld', 'slurmdbd', 'slurmd-a1'];
    const before = daemons.map(pid);
    const keys = { keySetGeneration: 2, keyFingerprints: ['SHA256:a', 'SHA256:b'] };
    await restarting.apply(
      manifest([
        { ...ada, ...keys },
        { ...bob, shell: '/bin/sh' },
      ]),
    );
    assert.deepEqual(daemons.map(pid), before);
    assert.equal(restarting.ended.length, 1);
  });

  await t.test(
    'restart: a configuration restarts login nodes, the controller and slurmd, and jobs go on',
    async () => {
      const job = await submit('-w a2');
      await eventually(
        () => stateOf(job),
        (is) => is === 'RUNNING',
      );
      const daemons = ['sshd-head', 'slurmctld', 'slurmdbd', 'slurmd-a1', 'slurmd-a2'];
      const before = daemons.map(pid);
      const report = await restarting.apply(manifest([ada, bob], { slurmExtraConfig: 'SlurmdTimeout=70' }));
      assert.deepEqual([report.failure, report.drifted], [null, undefined]);
      assert.deepEqual(
        daemons.filter((daemon, index) => pid(daemon) !== before[index]),
        ['sshd-head', 'slurmctld', 'slurmd-a1', 'slurmd-a2'],
      );
      assert.equal(restarting.ended.length, 2);
      assert.equal(await stateOf(job), 'RUNNING');
      await shell('head', `scancel ${job}`);
    },
  );

  await t.test('restart: what compute nodes start with restarts them too, and runs there', async () => {
    const before = [pid('slurmd-a1'), pid('slurmd-a2'), pid('slurmdbd')];
    const report = await restarting.apply(
      manifest([ada, bob], {
        slurmExtraConfig: 'SlurmdTimeout=70',
        computeS6Packages: `hostname >> ${lab.directory}/started`,
      }),
    );
    assert.equal(report.failure, null);
    const now = [pid('slurmd-a1'), pid('slurmd-a2'), pid('slurmdbd')];
    assert.deepEqual(
      now.map((one, index) => one === before[index]),
      [false, false, true],
    );
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
    const next = manifest([ada], {
      slurmExtraConfig: 'SlurmdTimeout=70',
      computeS6Packages: `hostname >> ${lab.directory}/started`,
    });
    const report = await clumsy.apply(next);
    assert.match(report.failure ?? '', /restartAccounting ended with 5: no such unit/);
    assert.equal(report.manifestGeneration, next.generation, 'people do not wait for accounting');
    assert.equal(report.drifted, true);
    assert.match(await shell('head', `cat ${state}/owed`), /^accounting$/);
    assert.match(report.failure ?? '', /restartCompute of a1 ended with 6/);
    await clumsy.apply(next);
    assert.equal(readFileSync(tried, 'utf8'), 'a1\na1\n', 'no other node is lost to it');
    const before = [pid('slurmctld'), pid('slurmdbd')];
    const mended = await restarting.apply(next);
    assert.deepEqual([mended.failure, mended.drifted], [null, undefined]);
    assert.deepEqual([pid('slurmctld') === before[0], pid('slurmdbd') === before[1]], [true, false]);
  });

  await t.test(
    'a node that was down before condemns nothing, and its restart stays owed; nor does one that is powered down',
    async () => {
      const power =
        'SuspendProgram=/bin/true\nResumeProgram=/bin/true\nSuspendTime=3600\nSuspendTimeout=5\nResumeTimeout=30\n';
      await shell('head', `printf '${power}' >> ${lab.directory}/etc/slurm.conf`);
      lab.control('restart', 'slurmctld');
      await eventually(
        () => shell('head', 'scontrol ping'),
        (is) => is.includes('UP'),
      );
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
      assert.deepEqual(
        [report.desiredGeneration, report.scheduler?.ready?.status],
        [next.desiredGeneration, 'True'],
      );
      assert.match(file('slurm.conf'), /SlurmdTimeout=64/);
      assert.match(await shell('a1', `cat ${state}/owed`), /^slurmd a1$/m);
      assert.match(await shell('head', 'scontrol -o show node a2'), / State=\S*POWER\S*DOWN/);
    },
  );
});
