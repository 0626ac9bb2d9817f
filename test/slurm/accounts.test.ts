/** The driver on a real Slurm cluster: people come and go, with rollout: live. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { becomes, eventually } from '../support/app.ts';
import { noSlurm, startSlurmLab } from './lab.ts';
import { accountsOn, associations, driverOf, inTime, lastLines, manifest, person, state } from './people.ts';

const hosts = ['head', 'a1', 'a2'];
const ada = person('ada', 30_001);
const bob = person('bob', 30_002);
const eve = person('eve', 30_003, { loginState: 'waiting_for_key', keyFingerprints: [] });

test('people on a Slurm cluster', { skip: noSlurm }, async (t) => {
  using lab = startSlurmLab();
  const { shell } = lab;
  const beta = driverOf(lab);

  await t.test('those with a key have an account on every host, a home and an association', async () => {
    await beta.converge(manifest([ada, bob, eve]));
    for (const host of hosts) {
      assert.deepEqual(await accountsOn(lab, host), ['ada:30001', 'bob:30002'], host);
      assert.equal(await shell(host, 'stat -c %U:%G:%a:%F /home/ada'), 'ada:ada:700:directory', host);
      assert.equal(await shell(host, 'awk -F: \'$1 == "ada" { print $2 }\' /etc/shadow'), '*', 'no password');
    }
    assert.deepEqual(await associations(lab), ['ada', 'bob']);
    assert.equal(await shell('head', 'runuser -u ada -- srun -Q hostname'), 'a1');
  });

  await t.test('applying it again changes nothing, and costs one trip a host and one more', async () => {
    const again = manifest([ada, bob, eve]);
    await beta.observe();
    const trips = beta.driver.roundTrips;
    const earlier = await shell('head', 'stat -c %y /etc/passwd /etc/shadow');
    await beta.driver.apply(again, inTime());
    assert.equal(beta.driver.roundTrips - trips, hosts.length);
    await beta.observe();
    assert.equal(beta.driver.roundTrips - trips, hosts.length + 1, 'each said at the end what it is like');
    await beta.observe();
    assert.equal(beta.driver.roundTrips - trips, 2 * hosts.length + 1);
    assert.equal(await shell('head', 'stat -c %y /etc/passwd /etc/shadow'), earlier);
    assert.deepEqual(beta.ended, [], 'rollout: live ends no session');
  });

  await t.test('machines are the nodes as Slurm sees them, and login nodes are up', async () => {
    const report = await beta.observe();
    assert.deepEqual(report.scheduler, { configured: 'sunk', ready: { status: 'True', reason: 'Ready' } });
    const hardware = { gpuModel: 'h100', gpuCount: 8, cpuCores: 64, memoryGib: 500 };
    const machine = { ready: true, phase: 'idle', gpusInUse: 0, ...hardware };
    assert.deepEqual(report.machines, [
      { name: 'a1', ...machine },
      { name: 'a2', ...machine },
    ]);
    const [login] = lab.settings().login;
    assert.deepEqual(report.loginNodes, [{ ...login, up: true, missingShells: [] }]);
    await shell('head', 'scontrol update nodename=a2 state=drain reason="bad fan, left [rear]"');
    const drained = (await beta.observe()).machines?.find(({ name }) => name === 'a2');
    const away = { ready: false, phase: 'idle+drain', reason: 'bad fan, left [rear]' };
    assert.deepEqual(drained, { name: 'a2', ...machine, ...away });
    const id = await lab.runJob('--gres=gpu:3');
    // Jobs are asked for after nodes: one that starts in between shows on its node at the next look.
    const { machines } = await eventually(
      () => beta.observe(),
      ({ runningJobs = [], machines = [] }) =>
        runningJobs.some((one) => one.id === id) && machines.some(({ gpusInUse }) => gpusInUse !== 0),
    );
    assert.equal(machines?.map(({ name, gpusInUse }) => `${name} ${gpusInUse}`).join(), 'a1 3,a2 0');
    await shell('head', `scancel ${id}; scontrol update nodename=a2 state=resume`);
    await becomes(
      async () =>
        (await beta.observe()).machines?.every(({ gpusInUse, ready }) => gpusInUse === 0 && ready) === true,
      true,
    );
  });

  await t.test('who left is locked, their processes and jobs end, and their files stay', async () => {
    await shell('head', "runuser -u bob -- sh -c 'echo mine > ~/file; nohup sleep 500 > /dev/null 2>&1 &'");
    await lab.runJob('', 'bob');
    await shell('a1', "runuser -u bob -- sh -c 'setsid sleep 501 > /dev/null 2>&1 &'");
    // One that has ended, and whose parent never asks how, stays in the list of processes.
    const zombie = 'setpriv --reuid 30002 --clear-groups true & exec sleep 503';
    await shell('a1', `setsid sh -c '${zombie}' > /dev/null 2>&1 &`);
    await becomes(() => shell('a1', "ps -u 30002 -o stat= | grep -c '^Z'"), '1');
    const [job] = (await beta.observe()).runningJobs ?? [];
    assert.deepEqual([job?.user, job?.machines], ['bob', ['a1']]);
    assert.deepEqual((await beta.converge(manifest([ada]))).runningJobs, []);
    for (const host of hosts) {
      assert.equal(await shell(host, "ps -u 30002 -o stat= | grep -v '^Z'"), '', `no process on ${host}`);
      const expires = await shell(host, 'awk -F: \'$1 == "bob" { print $8 }\' /etc/shadow');
      assert.equal(expires, '1', `locked on ${host}`);
    }
    assert.equal(await shell('head', 'cat /home/bob/file'), 'mine');
    assert.deepEqual(await associations(lab), ['ada']);
    assert.match(await shell('head', 'runuser -u bob -- sbatch --wrap true'), /Invalid account/);
  });

  await t.test('a person removed and added again has their number, files and association', async () => {
    await beta.apply(manifest([ada, bob]));
    assert.equal(await shell('head', 'id -u bob; cat /home/bob/file'), '30002\nmine');
    assert.equal(await shell('head', 'runuser -u bob -- srun -Q id -un'), 'bob');
  });

  await t.test('a person without a key cannot submit, and keeps share, limits and QoS', async () => {
    const fields = 'fairshare,maxjobs,maxsubmit,qos,grpsubmit,grpjobs';
    const show = 'sacctmgr -nP show assoc';
    const set = () => shell('head', `${show} user=bob account=physics format=${fields}; ${show} user=eve`);
    const values = 'fairshare=7 maxjobs=3 maxsubmit=5 qos=fast,normal';
    await shell('head', `sacctmgr -i add qos fast grpsubmit=9; sacctmgr -i modify user bob set ${values}`);
    const before = await set();
    assert.equal(before, '7|3|5|fast,normal||');
    await lab.runJob('', 'bob');
    await shell('head', `runuser -u bob -- sh -c 'cd; sbatch -H --wrap true'`);
    const waiting = { ...bob, loginState: 'waiting_for_key' as const, keyFingerprints: [] };
    await beta.converge(manifest([ada, waiting, eve]));
    assert.equal(await shell('head', 'squeue -h -o %u -t pending,running'), '');
    assert.equal(await set(), '7|3|5|fast,normal|0|0');
    const refused = await shell('head', 'runuser -u bob -- sh -c "cd; sbatch --wrap true"');
    assert.match(refused, /AssocGrpSubmitJobsLimit/);
    // The limit of a QOS holds in place of the association's: a job is taken, and does not start.
    await shell('head', `runuser -u bob -- sh -c 'cd; sbatch --qos=fast --wrap "sleep 500"'`);
    await becomes(() => shell('head', 'squeue -h -o "%u %r"'), 'bob AssocGrpJobsLimit');
    // Opened by hand, it is closed again, and what was submitted is cancelled.
    await shell('head', 'sacctmgr -i modify user bob set grpsubmit=-1');
    assert.equal((await beta.observe()).drifted, true);
    await beta.converge(manifest([ada, waiting, eve]));
    assert.equal(`${await set()} ${await shell('head', 'squeue -h -o %u')}`, '7|3|5|fast,normal|0|0 ');
    await beta.converge(manifest([ada, bob, eve]));
    assert.equal(await set(), before);
    assert.equal(await shell('head', 'runuser -u bob -- srun -Q id -un'), 'bob');
  });

  await t.test('another shell is set; one that a host lacks is /bin/bash there', async () => {
    await shell('a2', 'ln -s /bin/bash /etc/zsh-here');
    await beta.apply(manifest([{ ...ada, shell: '/etc/zsh-here' }, bob]));
    const shellOf = (host: string) => shell(host, 'getent passwd ada | cut -d: -f7');
    assert.deepEqual([await shellOf('head'), await shellOf('a2')], ['/bin/bash', '/etc/zsh-here']);
  });

  await t.test('an account, a number, a group or a home that is not ours is never taken over', async () => {
    await shell('head', 'useradd -u 1500 -M cleo; groupadd -g 31005 stranger; install -d -o 1500 /home/gus');
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
    const waiting = ['user_31003', 'user_31005', 'user_31006'];
    assert.deepEqual(
      report.accounts.map(({ userId, loginState }) => [userId, loginState]),
      waiting.map((userId) => [userId, 'waiting_for_key']),
    );
    assert.equal(await shell('head', 'id -u cleo; stat -c %u /home/gus'), '1500\n1500');
    assert.equal(await shell('head', 'runuser -u hal -- srun -Q id -un'), 'hal');
    // Gone by hand, it is taken up without another change.
    await shell('head', 'userdel cleo; groupdel stranger; rmdir /home/gus');
    await shell('a1', 'userdel other');
    assert.equal((await beta.observe()).drifted, true);
    assert.deepEqual((await beta.converge(next)).accounts, []);
    assert.equal(await shell('head', 'id -u cleo'), '31003');
    await beta.apply(manifest([ada, bob]));
  });

  await t.test('what drifted is found and repaired', async () => {
    const etc = `${lab.directory}/etc`;
    const files = { prolog: { 'a.sh': '#!/bin/sh\nexit 0\n' }, controllerEtc: { 'notes.txt': 'ours\n' } };
    const next = manifest([ada, bob], files);
    await beta.apply(next);
    await shell('head', `cd ${etc}; echo >> notes.txt; cp -p prolog.d/00-none andromeda/prolog.d/99-site`);
    const harm = "echo 'exit 1' >> prolog.d/50-a.sh; chmod 644 epilog.d/00-andromeda";
    await shell('a1', `cd ${etc}/andromeda; ${harm}; usermod -d /tmp bob; chmod 777 /home/bob`);
    await shell('head', 'gpasswd -a bob sudo');
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
    await shell('head', 'usermod -e 1 bob; rm -rf /home/ada; sacctmgr -i delete user ada account=physics');
    await shell('head', 'sacctmgr -i add user zoe account=physics cluster=lab');
    assert.equal((await beta.observe()).drifted, true);
    await beta.converge(next);
    assert.deepEqual(await associations(lab), ['ada', 'bob']);
    assert.equal(await shell('a1', 'id -u ada'), '30001');
    assert.equal(await shell('a2', 'awk -F: \'$1 == "hal" { print $8 }\' /etc/shadow'), '1');
    assert.equal(await shell('head', 'runuser -u bob -- srun -Q id -un; stat -c %U /home/ada'), 'bob\nada');
    assert.equal(await shell('head', 'runuser -u ada -- srun -Q id -un'), 'ada');
    const home = 'getent passwd bob | cut -d: -f6; stat -c %a /home/bob';
    assert.equal(await shell('a1', home), '/home/bob\n700');
    assert.equal(await shell('a2', 'awk -F: \'$1 == "bob" { print $2 }\' /etc/shadow'), '*');
    const ours = `cat notes.txt andromeda/prolog.d/50-a.sh; stat -c %a andromeda/epilog.d/00-andromeda`;
    assert.equal(await shell('head', `cd ${etc}; ${ours}`), 'ours\n#!/bin/sh\nexit 0\n755');
    // What the site may have meant stays, and is said once.
    const noticed = lastLines.filter((line) => line.includes('slurm.noticed'));
    assert.equal(noticed.length, 1);
    const words = /bob is in the group sudo.*99-site in prolog\.d or epilog\.d of .* is not ours/;
    assert.match(noticed[0] ?? '', words);
    const left = `rm ${etc}/andromeda/prolog.d/99-site && id -Gn bob; gpasswd -d bob sudo > /dev/null 2>&1`;
    assert.equal(await shell('head', left), 'bob sudo');
  });

  await t.test('release takes away everything of ours but homes', async () => {
    await beta.apply(
      manifest([ada, bob], { slurmExtraConfig: 'MaxJobCount=5000', prolog: { 'a.sh': '#!/bin/sh\n' } }),
    );
    await lab.runJob('');
    await beta.driver.release(inTime());
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
    await beta.driver.release(inTime());
  });
});
