import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  activateCluster,
  completeRelease,
  findCluster,
  startRelease,
} from '../../src/store/clusters/clusters.ts';
import { recordSlurmReport } from '../../src/store/clusters/observations.ts';
import { alpha, physics } from '../support/app.ts';
import { openTestStore, slurmReport } from '../support/store.ts';

const at = (minute: number) => Date.parse('2030-01-01T00:00:00.000Z') + minute * 60_000;
const report = (names: readonly string[], controlPlaneReady = true) =>
  slurmReport({ controlPlaneReady, machines: names.map((name) => ({ name, ready: true, phase: 'idle' })) });

async function open() {
  let moment = at(0);
  const opened = await openTestStore(physics, () => moment);
  const { store } = opened;
  const find = async () => {
    const cluster = await findCluster(store.read, alpha);
    assert.ok(cluster);
    return cluster;
  };
  const reports = (names: readonly string[], minute: number, ready?: boolean) => {
    moment = at(minute);
    return recordSlurmReport(store, alpha, report(names, ready));
  };
  return { store, find, reports, [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose]() };
}

test('assigned_node_count follows the machines that the cluster reports', async () => {
  await using lab = await open();
  assert.equal((await lab.find()).assignedNodeCount, 0);
  await lab.reports(['a', 'b'], 1);
  await lab.store.write((tx) => activateCluster({ ...tx, now: at(1) }, alpha));
  assert.equal((await lab.find()).assignedNodeCount, 2);

  const before = await lab.find();
  await lab.reports(['a', 'b'], 2);
  assert.deepEqual(await lab.find(), before, 'nothing new');
  await lab.reports(['a', 'b', 'c'], 3);
  const grown = await lab.find();
  assert.deepEqual(
    [grown.assignedNodeCount, grown.version, grown.updatedAt],
    [3, before.version + 1, '2030-01-01T00:03:00.000Z'],
  );
  await lab.reports(['d'], 4);
  assert.equal((await lab.find()).assignedNodeCount, 1, 'the others are retired');
  await lab.reports([], 5, false);
  assert.equal((await lab.find()).assignedNodeCount, 1, 'nobody was there to name machines');
  await lab.store.write((tx) => startRelease({ ...tx, now: at(6) }, { clusterId: alpha, commandId: null }));
  assert.equal((await lab.find()).assignedNodeCount, 1, 'until it is released');
  await lab.store.write((tx) => completeRelease({ ...tx, now: at(7) }, alpha));
  assert.equal((await lab.find()).assignedNodeCount, 0);
});
