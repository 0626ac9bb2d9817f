/** The driver on a real Slurm cluster: people come and go, with rollout: live. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../support/app.ts';
import { noSlurm, startSlurmLab } from './lab.ts';
import { accountsOn, associations, driverOf, lastLines, manifest, person, state } from './people.ts';

const hosts = ['head', 'a1', 'a2'];
const ada = person('ada', 30_001);
const bob = person('bob', 30_002);
const eve = person('eve', 30_003, { loginState: 'waiting_for_key', keyFingerprints: [] });

test('people on a Slurm cluster', { skip: noSlurm }, async (t) => {
  using lab = startSlurmLab();
  const { shell } = lab;
  const beta = driverOf(lab);

  await t.test('those with a key have an account on every host, a home and an association', async () => {
    const report = await beta.apply(manifest([ada, bob, eve]));
    assert.equal(report.failure, null);
    assert.equal(report.drifted, undefined);
    for (const host of hosts) {
      assert.deepEqual(await accountsOn(lab, host), ['ada:30001', 'bob:30002'], host);
      assert.equal(await shell(host, 'stat -c %U:%G:%a:%F /home/ada'), 'ada:ada:700:directory', host);
      assert.equal(await shell(host, 'awk -F: \'$1 == "ada" { print $2 }\' /etc/shadow'), '*', 'no password');
    }
    assert.deepEqual(await associations(lab), ['ada', 'bob']);
    assert.equal(await shell('head', 'runuser -u ada -- srun -Q hostname'), 'a1');
  });

  await t.test('applying it again changes nothing, and costs one round trip a host', async () => {
    const again = manifest([ada, bob, eve]);
    await beta.observe();
    const trips = beta.driver.roundTrips;
    const earlier = await shell('head', 'stat -c %y /etc/passwd /etc/shadow');
    await beta.driver.apply(again, AbortSignal.timeout(30_000));
    assert.equal(beta.driver.roundTrips - trips, hosts.length);
    assert.equal(await shell('head', 'stat -c %y /etc/passwd /etc/shadow'), earlier);
    assert.deepEqual(beta.ended, [], 'rollout: live ends no session');
  });

  await t.test(
    'machines are the nodes as Slurm sees them, login nodes are up, and SUNKReady is True',
    async () => {
      const report = await beta.observe();
      assert.deepEqual(report.scheduler, { configured: 'sunk', ready: { status: 'True', reason: 'Ready' } });
      const machine = {
        ready: true,
        phase: 'idle',
        gpuModel: 'h100',
        gpuCount: 8,
        cpuCores: 64,
        memoryGib: 500,
        gpusInUse: 0,
      };
      assert.deepEqual(report.machines, [
        { name: 'a1', ...machine },
        { name: 'a2', ...machine },
      ]);
      assert.deepEqual(report.loginNodes, [
        {
          name: 'login1',
          host: '127.0.0.1',
          port: lab.port,
          hostKey: lab.hostKey,
          up: true,
          missingShells: [],
        },
      ]);
      await shell('head', 'scontrol update nodename=a2 state=drain reason="bad fan, left [rear]"');
      const drained = (await beta.observe()).machines?.find(({ name }) => name === 'a2');
      assert.deepEqual(
        [drained?.ready, drained?.phase, drained?.reason, drained?.gpusInUse],
        [false, 'idle+drain', 'bad fan, left [rear]', 0],
      );
      const id = await shell(
        'head',
        'runuser -u ada -- sh -c \'cd; sbatch --parsable --gres=gpu:3 --wrap "sleep 500"\'',
      );
      // Jobs are asked for after nodes: one that starts in between shows on its node at the next look.
      const { machines } = await eventually(
        () => beta.observe(),
        ({ runningJobs = [], machines = [] }) =>
          runningJobs.some((one) => one.id === id) && machines.some(({ gpusInUse }) => gpusInUse !== 0),
      );
      assert.deepEqual(
        machines?.map(({ name, gpusInUse }) => [name, gpusInUse]),
        [
          ['a1', 3],
          ['a2', 0],
        ],
      );
      await shell('head', `scancel ${id}; scontrol update nodename=a2 state=resume`);
      await eventually(
        () => beta.observe(),
        (now) => now.machines?.every(({ gpusInUse, ready }) => gpusInUse === 0 && ready) === true,
      );
    },
  );

  await t.test(
    'a person who left is locked, with their processes and jobs ended and their files kept',
    async () => {
      await shell(
        'head',
        'runuser -u bob -- sh -c \'echo mine > ~/file; nohup sleep 500 > /dev/null 2>&1 & cd; sbatch --wrap "sleep 500"\'',
      );
      await shell('a1', "runuser -u bob -- sh -c 'setsid sleep 501 > /dev/null 2>&1 &'");
      // One that has ended, and whose parent never asks how, stays in the list of processes.
      await shell(
        'a1',
        "setsid sh -c 'setpriv --reuid 30002 --clear-groups true & exec sleep 503' > /dev/null 2>&1 &",
      );
      const { runningJobs = [] } = await eventually(
        () => beta.observe(),
        (report) => report.runningJobs?.length === 1,
      );
      assert.deepEqual(
        runningJobs.map(({ user, machines }) => [user, machines]),
        [['bob', ['a1']]],
      );
      const report = await beta.apply(manifest([ada]));
      assert.equal(report.failure, null);
      assert.equal(report.drifted, undefined);
      assert.deepEqual(report.runningJobs, []);
      for (const host of hosts) {
        assert.equal(await shell(host, "ps -u 30002 -o stat= | grep -v '^Z'"), '', `no process on ${host}`);
        assert.equal(
          await shell(host, 'awk -F: \'$1 == "bob" { print $8 }\' /etc/shadow'),
          '1',
          `locked on ${host}`,
        );
      }
      assert.equal(await shell('head', 'cat /home/bob/file'), 'mine');
      assert.deepEqual(await associations(lab), ['ada']);
      assert.match(await shell('head', 'runuser -u bob -- sbatch --wrap true'), /Invalid account/);
    },
  );

  await t.test('a person removed and added again has their number, files and association', async () => {
    await beta.apply(manifest([ada, bob]));
    assert.equal(await shell('head', 'id -u bob; cat /home/bob/file'), '30002\nmine');
    assert.equal(await shell('head', 'runuser -u bob -- srun -Q id -un'), 'bob');
  });

  await t.test(
    'a person without a key cannot submit, and keeps their share, limits and QoS for the next key',
    async () => {
      const fields = 'fairshare,maxjobs,maxsubmit,qos,grpsubmit,grpjobs';
      const set = () =>
        shell(
          'head',
          `sacctmgr -nP show assoc user=bob account=physics format=${fields}; sacctmgr -nP show assoc user=eve`,
        );
      await shell(
        'head',
        `sacctmgr -i add qos fast grpsubmit=9; sacctmgr -i modify user bob set fairshare=7 maxjobs=3 maxsubmit=5 qos=fast,normal`,
      );
      const before = await set();
      assert.equal(before, '7|3|5|fast,normal||');
      await shell('head', `runuser -u bob -- sh -c 'cd; sbatch --wrap "sleep 500"; sbatch -H --wrap true'`);
      const waiting = { ...bob, loginState: 'waiting_for_key' as const, keyFingerprints: [] };
      const without = await beta.apply(manifest([ada, waiting, eve]));
      assert.deepEqual([without.failure, without.drifted], [null, undefined]);
      assert.equal(await shell('head', 'squeue -h -o %u -t pending,running'), '');
      assert.equal(await set(), '7|3|5|fast,normal|0|0');
      assert.match(
        await shell('head', 'runuser -u bob -- sh -c "cd; sbatch --wrap true"'),
        /AssocGrpSubmitJobsLimit/,
      );
      // The limit of a QOS holds in place of the association's: a job is taken, and does not start.
      await shell('head', `runuser -u bob -- sh -c 'cd; sbatch --qos=fast --wrap "sleep 500"'`);
      await eventually(
        () => shell('head', 'squeue -h -o "%u %r"'),
        (job) => job === 'bob AssocGrpJobsLimit',
      );
      // Opened by hand, it is closed again, and what was submitted is cancelled.
      await shell('head', 'sacctmgr -i modify user bob set grpsubmit=-1');
      assert.equal((await beta.observe()).drifted, true);
      assert.equal((await beta.apply(manifest([ada, waiting, eve]))).drifted, undefined);
      assert.equal(`${await set()} ${await shell('head', 'squeue -h -o %u')}`, '7|3|5|fast,normal|0|0 ');
      const back = await beta.apply(manifest([ada, bob, eve]));
      assert.deepEqual([back.failure, back.drifted], [null, undefined]);
      assert.equal(await set(), before);
      assert.equal(await shell('head', 'runuser -u bob -- srun -Q id -un'), 'bob');
    },
  );

  await t.test('another shell is set; one that a host lacks is /bin/bash there', async () => {
    await shell('a2', 'ln -s /bin/bash /etc/zsh-here');
    await beta.apply(manifest([{ ...ada, shell: '/etc/zsh-here' }, bob]));
    const shellOf = (host: string) => shell(host, 'getent passwd ada | cut -d: -f7');
    assert.deepEqual([await shellOf('head'), await shellOf('a2')], ['/bin/bash', '/etc/zsh-here']);
  });

  await t.test(
    'an account, a number, a group or a home that is not ours is reported and never taken over',
    async () => {
      await shell(
        'head',
        'useradd -u 1500 -M cleo; groupadd -g 31005 stranger; mkdir /home/gus; chown 1500 /home/gus',
      );
      await shell('a1', 'useradd -u 31004 -M other');
      const people = ['cleo:31003', 'dan:31004', 'fay:31005', 'gus:31006', 'hal:31007'].map((one) => {
        const [name = '', uid] = one.split(':');
        return person(name, Number(uid));
      });
      const next = manifest([ada, bob, ...people]);
      const report = await beta.apply(next);
      assert.equal(report.manifestGeneration, next.generation, 'the others converge');
      assert.match(report.failure ?? '', /the account cleo \(uid 1500\) is there already and is not ours/);
      assert.match(report.failure ?? '', /0x7f0000a1:\d+: the uid 31004 of dan belongs to the account other/);
      assert.match(report.failure ?? '', /gid 31005 of fay belongs to the group stranger/);
      assert.match(report.failure ?? '', /\/home\/gus belongs to the uid 1500/);
      assert.deepEqual(
        report.accounts.map(({ userId, loginState }) => [userId, loginState]),
        [
          ['user_31003', 'waiting_for_key'],
          ['user_31005', 'waiting_for_key'],
          ['user_31006', 'waiting_for_key'],
        ],
      );
      assert.equal(await shell('head', 'id -u cleo; stat -c %u /home/gus'), '1500\n1500');
      assert.equal(await shell('head', 'runuser -u hal -- srun -Q id -un'), 'hal');
      // Gone by hand, it is taken up without another change.
      await shell('head', 'userdel cleo; groupdel stranger; rmdir /home/gus');
      await shell('a1', 'userdel other');
      assert.equal((await beta.observe()).drifted, true);
      const mended = await beta.apply(next);
      assert.equal(mended.failure, null);
      assert.deepEqual(mended.accounts, []);
      assert.equal(await shell('head', 'id -u cleo'), '31003');
      await beta.apply(manifest([ada, bob]));
    },
  );

  await t.test('what drifted is found and repaired', async () => {
    const etc = `${lab.directory}/etc`;
    const files = { prolog: { 'a.sh': '#!/bin/sh\nexit 0\n' }, controllerEtc: { 'notes.txt': 'ours\n' } };
    const next = manifest([ada, bob], files);
    await beta.apply(next);
    await shell(
      'head',
      `echo >> ${etc}/notes.txt; gpasswd -a bob sudo; cp -p ${etc}/prolog.d/00-none ${etc}/andromeda/prolog.d/99-site`,
    );
    await shell(
      'a1',
      `echo 'exit 1' >> ${etc}/andromeda/prolog.d/50-a.sh; chmod 644 ${etc}/andromeda/epilog.d/00-andromeda`,
    );
    await shell('a1', 'usermod -d /tmp bob; chmod 777 /home/bob');
    await shell('a2', "usermod -p '$6$a$b' bob");
    assert.equal((await beta.observe()).drifted, true);
    const drifted = lastLines.filter((line) => line.includes('slurm.drifted')).at(-1) ?? '';
    for (const what of [
      /notes\.txt is not as it was put there/,
      /prolog\.d\/50-a\.sh is not as/,
      /epilog\.d\/00-andromeda is not as/,
      /a1:\d+: the account bob has another home/,
      /a1:\d+: \/home\/bob can be written to by others/,
      /a2:\d+: the account bob has a password/,
    ])
      assert.match(drifted, what);
    await shell('a1', 'userdel ada');
    await shell('a2', 'usermod -e "" hal');
    await shell(
      'head',
      'usermod -e 1 bob; rm -rf /home/ada; sacctmgr -i delete user name=ada account=physics',
    );
    assert.equal((await beta.observe()).drifted, true);
    const report = await beta.apply(next);
    assert.deepEqual([report.drifted, report.failure], [undefined, null]);
    assert.equal(await shell('a1', 'id -u ada'), '30001');
    assert.equal(await shell('a2', 'awk -F: \'$1 == "hal" { print $8 }\' /etc/shadow'), '1');
    assert.equal(await shell('head', 'runuser -u bob -- srun -Q id -un; stat -c %U /home/ada'), 'bob\nada');
    assert.equal(await shell('head', 'runuser -u ada -- srun -Q id -un'), 'ada');
    assert.equal(
      await shell('a1', 'getent passwd bob | cut -d: -f6; stat -c %a /home/bob'),
      '/home/bob\n700',
    );
    assert.equal(await shell('a2', 'awk -F: \'$1 == "bob" { print $2 }\' /etc/shadow'), '*');
    const ours = `cat notes.txt andromeda/prolog.d/50-a.sh; stat -c %a andromeda/epilog.d/00-andromeda`;
    assert.equal(await shell('head', `cd ${etc}; ${ours}`), 'ours\n#!/bin/sh\nexit 0\n755');
    // What the site may have meant stays, and is said once.
    const noticed = lastLines.filter((line) => line.includes('slurm.noticed'));
    assert.equal(noticed.length, 1);
    assert.match(
      noticed[0] ?? '',
      /bob is in the group sudo.*99-site in prolog\.d or epilog\.d of .* is not ours/,
    );
    assert.equal(
      await shell('head', `id -Gn bob; rm ${etc}/andromeda/prolog.d/99-site; gpasswd -d bob sudo`),
      'bob sudo\nRemoving user bob from group sudo',
    );
  });

  await t.test('release takes away everything of ours but homes', async () => {
    await beta.apply(
      manifest([ada, bob], { slurmExtraConfig: 'MaxJobCount=5000', prolog: { 'a.sh': '#!/bin/sh\n' } }),
    );
    await shell('head', 'runuser -u ada -- sh -c \'cd; sbatch --wrap "sleep 500"\'');
    await beta.driver.release(AbortSignal.timeout(60_000));
    for (const host of hosts) {
      assert.deepEqual(await accountsOn(lab, host), [], host);
      assert.equal(await shell(host, `ls -d /home/ada; ls ${state} 2>&1 | grep -c .`), '/home/ada\n1', host);
      assert.equal(await shell(host, 'getent group ada'), '');
    }
    assert.deepEqual(await associations(lab), []);
    assert.equal(await shell('head', 'sacctmgr -nP show account physics'), '');
    assert.equal(await shell('head', 'squeue -h -t running,pending'), '');
    assert.equal(
      await shell(
        'head',
        `grep -lE '^# BEGIN andromeda|^#andromeda' ${lab.directory}/etc/*.conf; ls ${lab.directory}/etc | grep andromeda`,
      ),
      '',
    );
    assert.match(await shell('head', 'scontrol ping'), /UP/);
    await beta.driver.release(AbortSignal.timeout(60_000));
  });
});
