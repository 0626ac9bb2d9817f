/**
 * People on a real Slurm cluster through the gateway, and operators through the API; Shared, live. Who runs what, as the service and
 * as Slurm says it; and people whose name or home another account has: ready means that the login works.
 */
import assert from 'node:assert/strict';
import { appendFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { listGpuDays } from '../../src/store/clusters/gpu-days.ts';
import { alpha, eventually } from '../support/app.ts';
import { keygen } from '../support/ssh-keys.ts';
import { sshPerson } from '../support/ssh-person.ts';
import { noSlurm, startSlurmLab } from './lab.ts';
import { associations } from './people.ts';
import { accessList, labOf, permit, startService } from './service.ts';

interface Job {
  id: string;
  name: string;
  user: string;
  mine: boolean;
  machines: string[];
  gpus: number;
  started_at?: string;
  ends_at?: string;
}

test('a real Slurm cluster, from end to end', { skip: noSlurm }, async (t) => {
  using lab = startSlurmLab({ homes: 'shared' });
  const { shell } = lab;
  await t.test('before another start: jobs that take GPU time', async () => {
    await using service = await startService(lab, { rollout: 'live' });
    using abe = await sshPerson(service, 'abe');
    const run = async (command: string) => {
      const { out, err, status: code } = await abe.ssh([abe.target, command]);
      assert.equal(code, 0, err);
      return out.trim();
    };
    await run('srun --gres=gpu:2 sleep 5');
    await run('srun -N2 --gres=gpu:1 sleep 3');
    await run('srun -n1 true');
    await run('sbatch --parsable --gres=gpu:3 --wrap "sleep 900"');
  });

  // A service that just started asks for the GPU time of today first.
  await using service = await startService(lab, { rollout: 'live' });
  const key = keygen('-t', 'ed25519');
  using abe = await sshPerson(service, 'abe', key);
  await t.test('start-up files are read as sshd reads them without a gateway', async () => {
    const files = ['.bash_profile', '.bashrc', '.zshenv', '.zprofile', '.zshrc', '.profile'];
    await shell('head', `cd /home/abe; for name in ${files.join(' ')}; do echo "echo $name" > $name; done`);
    await shell(
      'head',
      'install -d /home/abe/.config/fish; echo "echo config.fish" > /home/abe/.config/fish/config.fish',
    );
    appendFileSync(join(lab.directory, 'etc/gateway.pub'), `${key.publicKey}\n`);
    const through = [...abe.options];
    // Straight to the login node's sshd, as the same person with the same key.
    const change: Record<string, string> = { '-p': `${lab.port}`, '-l': 'abe' };
    const straight = through.map(
      (one, at) => change[through[at - 1] ?? ''] ?? one.replace(/^(Strict.*)=yes$/, '$1=no'),
    );
    const printed = async (options: string[], args: string[]) => {
      abe.options.splice(0, Infinity, ...options);
      // A terminal prints what is typed before the shell reads it, or not.
      return (await abe.ssh(args, args.length === 1 ? 'exit\n' : '')).out;
    };
    const prefer = async (path: string) => {
      abe.options.splice(0, Infinity, ...through);
      await service.write('/me/login-preferences', { as: 'abe', method: 'PUT', body: { shell: path } });
      await eventually(abe.access, ({ shell: confirmed }) => confirmed === path);
    };
    const shells = ['/usr/bin/dash', '/usr/bin/zsh', '/usr/bin/fish', '/bin/bash'];
    for (const path of shells.filter((one) => existsSync(one))) {
      await prefer(path);
      for (const args of [[abe.target, 'echo done'], ['-tt', abe.target, 'echo done'], [abe.target]]) {
        const out = await printed(through, args);
        assert.equal(out, await printed(straight, args), `${path} ${args.slice(1)}`);
        if (path === '/bin/bash') assert.equal(out.match(/\.bashrc|\.bash_profile/g)?.length, 1, out);
      }
    }
    await prefer('/usr/bin/no-such-shell');
    const { out, err } = await abe.ssh([abe.target, 'echo done']);
    assert.match(
      err,
      /your login shell \/usr\/bin\/no-such-shell is missing or not executable here, using \/bin\/bash/,
    );
    assert.match(out, /done\n$/);
    await prefer('/bin/bash');
    await shell('head', `cd /home/abe; rm -rf .config ${files.join(' ')}`);
  });

  await t.test('GPU-hours are those of sacct, of jobs that are over and of one that runs', async () => {
    const ask = async () =>
      (await service.platform(`/gpu-hours?businessOrgId=${abe.orgId}`, { as: 'ada' })).body.items[0];
    const found = await eventually(ask, (one) => one?.people?.length > 0);
    assert.equal(found.source, 'slurmdbd');
    const now = Math.floor(Date.now() / 1_000);
    const { out } = await lab.on(
      'head',
      'SLURM_TIME_FORMAT=%s sacct -aXnP -S now-1hour -o user,start,end,alloctres',
    );
    const seconds = out.split('\n').reduce((sum, line) => {
      const [, start, end, tres = ''] = line.split('|');
      const gpus = Number(/gres\/gpu=(\d+)/.exec(tres)?.[1] ?? 0);
      return sum + gpus * ((/^\d+$/.test(end ?? '') ? Number(end) : now) - Number(start));
    }, 0);
    assert.deepEqual(
      found.people.map(({ user }: { user: string }) => user),
      ['abe'],
    );
    // The one that runs went on since the answer.
    const days = await listGpuDays(service.app.store.read, alpha, '');
    const ours = days.reduce((sum, day) => sum + (day.seconds['abe'] ?? 0), 0);
    assert.ok(ours >= 16 && ours <= seconds + 20 && ours > seconds - 3 * 120, `${ours} of ${seconds}`);
    assert.equal(alpha, found.cluster_id);
    await shell('head', 'scancel -u abe');
  });

  const ready = async (condition: (ready: Record<string, unknown> | undefined) => boolean) =>
    (
      await eventually(
        async () =>
          (
            await service.platform(`/clusters/${alpha}/options?businessOrgId=${abe.orgId}`, { as: 'ada' })
          ).body,
        (options) => condition(options.scheduler?.ready),
      )
    ).scheduler.ready;

  await t.test(
    'a member with a key logs in to the real sshd, runs srun and submits with sbatch',
    async () => {
      const login = await abe.ssh([abe.target, 'id -un; hostname; pwd; srun -Q hostname']);
      assert.deepEqual([login.status, login.out, login.err], [0, 'abe\nhead\n/home/abe\na1\n', '']);
      const batch = await abe.ssh([abe.target, 'sbatch --wrap "hostname > out; id -un >> out"']);
      assert.match(batch.out, /Submitted batch job \d+/);
      await eventually(
        () => shell('head', 'cat /home/abe/out'),
        (text) => text === 'a1\nabe',
      );
      assert.equal(
        (await accessList(service, abe.orgId)).users.find(
          (one: { username: string }) => one.username === 'abe',
        ).allocation.uid >= 20_000,
        true,
      );
    },
  );

  await t.test('machines are listed', async () => {
    const { body } = await service.platform(`/clusters/${alpha}/machines?businessOrgId=${abe.orgId}`, {
      as: 'ada',
    });
    assert.deepEqual(
      body.items
        .map((one: { name: string; hardware: object; observed: { ready: boolean } }) => [
          one.name,
          one.hardware,
          one.observed.ready,
        ])
        .sort(),
      ['a1', 'a2'].map((name) => [
        name,
        { gpu_model: 'h100', gpu_count: 8, cpu_cores: 64, memory_gib: 500 },
        true,
      ]),
    );
  });

  await t.test("another's first key closes no session and ends no job", async (t) => {
    const open = abe.start([abe.target, 'echo in; read line; echo "$line"']);
    assert.equal(await open.said, 'in\n');
    const { body: eve } = await service.business('/me', { as: 'eve' });
    await permit(service, { orgId: abe.orgId, userId: eve.user.id }, ['clusters.ssh']);
    using person = await sshPerson(service, 'eve');
    assert.equal((await person.ssh([person.target, 'srun -Q id -un'])).out, 'eve\n');
    open.child.stdin?.end('still here\n');
    const ended = await open.ended;
    assert.deepEqual([ended.status, ended.out, ended.err], [0, 'in\nstill here\n', '']);

    await t.test('who is removed cannot log in or submit, and nothing of theirs runs on', async () => {
      const session = person.start([person.target, 'echo in; sleep 100']);
      await session.said;
      await person.ssh([person.target, 'sbatch --wrap "sleep 300"']);
      await permit(service, person, []);
      assert.equal((await session.ended).status, 255);
      const refused = await person.ssh([person.target, 'true']);
      assert.deepEqual([refused.status, /no SSH access/.test(refused.err)], [255, true]);
      await eventually(
        () => associations(lab),
        (names) => !names.includes('eve'),
      );
      assert.match(await shell('head', 'runuser -u eve -- sbatch --wrap true'), /Invalid account/);
      assert.equal(await shell('head', 'pgrep -u eve; squeue -h -u eve'), '');
    });
  });

  await t.test('admin plan says that nothing restarts, and whose jobs end', async () => {
    const job = await abe.ssh([abe.target, 'sbatch --parsable --job-name long --wrap "sleep 300"']);
    const wanted = labOf(lab.settings({ rollout: 'live' }));
    for (const one of wanted.organizations?.[0]?.members ?? [])
      if (one.username === 'abe') one.permissions = [];
    const plan = async () =>
      (
        await service.business('/operator/lab/plan', {
          as: 'root',
          method: 'POST',
          body: { lab: { ...wanted, users: [] } },
        })
      ).body;
    const { restarts } = await eventually(plan, (body) => (body.restarts[0]?.ended_jobs.length ?? 0) > 0);
    const [restart] = restarts;
    assert.deepEqual([restart.rollout, restart.removed, restart.restarts], ['live', ['abe'], []]);
    assert.deepEqual(
      restart.ended_jobs.map((one: { id: string; user: string; name: string }) => [
        one.id,
        one.user,
        one.name,
      ]),
      [[job.out.trim(), 'abe', 'long']],
    );
    await shell('head', 'scancel -u abe');
  });

  await t.test('a configuration is applied; a broken one is refused, in words, everywhere', async () => {
    const put = (body: object) =>
      service.platform(`/clusters/${alpha}/scheduler-configuration?businessOrgId=${abe.orgId}`, {
        as: 'ada',
        method: 'PUT',
        body,
      });
    assert.equal((await put({ slurmExtraConfig: 'SlurmdTimeout=77' })).status, 200);
    await eventually(
      () => shell('head', 'scontrol show config | grep ^SlurmdTimeout'),
      (text) => text.includes('77'),
    );
    await ready((condition) => condition?.['status'] === 'True');
    assert.equal((await put({ slurmExtraConfig: 'Nonsense=77' })).status, 200);
    const condition = await ready((one) => one?.['status'] === 'False');
    assert.equal(condition.reason, 'ConfigurationRejected');
    assert.match(condition.message, /unrecognized key: Nonsense/);
    assert.equal((await accessList(service, abe.orgId)).state, 'failed');
    const { body } = await service.business('/operator/clusters', { as: 'root' });
    assert.match(body.clusters[0].failure, /unrecognized key: Nonsense/);
    const job = await abe.ssh([abe.target, 'srun -Q hostname']);
    assert.deepEqual([job.status, job.out, job.err], [0, 'a1\n', ''], 'people go on');
    await put({});
    await ready((one) => one?.['status'] === 'True');
  });

  await t.test(
    'who had to wait for a foreign account can log in as soon as the list says ready',
    async () => {
      const everywhere = (command: string) =>
        Promise.all(['head', 'a1', 'a2'].map((host) => shell(host, command)));
      const loginOf = (name: string) => sshPerson(service, name);
      // Each way out of the way, and what it leaves behind.
      const ways = {
        p1: 'usermod -l old1 p1; groupmod -n old1 p1',
        p2: 'passwd -l p2; chage -E 1 p2; gpasswd -a p2 staff; sed -i /^p2:/d /etc/passwd /etc/group',
        p3: 'userdel p3; groupdel p3; rm -rf /home/p3',
      };
      const names = Object.keys(ways);
      await everywhere(
        names.map((name, index) => `useradd -u ${1501 + index} -U -M -p '!' ${name}`).join('; '),
      );
      await shell('head', 'mkdir /home/p3; chown 1503:1503 /home/p3');
      const people = names.map((name) => loginOf(name));
      await eventually(
        async () => (await service.business('/operator/clusters', { as: 'root' })).body.clusters[0].failure,
        (words) => names.every((name) => words?.includes(`the account ${name} `)),
      );
      await everywhere(Object.values(ways).join('; '));
      // The first login comes at the moment at which the list says that it will work.
      const first = await Promise.all(
        people.map(async (coming) => {
          using person = await coming;
          const login = await person.ssh([person.target, 'id -un; id -Gn; pwd']);
          // The list may say ready before the compute nodes have the account; jobs follow.
          const inJob = () => person.ssh([person.target, 'srun -Q id -un']);
          const job = await eventually(inJob, ({ status }) => status === 0);
          return [login.status, login.out, login.err, job.out];
        }),
      );
      assert.deepEqual(
        first,
        names.map((name) => [0, `${name}\n${name}\n/home/${name}\n`, '', `${name}\n`]),
      );
    },
  );

  await t.test(
    'whose home is another’s is not ready, in words, until the home is out of the way',
    async () => {
      await shell('head', 'mkdir /home/p4; chown 1504 /home/p4');
      const { body: p4 } = await service.business('/me', { as: 'p4' });
      const coming = sshPerson(service, 'p4');
      const failure = async () =>
        (await service.business('/operator/clusters', { as: 'root' })).body.clusters[0].failure;
      assert.match(await eventually(failure, (words) => words !== null), /\/home\/p4 belongs to/);
      const { body } = await service.platform(
        `/clusters/${alpha}/ssh-access?organizationId=${p4.memberships[0].org_id}`,
        {
          as: 'p4',
        },
      );
      assert.equal(body.ready, false);
      assert.equal(await shell('head', 'stat -c %u /home/p4'), '1504');
      await shell('head', 'mv /home/p4 /home/p4.old');
      using person = await coming;
      assert.equal((await person.ssh([person.target, 'id -un'])).out, 'p4\n');
    },
  );

  await t.test('the jobs of a cluster are those of squeue, at most an interval later', async () => {
    const path = `/clusters/${alpha}/usage?businessOrgId=${abe.orgId}`;
    const usage = async () => (await service.platform(path, { as: 'ada' })).body;

    /** As squeue says it: one line a job, and the GPUs of each by scontrol, which counts them in its own way. */
    async function inQueue(): Promise<string[]> {
      const list = "squeue -h -t R,S -o '%N|%A|%i|%u|%S|%e|%j'";
      const more =
        '"$(scontrol show hostnames "$nodes" | paste -sd,)" "$(scontrol -o show job "$number" | head -n 1)"';
      const each = `while IFS='|' read -r nodes number job; do printf '%s\t%s\t%s\n' "$job" ${more}; done`;
      const out = await shell('head', `export SLURM_TIME_FORMAT=%s; ${list} | ${each}`);
      const lines = out.split('\n').filter(Boolean);
      return lines
        .map((line) => {
          const [job = '', machines = '', detail = ''] = line.split('\t');
          const [id, user, start, end, ...name] = job.split('|');
          const gpus = Number(/TRES=\S*gres\/gpu=(\d+)/.exec(detail)?.[1] ?? '0');
          const times = [timeOf(start), timeOf(end)];
          return JSON.stringify([id, user, name.join('|'), machines.split(','), gpus, ...times]);
        })
        .sort();
    }
    const timeOf = (seconds = '') =>
      /^\d+$/.test(seconds) ? new Date(Number(seconds) * 1_000).toISOString() : null;
    const shown = (jobs: Job[]) =>
      jobs
        .map(({ id, user, name, machines, gpus, started_at: start = null, ends_at: end = null }) =>
          JSON.stringify([id, user, name, machines, gpus, start, end]),
        )
        .sort();
    const agree = async () => {
      const both = await eventually(
        async () => ({ queue: await inQueue(), jobs: shown((await usage()).jobs ?? []) }),
        ({ queue, jobs }) => JSON.stringify(queue) === JSON.stringify(jobs),
      );
      return both.jobs;
    };

    assert.deepEqual(await agree(), []);
    const submit = async (options: string) => {
      const { out, err } = await abe.ssh([abe.target, `sbatch --parsable ${options} --wrap 'sleep 900'`]);
      assert.match(out, /^\d+/, err);
      return out.trim();
    };
    const one = await submit(`-w a1 --gres=gpu:2 -t 60 -J 'a name|with a bar'`);
    await submit('-w a2 -a 3-4 -J many');
    const two = await submit('-N2 --gres=gpu:1 -J wide');
    const jobs = await eventually(agree, (all) => all.length === 4);
    assert.ok(
      jobs.some((line) => line.includes('"a name|with a bar",["a1"],2')),
      jobs.join(),
    );
    assert.ok(jobs.some((line) => /_3"/.test(line)) && jobs.some((line) => line.includes('["a1","a2"],2')));
    await abe.ssh([abe.target, `scancel ${one} ${two}`]);
    await eventually(agree, (all) => all.length === 2);
    await submit('-w a1 --gres=gpu:3 -t 20');
    await eventually(agree, (all) => all.length === 3);

    // Those that wait: by priority, with what they ask for; one that starts no more of its own accord is expected at no time. A name
    // that looks like lines of squeue stays a name.
    await submit('-w a1 --gres=gpu:7 -t 10 -J big');
    await submit(`--hold -J "$(printf 'x\\n999|999|root|1795694400|1795695000|a1|forged')"`);
    const waiting = await eventually(
      async () => (await usage()).pending_jobs,
      (all) => all.length === 2,
    );
    const [big, held] = waiting;
    assert.deepEqual([big.name, big.gpus, big.ahead, big.reason], ['big', 7, 0, 'Resources']);
    assert.deepEqual([held.name.slice(0, 1), held.gpus, held.ahead, held.reason], ['x', 0, 1, 'JobHeldUser']);
    assert.equal('expected_at' in held, false);
    assert.equal(JSON.stringify(await usage()).includes('forged'), false);
    const expected = await eventually(
      async () => {
        const { out } = await lab.on('head', 'SLURM_TIME_FORMAT=%s squeue -h --start -n big -o %S');
        return { slurm: timeOf(out.trim()), ours: (await usage()).pending_jobs[0].expected_at ?? null };
      },
      ({ slurm, ours }) => slurm !== null && slurm === ours,
    );
    assert.ok(expected.ours);

    // Whom Slurm shows it to: everyone, until a file that slurm.conf includes says otherwise.
    using _other = await sshPerson(service, 'p0');
    await permit(service, _other, ['clusters.read', 'clusters.ssh']);
    const asOther = async () => {
      const { jobs = [], other_jobs: hidden } = (await service.platform(path, { as: 'p0' })).body;
      return `${jobs.length} and ${hidden?.jobs ?? 0}`;
    };
    await eventually(asOther, (seen) => seen === '3 and 0');
    const conf = `${lab.directory}/etc/slurm.conf`;
    const hide = `echo PrivateData=jobs > ${conf}.private; echo include ${conf}.private >> ${conf}`;
    await lab.on('head', `${hide}; scontrol reconfigure`);
    await eventually(asOther, (seen) => seen === '0 and 3');
    await shell('head', 'scancel -u abe');
  });

  await t.test('released, nothing of ours is left but homes', async () => {
    await service.write(`/operator/clusters/${alpha}/release`, { as: 'root' });
    const state = async () =>
      (await service.business('/operator/clusters', { as: 'root' })).body.clusters[0].cluster.state;
    await eventually(state, (is) => is === 'released');
    for (const host of ['head', 'a1', 'a2']) {
      const left =
        'getent passwd abe ada eve; ls -A /var/lib/andromeda-slurm 2> /dev/null; test -d /home/abe && echo home';
      assert.equal(await shell(host, left), 'home', host);
    }
    assert.deepEqual(await associations(lab), []);
    assert.equal((await abe.ssh([abe.target, 'true'])).status, 255);
    await shell('head', 'rm -rf /home/*');
  });
});
