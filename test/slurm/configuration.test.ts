/** Slurm configuration on a real cluster, with rollout: live: taken, refused before it does harm, put back. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { SlurmConfiguration } from '../../src/domain/slurm/configuration.ts';
import { eventually } from '../support/app.ts';
import { noSlurm, type SlurmLab, startSlurmLab } from './lab.ts';
import { type Cluster, driverOf, manifest, person } from './people.ts';

const ada = person('ada', 30_001);
const bob = person('bob', 30_002);

test('the configuration of a Slurm cluster', {
  skip: noSlurm,
}, async (t) => {
  let lab: SlurmLab;
  let live: Cluster;
  let original = '';
  let taken: SlurmConfiguration;
  const file = (name: string) => readFileSync(join(lab.directory, 'etc', name), 'utf8');
  const shell = async (host: string, command: string) => (await lab.on(host, command)).out;
  const pid = (daemon: string) => readFileSync(join(lab.directory, 'run', `${daemon}.pid`), 'utf8').trim();
  const submit = (options: string) =>
    shell('head', `runuser -u ada -- sh -c 'cd; sbatch --parsable ${options} --wrap "sleep 500"'`);
  const stateOf = async (job: string) =>
    (await shell('head', `squeue -h -j ${job} -o %T 2>/dev/null`)) || 'gone';
  before(async () => {
    lab = startSlurmLab();
    original = file('slurm.conf');
    taken = {
      slurmExtraConfig: 'SlurmdTimeout=60',
      prolog: { 'mark.sh': `#!/bin/sh\necho prolog $SLURM_JOB_ID >> ${lab.directory}/marks\n` },
      controllerEtc: { 'notes.txt': 'ours\n' },
    };
    live = driverOf(lab);
    await live.apply(manifest([ada]));
  });
  after(() => lab?.[Symbol.dispose]());

  await t.test(
    'live: partitions, lines, scripts and files are taken up, and running jobs go on',
    async () => {
      const job = await submit('-w a1');
      await eventually(
        () => stateOf(job),
        (is) => is === 'RUNNING',
      );
      const daemons = ['slurmctld', 'slurmd-a1', 'slurmd-a2', 'slurmdbd', 'sshd-head'];
      const before = daemons.map(pid);
      const report = await live.apply(
        manifest([ada], {
          ...taken,
          slurmPartitions: 'PartitionName=main Nodes=a1\nPartitionName=gpu Nodes=a1,a2 Default=YES State=UP',
          loginS6Packages: `echo login >> ${lab.directory}/marks`,
        }),
      );
      assert.deepEqual([report.failure, report.drifted], [null, undefined]);
      assert.match(
        file('slurm.conf'),
        /^#andromeda: PartitionName=main .*\n# BEGIN andromeda.*\nPartitionName=main /m,
      );
      assert.equal(file('notes.txt'), 'ours\n');
      assert.equal(
        await shell('head', "sinfo -h -o %R | sort -u; scontrol show config | grep -o '^SlurmdTimeout.*sec'"),
        'gpu\nmain\nSlurmdTimeout           = 60 sec',
      );
      assert.deepEqual(
        daemons.filter((daemon, index) => pid(daemon) !== before[index]),
        ['slurmctld', 'slurmd-a1', 'slurmd-a2'],
      );
      assert.deepEqual(live.ended, []);
      assert.equal(await stateOf(job), 'RUNNING');
      const next = await shell('head', "runuser -u ada -- srun -Q sh -c 'echo $SLURM_JOB_ID'");
      assert.deepEqual(
        file('../marks').trim().split('\n'),
        ['login', `prolog ${next}`],
        "the site's prolog and ours run",
      );
      await shell('head', `scancel ${job}`);
    },
  );

  await t.test('live: what only the controller reads restarts no slurmd', async () => {
    const before = ['slurmctld', 'slurmd-a1', 'slurmd-a2'].map(pid);
    const report = await live.apply(
      manifest([ada], { ...taken, slurmPartitions: 'PartitionName=other Nodes=a1,a2 Default=YES' }),
    );
    assert.equal(report.failure, null);
    const now = ['slurmctld', 'slurmd-a1', 'slurmd-a2'].map(pid);
    assert.deepEqual(
      now.map((one, index) => one === before[index]),
      [false, true, true],
    );
    assert.equal(await shell('head', 'sinfo -h -o %R'), 'other');
  });

  for (const [what, configuration, reason] of [
    ['an unknown word', { slurmExtraConfig: 'Nonsense=1' }, /unrecognized key: Nonsense/],
    [
      'a partition of nodes that are not there',
      { slurmPartitions: 'PartitionName=x Nodes=zz9 Default=YES' },
      /zz9/,
    ],
    ['a gres.conf that cannot be read', { gresConf: 'Name=gpu Typ=h100' }, /unrecognized key: Typ/],
    [
      'a cgroup.conf that cannot be read',
      { cgroupExtraConfig: 'Constrain=maybe' },
      /unrecognized key: Constrain/,
    ],
    [
      "a file of the site's",
      { controllerEtc: { 'slurmdbd.conf': '' } },
      /slurmdbd\.conf is there already and is not ours/,
    ],
  ] as const) {
    await t.test(`${what} is refused before it does harm, and says so`, async () => {
      const files = ['slurm.conf', 'gres.conf', 'slurmdbd.conf'].map(file);
      const before = pid('slurmctld');
      const next = manifest([ada, bob], configuration);
      const report = await live.apply(next);
      const ready = report.scheduler?.ready;
      assert.deepEqual(
        [ready?.status, ready?.reason, ready?.observedGeneration],
        ['False', 'ConfigurationRejected', next.desiredGeneration],
      );
      assert.match(ready?.message ?? '', reason);
      assert.match(report.failure ?? '', reason);
      assert.equal(report.manifestGeneration, next.generation, 'people are there all the same');
      assert.ok(report.desiredGeneration < next.desiredGeneration);
      assert.deepEqual(['slurm.conf', 'gres.conf', 'slurmdbd.conf'].map(file), files);
      assert.equal(pid('slurmctld'), before);
    });
  }

  await t.test(
    'one that passes the trial and kills slurmctld is taken back, and not tried again',
    async () => {
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
    },
  );

  await t.test("back to none, the site's files are what they were", async () => {
    const report = await live.apply(manifest([ada]));
    assert.deepEqual([report.failure, report.scheduler?.ready?.status], [null, 'True']);
    assert.equal(file('slurm.conf'), original);
    assert.equal(await shell('head', 'sinfo -h -o %R'), 'main');
  });
});
