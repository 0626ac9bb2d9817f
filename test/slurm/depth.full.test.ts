/** What a login meets on a real Slurm cluster, in all of its forms: shells, and ways of asking for GPUs. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { expandHosts } from '../../src/sync/slurm/facts.ts';
import { alpha } from '../support/app.ts';
import { sshPerson } from '../support/ssh-person.ts';
import { noSlurm, startSlurmLab } from './lab.ts';
import { startService } from './service.ts';
import { assertStartUpFiles } from './start-up-files.ts';

test('logins to a Slurm cluster, in all of their forms', { skip: noSlurm }, async (t) => {
  using lab = startSlurmLab({ HOMES: 'shared' });
  await using service = await startService(lab, { rollout: 'live' });

  await t.test('start-up files are read as sshd reads them without a gateway', async () => {
    const shells = ['/usr/bin/dash', '/usr/bin/zsh', '/usr/bin/fish'];
    await assertStartUpFiles(
      lab,
      service,
      shells.filter((one) => existsSync(one)),
    );
  });

  using abe = await sshPerson(service, 'abe');
  await lab.runJob('--gres=gpu:2 -w a2', 'abe');
  const ways = [
    ...['--gres=gpu:2', '--gpus=3', '--gpus=h100:2', '--gpus-per-node=2', '-n3 --gpus-per-task=1'],
    ...['--gpus-per-socket=1 --sockets-per-node=1', '-c2'],
  ];
  // Exclusive is one node: another job is on the other.
  const onBoth = ['--gres=gpu:1', '--gpus=4', '--gpus-per-node=h100:1', '-n4 --gpus-per-task=1'];
  const all = [...ways, ...onBoth.map((one) => `-N2 ${one}`), ...ways.map((one) => `${one} --exclusive`)];
  for (const options of all)
    await t.test(`a login into a job with ${options} has all of its GPUs on that node`, async () => {
      const id = await lab.runJob(options, 'abe');
      const job = await lab.shell('head', `scontrol -d -o show job ${id}`);
      for (const [, nodes = '', gres = ''] of job.matchAll(/ Nodes=(\S+) .*?GRES=(\S*)/g))
        for (const node of expandHosts(nodes)) {
          abe.options[abe.options.indexOf('-l') + 1] = `${alpha}.abe+${id}.${node}`;
          const { out, err } = await abe.ssh([abe.target, 'hostname; echo $CUDA_VISIBLE_DEVICES']);
          const [, indexes = ''] = /IDX:([-0-9,]+)/.exec(gres) ?? [];
          const devices = indexes === '' ? '' : expandHosts(`g[${indexes}]`).join(',').replaceAll('g', '');
          assert.equal(out, `${node}\n${devices}\n`, `${gres} ${err}`);
        }
      await lab.shell('head', `scancel ${id}`);
    });

  await t.test('fifty at once', async () => {
    abe.options[abe.options.indexOf('-l') + 1] = `${alpha}.abe+job`;
    const ran = await Promise.all(Array.from({ length: 50 }, () => abe.ssh([abe.target, 'hostname'])));
    assert.deepEqual(new Set(ran.map(({ out, err }) => out || err)), new Set(['a2\n']));
  });
});
