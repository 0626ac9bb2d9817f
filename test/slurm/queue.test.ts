/** Who runs what, as the service says it and as a real Slurm's own squeue does, while jobs come and go. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { alpha, eventually } from '../support/app.ts';
import { sshPerson } from '../support/ssh-person.ts';
import { noSlurm, startSlurmLab } from './lab.ts';
import { permit, startService } from './service.ts';

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

test('the jobs of a cluster are those of squeue, at most an interval later', {
  skip: noSlurm,
}, async () => {
  using lab = startSlurmLab({ homes: 'shared' });
  await using service = await startService(lab, { rollout: 'live' });
  using abe = await sshPerson(service, 'abe');
  const path = `/clusters/${alpha}/usage?businessOrgId=${abe.orgId}`;
  const usage = async () => (await service.platform(path, { as: 'ada' })).body;

  /** As squeue says it: one line a job, and the GPUs of each by scontrol, which counts them in its own way. */
  async function inQueue(): Promise<string[]> {
    const format = '%A|%i|%u|%S|%e|%N|%j';
    const { out } = await lab.on('head', `SLURM_TIME_FORMAT=%s squeue -h -t R,S -o '${format}'`);
    const jobs = out.split('\n').filter(Boolean);
    return Promise.all(
      jobs.map(async (line) => {
        const [number, id, user, start, end, nodes, ...name] = line.split('|');
        const { out: job } = await lab.on('head', `scontrol -o show job ${number}`);
        const gpus = /TRES=\S*gres\/gpu=(\d+)/.exec(job)?.[1] ?? '0';
        const machines = (await lab.on('head', `scontrol show hostnames ${nodes}`)).out
          .split('\n')
          .filter(Boolean);
        return JSON.stringify([
          ...[id, user, name.join('|'), machines],
          ...[Number(gpus), timeOf(start), timeOf(end)],
        ]);
      }),
    ).then((lines) => lines.sort());
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
});
