/** GPU time as a real slurmdbd has it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listGpuDays } from '../../src/store/clusters/gpu-days.ts';
import { alpha, eventually } from '../support/app.ts';
import { sshPerson } from '../support/ssh-person.ts';
import { noSlurm, startSlurmLab } from './lab.ts';
import { startService } from './service.ts';

test('GPU-hours are those of sacct, of jobs that are over and of one that runs', {
  skip: noSlurm,
}, async () => {
  using lab = startSlurmLab({ homes: 'shared' });
  {
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
  }
  // A service that just started asks for today first.
  await using service = await startService(lab, { rollout: 'live' });
  using abe = await sshPerson(service, 'abe');
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
});
