/**
 * People on a real Slurm cluster through the gateway, and operators through the API; Shared, live. Who runs what, as the service and
 * as Slurm says it; and people whose name or home another account has: ready means that the login works.
 */
import assert from 'node:assert/strict';
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { sshdLines } from '../../src/cli/admin/installation.ts';
import { toDay } from '../../src/domain/slurm/direct.ts';
import { listGpuDays } from '../../src/store/clusters/gpu-days.ts';
import { alpha, becomes, eventually } from '../support/app.ts';
import { keygen } from '../support/ssh-keys.ts';
import { sshPerson } from '../support/ssh-person.ts';
import { noSlurm, startSlurmLab } from './lab.ts';
import { associations } from './people.ts';
import { labOf, permit, startService } from './service.ts';
import { assertStartUpFiles, straightTo } from './start-up-files.ts';

type Job = Record<string, unknown>;

test('a real Slurm cluster, from end to end', { skip: noSlurm }, async (t) => {
  using lab = startSlurmLab({ HOMES: 'shared' });
  const { shell } = lab;
  await t.test('before another start: jobs that take GPU time', async () => {
    await using service = await startService(lab, { rollout: 'live' });
    using abe = await sshPerson(service, 'abe');
    const command = 'srun --gres=gpu:2 sleep 5 & srun -N2 --gres=gpu:1 sleep 3 & srun -n1 true; wait';
    const { err, status } = await abe.ssh([abe.target, command]);
    assert.equal(status, 0, err);
    await lab.runJob('--gres=gpu:3', 'abe');
  });

  // A service that just started asks for the GPU time of today first.
  const settings = { rollout: 'live' as const, direct: { until: toDay(Date.now() + 86_400_000) } };
  await using service = await startService(lab, settings, { sync: { intervalSeconds: 8 } });
  const clusters = async () =>
    (await service.business('/operator/clusters', { as: 'root' })).body.clusters[0];
  // Until the first pass, hosts have the former service's list, whose generation may be that of abe's first key here.
  await eventually(
    async () => (await clusters()).access_list,
    (list) => list !== null && list.applied_generation === list.generation,
  );
  await t.test('start-up files are read as sshd reads them without a gateway', () =>
    assertStartUpFiles(lab, service, []),
  );
  using abe = await sshPerson(service, 'abe');

  await t.test('GPU-hours are those of sacct, of jobs that are over and of one that runs', async () => {
    const ask = async () =>
      (await service.platform(`/gpu-hours?businessOrgId=${abe.orgId}`, { as: 'ada' })).body.items[0];
    const found = await eventually(ask, (one) => one?.people?.length > 0);
    assert.equal(found.source, 'slurmdbd');
    const now = Math.floor(Date.now() / 1_000);
    const sacct = 'SLURM_TIME_FORMAT=%s sacct -aXnP -S now-1hour -o user,start,end,alloctres';
    const out = await shell('head', sacct);
    const seconds = out.split('\n').reduce((sum, line) => {
      const [, start, end, tres = ''] = line.split('|');
      const gpus = Number(/gres\/gpu=(\d+)/.exec(tres)?.[1] ?? 0);
      return sum + gpus * ((/^\d+$/.test(end ?? '') ? Number(end) : now) - Number(start));
    }, 0);
    assert.equal(found.people.map(({ user }: { user: string }) => user).join(), 'abe');
    // The one that runs went on since the answer.
    const days = await listGpuDays(service.app.store.read, alpha, '');
    const ours = days.reduce((sum, day) => sum + (day.seconds['abe'] ?? 0), 0);
    assert.ok(ours >= 16 && ours <= seconds + 20 && ours > seconds - 3 * 120, `${ours} of ${seconds}`);
    await shell('head', 'scancel -u abe');
  });

  await t.test('a member with a key logs in to the real sshd, and runs srun and sbatch', async () => {
    const login = await abe.ssh([abe.target, 'id -un; hostname; pwd; srun -Q hostname']);
    assert.deepEqual([login.status, login.out, login.err], [0, 'abe\nhead\n/home/abe\na1\n', '']);
    const batch = await abe.ssh([abe.target, 'sbatch --wrap "hostname > out; id -un >> out"']);
    assert.match(batch.out, /Submitted batch job \d+/);
    await becomes(() => shell('head', 'cat /home/abe/out'), 'a1\nabe');
  });

  await t.test('who is on the list of direct logins is off it after one login by the gateway', async () => {
    const key = keygen('-t', 'ed25519');
    using bob = await sshPerson(service, 'p5', key);
    const [command] = /AuthorizedKeysCommand \/bin.*\n.*CommandUser root/.exec(
      sshdLines({ publicKeys: [], from: '127.0.0.1', hasDirect: true }),
    ) ?? [''];
    const block = `Match Address 127.0.0.2\n    AuthorizedKeysFile none\n${command}\n`;
    appendFileSync(join(lab.directory, 'etc/sshd-head.conf'), block);
    lab.control('restart', 'sshd-head');
    const authorize = 'cd /home/p5 && umask 077 && mkdir .ssh && cat > .ssh/authorized_keys';
    await shell('head', `echo '${key.publicKey.trim()}' | runuser -u p5 -- sh -c '${authorize}'`);
    using straight = await sshPerson(service, 'p5', key);
    // From another address than the gateway's.
    const options = [...straightTo(lab, straight.options, 'p5'), '-b', '127.0.0.2'];
    straight.options.splice(0, Infinity, ...options);
    const directly = async () => {
      const { status, out, err } = await straight.ssh([bob.target, 'id -un']);
      return status === 0 ? out : err;
    };
    const left = async () => (await clusters()).direct;
    const { people, keyless } = await left();
    assert.deepEqual(
      [people.includes('p5'), keyless.includes('p5'), keyless.includes('p6')],
      [true, false, true],
    );
    await becomes(directly, 'p5\n');
    assert.equal((await bob.ssh([bob.target, 'id -un'])).out, 'p5\n');
    await becomes(async () => (await left()).people.includes('p5'), false);
    await eventually(directly, (said) => said.includes('Permission denied'));
    assert.equal((await bob.ssh([bob.target, 'id -un'])).out, 'p5\n');
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
      await becomes(async () => (await associations(lab)).includes('eve'), false);
      assert.match(await shell('head', 'runuser -u eve -- sbatch --wrap true'), /Invalid account/);
      assert.equal(await shell('head', 'pgrep -u eve; squeue -h -u eve'), '');
    });
  });

  await t.test('admin plan says that nothing restarts, and whose jobs end', async () => {
    const job = await lab.runJob('-J long', 'abe');
    const wanted = labOf(lab.settings({ rollout: 'live' }));
    for (const one of wanted.organizations?.[0]?.members ?? [])
      if (one.username === 'abe') one.permissions = [];
    const request = { as: 'root', method: 'POST', body: { lab: { ...wanted, users: [] } } };
    const plan = async () => (await service.business('/operator/lab/plan', request)).body;
    const { restarts } = await eventually(plan, (body) => (body.restarts[0]?.ended_jobs.length ?? 0) > 0);
    const [restart] = restarts;
    assert.deepEqual([restart.rollout, restart.removed, restart.restarts], ['live', ['abe'], []]);
    assert.deepEqual(restart.ended_jobs, [{ id: job, user: 'abe', name: 'long', machines: ['a1'] }]);
    await shell('head', 'scancel -u abe');
  });

  await t.test('ready means that the login works, for whose name or home another account had', async () => {
    const everywhere = (command: string) =>
      Promise.all(['head', 'a1', 'a2'].map((host) => shell(host, command)));
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
    await shell('head', 'mkdir /home/p3 /home/p4; chown 1503:1503 /home/p3; chown 1504 /home/p4');
    const people = [...names, 'p4'].map((name) => sshPerson(service, name));
    const reasons = [...names.map((name) => `the account ${name} `), '/home/p4 belongs to'];
    const isRefused = (failure: string | null) => reasons.every((one) => failure?.includes(one));
    await eventually(async () => (await clusters()).failure, isRefused);
    const access = `/clusters/${alpha}/ssh-access?organizationId=${abe.orgId}`;
    assert.equal((await service.platform(access, { as: 'p4' })).body.ready, false);
    assert.equal(await shell('head', 'stat -c %u /home/p4; mv /home/p4 /home/p4.old'), '1504');
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
      [...names, 'p4'].map((name) => [0, `${name}\n${name}\n/home/${name}\n`, '', `${name}\n`]),
    );
  });

  await t.test('the jobs of a cluster are those of squeue, at most an interval later', async () => {
    const path = `/clusters/${alpha}/usage?businessOrgId=${abe.orgId}`;
    const usage = async () => (await service.platform(path, { as: 'ada' })).body;

    const timeOf = (seconds = '') =>
      /^\d+$/.test(seconds) ? new Date(Number(seconds) * 1_000).toISOString() : undefined;
    const inQueue = async () => {
      const out = await shell('head', "SLURM_TIME_FORMAT=%s squeue -h -t R -o '%i %S %e'");
      const lines = out.split('\n').map((line) => line.split(' '));
      return lines.map(([id, start, end]) => `${[id, timeOf(start), timeOf(end)]}`).sort();
    };
    const agree = async (count: number): Promise<Job[]> => {
      const { jobs } = await eventually(
        async () => ({ queue: await inQueue(), jobs: ((await usage()).jobs ?? []) as Job[] }),
        ({ queue, jobs }) => {
          const shown = jobs.map((one) => `${[one.id, one.started_at, one.ends_at]}`).sort();
          return jobs.length === count && (count === 0 || `${shown}` === `${queue}`);
        },
      );
      return jobs;
    };
    const submit = async (options: string) => {
      const sbatch = `cd; sbatch --parsable ${options} --wrap "sleep 900"`;
      return shell('head', `runuser -u abe -- bash -c '${sbatch}'`);
    };
    await agree(0);
    const one = await submit('-w a1 --gres=gpu:2 -t 60 -J "a name|with a bar"');
    await submit('-w a2 -a 3-4 -J many');
    const two = await submit('-N2 --gres=gpu:1 -J wide');
    const jobs = (await agree(4)).map(({ user, name, machines, gpus }) => `${[user, name, machines, gpus]}`);
    const many = 'abe,many,a2,0';
    assert.deepEqual(jobs.sort(), ['abe,a name|with a bar,a1,2', many, many, 'abe,wide,a1,a2,2']);
    await shell('head', `scancel ${one} ${two}`);
    await agree(2);
    await submit('-w a1 --gres=gpu:3 -t 20');
    await agree(3);

    // Those that wait: by priority, with what they ask for; one that starts no more of its own accord is expected at no time. A name
    // that looks like lines of squeue stays a name.
    await submit('-w a1 --gres=gpu:7 -t 10 -J big');
    await submit('--hold -J "$(printf "x\\n999|999|root|1795694400|1795695000|a1|forged")"');
    const waiting = await eventually(
      async () => (await usage()).pending_jobs,
      (all) => all.length === 2,
    );
    const [big, held] = waiting;
    assert.deepEqual([big.name, big.gpus, big.ahead, big.reason], ['big', 7, 0, 'Resources']);
    assert.deepEqual([held.name.slice(0, 1), held.gpus, held.ahead, held.reason], ['x', 0, 1, 'JobHeldUser']);
    assert.equal('expected_at' in held, false);
    assert.equal(JSON.stringify(await usage()).includes('forged'), false);
    await eventually(
      async () => {
        const out = await shell('head', 'SLURM_TIME_FORMAT=%s squeue -h --start -n big -o %S');
        return { slurm: timeOf(out), ours: (await usage()).pending_jobs[0].expected_at };
      },
      ({ slurm, ours }) => slurm !== undefined && slurm === ours,
    );

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
});
