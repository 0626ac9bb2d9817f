/** Hosts of a real Slurm cluster that several servers look after, one after the other. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { noSlurm, startSlurmLab } from './lab.ts';
import { accountsOn, driverOf, manifest, person } from './people.ts';

const ada = person('ada', 30_001);
const bob = person('bob', 30_002);

test('hosts take nothing late from a server that another took over from', {
  skip: noSlurm,
  timeout: 230_000,
}, async () => {
  using lab = startSlurmLab({ nodes: 'a1' });
  const people = async () => [await accountsOn(lab, 'head'), await accountsOn(lab, 'a1')];
  const both = ['ada:30001', 'bob:30002'];
  const [before, next] = [manifest([ada]), manifest([ada, bob])];
  const [older, newer] = [driverOf(lab, {}, 1_000), driverOf(lab, {}, 2_000)];
  await older.observe();
  assert.equal((await newer.apply(next)).failure, null);
  const late = await older.apply(manifest([ada]));
  assert.match(late.failure ?? '', /another server looks after this host by now; nothing was changed/);
  assert.equal(late.manifestGeneration, next.generation);
  // What the same server sent before something newer, and comes behind it.
  const lower = await newer.apply(before);
  assert.match(lower.failure ?? '', /this host has a newer list already; nothing was changed/);
  assert.equal(lower.manifestGeneration, next.generation);
  assert.deepEqual(await people(), [both, both]);
  // A database that was restored knows of no newer one, and its server has a higher token.
  const restored = await driverOf(lab, {}, 3_000).apply(before);
  assert.deepEqual([restored.failure, restored.manifestGeneration], [null, before.generation]);
});
