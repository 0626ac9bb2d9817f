import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mergeMachines } from '../../src/domain/clusters/cluster.ts';
import {
  describeFreeBlocks,
  describeGpuUsage,
  gpuUsage,
  type MachineUse,
} from '../../src/domain/clusters/gpu-usage.ts';

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
