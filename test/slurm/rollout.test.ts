/** A Slurm configuration on the nodes of a real cluster, one after the other: the first that is worse than before takes it back. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Manifest } from '../../src/domain/access/manifest.ts';
import type { SlurmConfiguration } from '../../src/domain/slurm/configuration.ts';
import { patienceMs } from '../../src/sync/slurm/cluster.ts';
import { eventually } from '../support/app.ts';
import { isFull, noSlurm, startSlurmLab } from './lab.ts';
import { type Cluster, driverOf, manifest, person, state } from './people.ts';

const ada = person('ada', 30_001);

test('a configuration on the nodes of a Slurm cluster', { skip: noSlurm }, async (t) => {
  using lab = startSlurmLab();
  const { pid, runJob, shell, stateOf } = lab;
  // Who Slurm runs as stands in a file of its own.
  const own = `cd ${lab.directory}/etc; grep ^SlurmUser= slurm.conf > user.conf; sed -i "s#^SlurmUser=.*#Include $PWD/user.conf#" slurm.conf`;
  await shell('head', `${own}; chmod 644 user.conf`);
  lab.control('restart', 'slurmctld');
  const commands = lab.settings().commands ?? {};
  const noted = `echo {name} >> ${lab.directory}/restarted; ${commands.restartCompute}`;
  const live = driverOf(lab, { commands: { ...commands, restartCompute: noted } });
  await live.apply(manifest([ada]));
  const gpus = (last: number) => `Name=gpu Type=h100 File=${lab.directory}/dev/gpu[0-${last}]`;
  const states = () => shell('head', 'sinfo -hN -o "%n %T %E"');
  /** What the files are on each host. */
  const everywhere = () =>
    Promise.all(
      ['head', 'a1', 'a2'].map((host) => shell(host, `cd ${lab.directory}/etc && cat slurm.conf gres.conf`)),
    );
  /** Takes nothing, says why, and leaves everything as it was; slurmd of a1 goes on unless `reached`. */
  const assertTakenBack = async (configuration: SlurmConfiguration, reason: RegExp, reached = false) => {
    const before = [await everywhere(), await states()];
    const slurmd = pid('slurmd-a1');
    const next = manifest([ada], configuration);
    const report = await live.apply(next);
    const ready = report.scheduler?.ready;
    assert.equal(ready?.reason, 'ConfigurationRejected');
    assert.equal(ready?.observedGeneration, next.desiredGeneration);
    assert.match(ready?.message ?? '', reason);
    assert.match(report.failure ?? '', reason);
    assert.equal(report.manifestGeneration, next.generation);
    assert.ok(report.desiredGeneration < next.desiredGeneration);
    const now = () => Promise.all([everywhere(), states()]);
    await eventually(now, (found) => JSON.stringify(found) === JSON.stringify(before));
    assert.equal(pid('slurmd-a1') === slurmd, !reached);
  };

  await t.test('what only slurmd reads is taken back by the first node, an idle one', async () => {
    const job = await runJob('-w a1');
    const plugin = { slurmExtraConfig: 'TaskPlugin=task/nosuch' };
    await assertTakenBack(
      plugin,
      /a2 does not take it: slurmd of a2 does not start: .*cannot find task plugin/,
    );
    await assertTakenBack(
      { gresConf: gpus(3) },
      /a2 is .*DRAIN.*gres\/gpu count reported lower than configured/,
    );
    assert.equal(await stateOf(job), 'RUNNING');
    await shell('head', `scancel ${job}; while squeue -h | grep -q .; do sleep 0.1; done`);
    assert.equal(await shell('head', "runuser -u ada -- srun -Q -N2 sh -c 'echo ran'"), 'ran\nran');
  });

  if (!isFull) return;

  await t.test('a node after others takes it back from them too, also from files of their own', async () => {
    const own = `cp -a ${lab.directory}/etc /run/etc && mount --bind /run/etc ${lab.directory}/etc`;
    for (const node of ['a1', 'a2']) assert.equal(await shell(node, own), '');
    const gresConf = `NodeName=a1 ${gpus(7)}\nNodeName=a2 ${gpus(8)}`;
    rmSync(join(lab.directory, 'restarted'));
    await assertTakenBack({ gresConf }, /a2 cannot use gres.conf: .*dev\/gpu8/, true);
    const restarted = readFileSync(join(lab.directory, 'restarted'), 'utf8');
    // a2 was not reached by the new one; it may restart with the old one, before or after a1.
    assert.match(restarted, /^a1\n(a1|a1\na2|a2\na1)\n$/, 'with the new one, and with the old one again');
  });

  await t.test('a restart command that fails once condemns nothing: it is tried again', async () => {
    const failing = (role: 'restartCompute' | 'restartController', name: string) => {
      const mark = join(lab.directory, name);
      const command = commands[role];
      const byHand = `sed -i '1a # by hand: ${name}' ${lab.directory}/etc/slurm.conf`;
      const once = `[ -f ${mark} ] || { touch ${mark}; ${byHand}; echo no such unit >&2; exit 5; }; ${command}`;
      return driverOf(lab, { commands: { ...commands, [role]: once }, trialNode: 'a2' });
    };
    const refused = async (clumsy: Cluster, next: Manifest, reason: RegExp) => {
      const { scheduler } = await clumsy.apply(next);
      assert.equal(scheduler?.ready?.reason, 'ConfigurationRejected');
      assert.match(scheduler?.ready?.message ?? '', reason);
    };
    const compute = failing('restartCompute', 'compute-failed');
    const first = manifest([ada], { slurmExtraConfig: 'SlurmdTimeout=61' });
    await refused(compute, first, /a2 does not take it: restartCompute of a2 ended with 5: no such unit/);
    const text = await shell('a2', `cat ${lab.directory}/etc/slurm.conf`);
    assert.match(text, /by hand: compute-failed/, 'what the site writes meanwhile stays');
    assert.doesNotMatch(text, /SlurmdTimeout=61/);
    const due = `awk -F '\t' '{ $6 -= 60; print }' OFS='\t' ${state}/refused > /run/due && cp /run/due ${state}/refused`;
    await shell('head', due);
    const later = await compute.apply(first);
    assert.deepEqual([later.failure, later.desiredGeneration], [null, first.desiredGeneration]);
    for (const text of await everywhere()) assert.match(text, /SlurmdTimeout=61/);

    const controller = failing('restartController', 'controller-failed');
    const second = manifest([ada], { slurmExtraConfig: 'SlurmdTimeout=62' });
    await refused(controller, second, /restartController ended with 5: no such unit/);
    const again = { ...second, configurationPutAt: '2026-01-01T00:00:00.000Z' };
    assert.equal((await controller.apply(again)).desiredGeneration, second.desiredGeneration);

    const [reached, released] = [join(lab.directory, 'reached'), join(lab.directory, 'released')];
    const held = {
      restartController: `${commands.restartController} && touch ${reached}`,
      restartCompute: `until [ -f ${released} ]; do sleep 0.1; done; ${commands.restartCompute}`,
    };
    const slow = driverOf(lab, { commands: { ...commands, ...held } });
    const { order } = patienceMs;
    Object.defineProperty(patienceMs, 'order', { get: () => (existsSync(reached) ? 1_000 : order) });
    try {
      const third = manifest([ada], { slurmExtraConfig: 'SlurmdTimeout=63' });
      await refused(slow, third, /a1 does not answer in time/);
    } finally {
      writeFileSync(released, '');
      Object.defineProperty(patienceMs, 'order', { value: order });
    }
  });
});
