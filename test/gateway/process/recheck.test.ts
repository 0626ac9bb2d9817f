/**
 * What the service waits for before it changes a cluster: that each gateway process that may have sessions concerned has asked
 * about them again.
 */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, afterEach, before, describe } from 'node:test';
import type { Unreached } from '../../../src/gateway/process/gateways.ts';
import { Member } from '../../../src/gateway/process/member.ts';
import type { Hello, ToProcess } from '../../../src/gateway/process/messages.ts';
import { becomes, eventually } from '../../support/app.ts';
import { limit } from '../../support/limit.ts';
import { test, whyNot } from '../lab.ts';
import { openProcessLab, type ProcessLab, type Service } from './lab.ts';

describe('one gateway process', { skip: whyNot }, () => {
  let lab: ProcessLab;
  let service: Service;
  before(async () => {
    lab = await openProcessLab();
    service = await lab.serve();
  });
  afterEach(async () => {
    await service.ask('allow');
    await service.ask('close The test is over.');
    await becomes(() => service.ask<number>('count'), 0);
  });
  after(() => lab[Symbol.asyncDispose]());

  test('a recheck is over when the sessions concerned are closed, and people read why', async () => {
    const open = await lab.open();
    await service.ask<number>('refuse Your access has ended.');
    assert.deepEqual(await service.ask('sessions'), []);
    assert.match((await open.ended).err, /Your access has ended\./);
  });

  test('a gateway process that does not answer holds nothing up for longer than a second, and is known as unreached until it does', async () => {
    const open = await lab.open();
    const [gateway = 0] = lab.gateways();
    process.kill(gateway, 'SIGSTOP');
    const ms = await service.ask<number>('refuse Your access has ended.');
    assert.ok(ms >= 900 && ms < limit(5_000), `${ms} ms`);
    const [unreached, ...others] = await service.ask<Unreached[]>('unreached');
    assert.deepEqual([unreached?.pid, unreached?.sessions, others], [gateway, 1, []]);
    assert.equal(service.events('gateway.process.unreached').length, 1);
    process.kill(gateway, 'SIGCONT');
    await open.ended;
    await becomes(async () => (await service.ask<Unreached[]>('unreached')).length, 0);
    assert.equal(service.events('gateway.process.reached').length, 1);
  });

  test('a gateway process whose questions are not decided has confirmed nothing, and is unreached', async () => {
    await lab.open();
    await service.ask('undecided');
    const unreached = await service.ask<Unreached[]>('unreached');
    assert.deepEqual(
      unreached.map(({ pid }) => pid),
      lab.gateways(),
    );
  });

  test('a process that is cut off is unreached at once, and all its sessions are checked when it is back', async () => {
    const open = await lab.open();
    await becomes(() => service.ask<number>('count'), 1);
    const [gateway = 0] = lab.gateways();
    process.kill(gateway, 'SIGSTOP');
    // The process says hello on a new connection, as if on its own, and that one is cut.
    const other = connect(join(lab.dir, 'data/run/gateway.sock')).on('error', () => {});
    const hello = { type: 'hello', protocol: 2, build: 'b', pid: gateway, draining: false };
    const [session] = await service.ask<{ id: string }[]>('sessions');
    other.write(`${JSON.stringify({ ...hello, port: lab.port, sessions: [session?.id] })}\n`);
    other.end();
    await becomes(async () => (await service.ask<string | null>('fault')) !== null, true);
    await service.ask('refuse Your access has ended.');
    assert.equal((await service.ask<Unreached[]>('unreached')).length, 1);
    process.kill(gateway, 'SIGCONT');
    assert.match((await open.ended).err, /Your access has ended\./);
    await becomes(async () => (await service.ask<Unreached[]>('unreached')).length, 0);
  });
});

test('a gateway process that stands still is unreached with nothing to revoke, and is no fault where another one serves', async () => {
  await using lab = await openProcessLab({ processes: 2 });
  const service = await lab.serve();
  const [first = 0, second = 0] = await lab.untilGateways(
    (all) => all.length === 2 && service.events('gateway.started').length === 2,
  );
  const unreached = async () => (await service.ask<Unreached[]>('unreached')).map(({ pid }) => pid);
  const fault = () => service.ask<string | null>('fault');
  process.kill(second, 'SIGSTOP');
  await eventually(unreached, (all) => all.includes(second));
  assert.equal(await fault(), null);
  process.kill(second, 'SIGCONT');
  await eventually(unreached, (all) => all.length === 0);

  const open = await lab.open('read line; echo "$line"');
  for (const pid of [first, second]) process.kill(pid, 'SIGSTOP');
  const words = await eventually(fault, (now) => now !== null);
  assert.match(words ?? '', /^process \d+ does not answer$/);
  assert.deepEqual(new Set(await unreached()), new Set([first, second]));
  for (const pid of [first, second]) process.kill(pid, 'SIGCONT');
  await eventually(fault, (now) => now === null);
  await eventually(unreached, (all) => all.length === 0);
  assert.deepEqual(new Set(lab.gateways()), new Set([first, second]));
  open.child.stdin?.write('still here\n');
  assert.match((await open.ended).out, /still here/);
  assert.equal((await lab.ssh(['echo in'])).out, 'in\n');
  await service.kill('SIGTERM');
});

test('only a gateway process that may have sessions concerned is asked', () => {
  const sent: ToProcess[] = [];
  const lines = { send: (message: ToProcess) => sent.push(message) > 0, unsent: () => 0, close() {} };
  const hello: Hello = {
    ...{ type: 'hello', protocol: 2, build: 'b', pid: process.pid, draining: false, sessions: [] },
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

  const foreign = new Member(process.pid, true);
  foreign.connected(lines, { ...hello, protocol: 3, port: 22, sessions: ['one'] }, 0);
  assert.equal(foreign.mayHave({ userId: 'anyone' }), true, 'whose session that is cannot be known');
  foreign.connected(lines, { ...hello, protocol: 3, port: 22 }, 0);
  assert.equal(foreign.mayHave({ userId: 'anyone' }), false, 'it has none');
});
