/**
 * What the service waits for before it changes a cluster: that each gateway process that may have sessions concerned has asked
 * about them again.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Member } from '../../../src/gateway-process/member.ts';
import type { Hello, ToProcess } from '../../../src/gateway-process/messages.ts';
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
  const open = lab.start('ssh', [...lab.options, '127.0.0.1', 'echo up; cat']);
  await firstOutput(open);
  const [gateway = 0] = lab.gateways();
  process.kill(gateway, 'SIGSTOP');
  const ms = await service.ask<number>('refuse Your access has ended.');
  assert.ok(ms >= 900 && ms < 5_000, `${ms} ms`);
  process.kill(gateway, 'SIGCONT');
  await service.kill('SIGTERM');
  assert.deepEqual(lab.gateways(), []);
});

test('only a gateway process that may have sessions concerned is asked', () => {
  const sent: ToProcess[] = [];
  const lines = { send: (message: ToProcess) => sent.push(message) > 0, unsent: () => 0, close() {} };
  const hello: Hello = {
    ...{ type: 'hello', protocol: 1, build: 'b', pid: process.pid, draining: false, sessions: [] },
  };
  const member = new Member(process.pid);
  member.connected(lines, hello, 60_000);
  assert.equal(member.mayHave({}), false, 'it has just begun');

  const loginNode = { host: '10.0.0.1', port: 22, hostKey: 'ssh-ed25519 AAAA' };
  const login = { clusterId: 'cluster', userId: 'user', keyId: 'key' };
  const route = { ...login, username: 'ada', shell: '/bin/sh', loginNode };
  member.decided({ allowed: false, reason: 'r', message: '', disclose: true, subject: login }, 60_000);
  assert.equal(member.mayHave({}), false, 'who was refused has no session');
  member.decided({ allowed: true, route }, 60_000);
  const [matching, others] = [
    [{}, { userId: 'user' }, { clusterId: 'cluster', loginNode: '10.0.0.1:22' }, { id: 'any' }],
    [{ userId: 'user', clusterId: 'other' }, { keyId: 'other' }, { loginNode: '10.0.0.2:22' }],
  ];
  for (const filter of matching) assert.equal(member.mayHave(filter), true, 'a login is under way');
  for (const filter of others) assert.equal(member.mayHave(filter), false, 'it is of somebody else');

  const elsewhere = { ...route, clusterId: 'second' };
  member.decided({ allowed: true, route: elsewhere }, 0);
  assert.equal(member.mayHave({ clusterId: 'second' }), false, 'a login takes no longer than it may');

  const again = new Member(process.pid, true);
  again.connected(lines, { ...hello, port: 22 }, 60_000);
  assert.equal(again.mayHave({ userId: 'anyone' }), true, 'it may have logins from before');
});
