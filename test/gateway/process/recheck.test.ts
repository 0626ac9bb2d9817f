/** What the service waits for before it changes a cluster: that each gateway process has asked about its sessions again. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { finished, firstOutput, whyNot } from '../lab.ts';
import { openProcessLab } from './lab.ts';

test('a recheck is over when the sessions concerned are closed, and people read why', {
  skip: whyNot,
  timeout: 60_000,
}, async () => {
  await using lab = await openProcessLab();
  const service = await lab.serve();
  const open = lab.start('ssh', [...lab.options, '127.0.0.1', 'echo up; cat']);
  await firstOutput(open);
  const ended = finished(open);
  const ms = await service.ask<number>('refuse Your access has ended.');
  assert.ok(ms < 1_000, `${ms} ms`);
  assert.deepEqual(await service.ask('sessions'), []);
  assert.match((await ended).err, /Your access has ended\./);
  await service.kill('SIGTERM');
});

test('a gateway process that does not answer holds nothing up for longer than a second', {
  skip: whyNot,
  timeout: 60_000,
}, async () => {
  await using lab = await openProcessLab();
  const service = await lab.serve();
  const [gateway = 0] = lab.gateways();
  process.kill(gateway, 'SIGSTOP');
  const ms = await service.ask<number>('refuse Your access has ended.');
  assert.ok(ms >= 900 && ms < 5_000, `${ms} ms`);
  process.kill(gateway, 'SIGCONT');
  await service.kill('SIGTERM');
  assert.deepEqual(lab.gateways(), []);
});
