/** A gateway process that ends: its own sessions end with it, and the service starts another. */
import assert from 'node:assert/strict';
import { becomes } from '../../support/app.ts';
import { test } from '../lab.ts';
import { openProcessLab } from './lab.ts';

test('kill -9 of the gateway process ends its sessions, their records say why, and the next login gets in', async () => {
  await using lab = await openProcessLab();
  const service = await lab.serve();
  const [gateway = 0, ...more] = lab.gateways();
  assert.deepEqual(more, []);
  const open = await lab.open('exec cat');
  await becomes(() => service.ask<number>('count'), 1);
  const [session] = await service.ask<{ id: string; channels: number }[]>('sessions');
  assert.equal(session?.channels, 1);
  process.kill(gateway, 'SIGKILL');
  assert.notEqual((await open.ended).status, 0);
  await lab.untilGateways(([pid]) => pid !== undefined && pid !== gateway);
  await becomes(() => service.events('gateway.started').length, 2);
  assert.equal((await lab.ssh(['echo again'])).out, 'again\n');
  const entries = await service.entries(4);
  assert.deepEqual(
    entries.map(({ operation, target, reason }) => [operation, target === session?.id, reason]),
    [
      ['ssh.session.opened', true, 'login'],
      ['ssh.session.closed', true, 'gateway_process_ended'],
      ['ssh.session.opened', false, 'login'],
      ['ssh.session.closed', false, 'the person left'],
    ],
  );
  const [ended] = service.events('gateway.process.ended');
  assert.deepEqual([ended?.['pid'], ended?.['signal'], ended?.['sessions']], [gateway, 'SIGKILL', 1]);
  await service.kill('SIGTERM');
  assert.deepEqual(lab.gateways(), []);
});

test('a gateway process that a signal ends is no error, and another takes its place', async () => {
  await using lab = await openProcessLab();
  const service = await lab.serve();
  const [gateway = 0] = lab.gateways();
  process.kill(gateway, 'SIGTERM');
  await becomes(() => service.events('gateway.process.ended').length, 1);
  const [ended] = service.events('gateway.process.ended');
  assert.deepEqual([ended?.['pid'], ended?.['level']], [gateway, 'info']);
  await becomes(() => service.events('gateway.started').length, 2);
});
