import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mergeMachines } from '../../src/domain/clusters/cluster.ts';
import { heldBetween, lastDays } from '../../src/domain/clusters/gpu-hours.ts';
import {
  describeFreeBlocks,
  describeGpuUsage,
  gpuUsage,
  type MachineUse,
} from '../../src/domain/clusters/gpu-usage.ts';
import { readFacts } from '../../src/sync/slurm/facts.ts';
import { GpuDays } from '../../src/sync/slurm/observe.ts';

const at = (time: string) => Date.parse(`2026-11-${time}Z`);

test('what jobs held is of the day on which they held it, and from their start on', () => {
  const jobs = [
    { id: '1', user: 'ada', name: '', machines: ['a1'], gpus: 2 },
    { id: '2', user: 'ada', name: '', machines: ['a1'], gpus: 1, startedAt: '2026-11-27T00:00:10Z' },
    { id: '3', user: 'bob', name: '', machines: ['a1'] },
    { id: '4', user: 'constructor', name: '', machines: ['a1'], gpus: 1, startedAt: '2026-11-27T12:00:00Z' },
  ];
  assert.deepEqual(heldBetween(jobs, at('26T23:59:45'), at('27T00:00:20')), [
    { day: '2026-11-26', seconds: { ada: 30 } },
    { day: '2026-11-27', seconds: { ada: 50 } },
  ]);
  assert.deepEqual(heldBetween(jobs, at('27T10:00:00'), at('27T10:00:15')), [
    { day: '2026-11-27', seconds: { ada: 45 } },
  ]);
  // No property that every object has is taken for a person's.
  assert.deepEqual(heldBetween(jobs, at('27T12:00:00'), at('27T12:00:10')), [
    { day: '2026-11-27', seconds: { ada: 30, constructor: 10 } },
  ]);
});

test('accounting is asked for one day at a time: today every ten minutes, and each day before it until it stands', () => {
  const days = new GpuDays();
  const noon = at('27T12:00:00');
  const ask = (now: number) => {
    const [row] = days.rows(now);
    const asked = row?.[1];
    if (row) days.read(answer(String(asked)), now);
    return asked;
  };
  const answer = (day: string) =>
    readFacts(
      `host\thead\ncontroller\tup\naccounting\tup\ngpu-day\t${day}\ngpu-seconds\t${day}\tada\t60\nend\n`,
      new Map(),
    );
  const first = Array.from({ length: 90 }, (_, second) => ask(noon + second * 1_000));
  assert.deepEqual(first, lastDays(noon, 90));
  assert.equal(ask(noon + 91_000), undefined);
  assert.equal(days.take().length, 90);
  assert.deepEqual(days.take(), []);
  assert.deepEqual(days.rows(noon + 600_000), [
    ['gpu-day', '2026-11-27', at('27T00:00:00') / 1_000, noon / 1_000 + 600],
  ]);
  // Yesterday was not over when it was read last, and stands an hour after its end.
  const asked = [
    '27T23:55:00',
    '28T00:05:00',
    '28T00:06:00',
    '28T01:05:00',
    '28T01:06:00',
    '28T01:20:00',
    '28T01:21:00',
  ];
  assert.deepEqual(
    asked.map((time) => ask(at(time))),
    ['2026-11-27', '2026-11-28', '2026-11-27', '2026-11-28', '2026-11-27', '2026-11-28', undefined],
  );
  // One that was not answered is asked for again.
  const silent = new GpuDays();
  assert.equal(silent.rows(noon)[0]?.[1], '2026-11-27');
  assert.equal(silent.rows(noon + 1_000)[0]?.[1], '2026-11-26');
  assert.equal(silent.rows(noon + 600_000)[0]?.[1], '2026-11-27');
  assert.equal(silent.rows(noon + 601_000)[0]?.[1], '2026-11-26');
});

const machine = (takesWork: MachineUse['takesWork'], gpusInUse?: number, gpuCount = 8): MachineUse => ({
  gpuCount,
  gpusInUse,
  takesWork,
});

test('every GPU is free, held, away or unknown, and only what is known is free', () => {
  const sum = (...machines: MachineUse[]) => {
    const { total, free, inUse, away, unknown, freeNodes, biggestBlock } = gpuUsage(machines);
    return [total, free, inUse, away, unknown, freeNodes, biggestBlock];
  };
  assert.deepEqual(sum(machine(true, 5), machine(true, 0)), [16, 11, 5, 0, 0, 1, 8]);
  assert.deepEqual(sum(machine(false, 3), machine(false)), [16, 0, 3, 13, 0, 0, 0]);
  assert.deepEqual(sum(machine(true), machine('unknown', 2), machine(true, 8)), [24, 0, 8, 0, 16, 0, 0]);
  // More than there are, as while a cluster's nodes change.
  assert.deepEqual(sum(machine(true, 9)), [8, 0, 8, 0, 0, 0, 0]);
});

test('whole nodes and the biggest block are said where something is free', () => {
  const words = (freeNodes: number, biggestBlock: number) => describeFreeBlocks({ freeNodes, biggestBlock });
  assert.equal(words(2, 8), '2 whole nodes, at most 8 on one');
  assert.equal(words(1, 4), '1 whole node, at most 4 on one');
  assert.equal(words(0, 3), 'no whole nodes, at most 3 on one');
  assert.equal(words(0, 0), undefined);
});

test('a sentence counts nothing as free that may not be', () => {
  const words = (total: number, free: number, unknown: number) => describeGpuUsage({ total, free, unknown });
  assert.equal(words(16, 11, 0), '11 of 16 GPUs free');
  assert.equal(words(16, 3, 8), '3 of 16 GPUs free, 8 unknown');
  assert.equal(words(16, 0, 16), '16 GPUs, their use unknown');
  assert.equal(words(0, 0, 0), 'No GPUs are known');
});

test('of a machine that Slurm runs on Kubernetes, Slurm says what is in use', () => {
  const one = { name: 'a', ready: true, phase: 'idle', gpuCount: 8 };
  const pods = { ...one, phase: 'Ready', gpusInUse: 8, reason: 'x', gpuModel: 'H100' };
  assert.deepEqual(mergeMachines([one], [pods]), [{ ...one, gpuModel: 'H100' }]);
  assert.deepEqual(mergeMachines([{ ...one, gpusInUse: 2 }], [pods])[0]?.gpusInUse, 2);
  assert.deepEqual(mergeMachines([], [pods]), [pods]);
});
