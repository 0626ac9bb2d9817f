/** Gateway processes that follow one another on the same socket, and what the service waits for before it changes a cluster. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Unreached } from '../../../src/gateway/process/gateways.ts';
import { Member } from '../../../src/gateway/process/member.ts';
import type { Hello, ToProcess } from '../../../src/gateway/process/messages.ts';
import { becomes, eventually } from '../../support/app.ts';
import { limit } from '../../support/limit.ts';
import { whyNot } from '../lab.ts';
import { isAlive, openProcessLab, type ProcessLab, type Service } from './lab.ts';

/** Connects and waits for the server's version; resolves to what went wrong, or nothing. */
function greeting(port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.setTimeout(limit(60_000), () => socket.destroy(new Error('nothing came')));
    socket.once('data', (data) => {
      socket.destroy();
      resolve(/^SSH-2\.0-/.test(`${data}`) ? undefined : `${data}`);
    });
    socket.once('error', (error) => resolve(error.message));
    socket.once('close', () => resolve('closed without a word'));
  });
}

/** Connects again and again, four at a time, until `end`. */
function keepConnecting(port: number) {
  let isOver = false;
  let count = 0;
  const lost: string[] = [];
  const workers = Array.from({ length: 4 }, async () => {
    while (!isOver) {
      const fault = await greeting(port);
      if (fault !== undefined) lost.push(fault);
      count += 1;
      await sleep(20);
    }
  });
  return async () => {
    isOver = true;
    await Promise.all(workers);
    return { count, lost };
  };
}

describe('processes that follow one another', { skip: whyNot }, () => {
  test('a new build takes over from the old one again and again: no connection is lost, and sessions stay where they are', async () => {
    await using lab = await openProcessLab();
    let service = await lab.serve('build-0');
    const [first = 0] = lab.gateways();
    const open = await lab.open();
    const end = keepConnecting(lab.port);
    for (let round = 1; round <= 3; round += 1) {
      const before = lab.gateways();
      await service.kill('SIGHUP');
      service = await lab.serve(`build-${round}`);
      await lab.untilGateways((now) => now.length === 2 && now.some((pid) => !before.includes(pid)));
    }
    const { count, lost } = await end();
    assert.deepEqual(lost, [], `of ${count}`);
    assert.ok(count > 50, `${count} connections`);
    assert.ok(isAlive(first), 'it still has a session');
    assert.equal(await service.ask('count'), 1);
    assert.equal((await lab.ssh(['echo in'])).out, 'in\n');
    open.child.stdin?.end('still here');
    assert.equal((await open.ended).out, 'still here');
    await becomes(() => lab.gateways().length, 1);
    assert.equal(isAlive(first), false, 'it ended with its last session');
    const entries = await service.entries(4);
    assert.deepEqual(
      entries.map(({ reason }) => reason),
      ['login', 'login', 'the person left', 'the person left'],
    );
    await service.kill('SIGTERM');
    assert.deepEqual(lab.gateways(), []);
  });

  test('a setting that changed holds for new logins once the service is back, of the same build too', async () => {
    await using lab = await openProcessLab({ securityKeys: false });
    const file = join(lab.dir, 'andromeda.yaml');
    const announced = async () => {
      const { err } = await lab.ssh(['-v', 'true']);
      return /server-sig-algs=<([^>]*)>/.exec(err)?.[1]?.split(',') ?? [];
    };
    let service = await lab.serve('build-0');
    assert.ok(!(await announced()).includes('sk-ssh-ed25519@openssh.com'));
    for (const isOn of [true, false]) {
      const text = readFileSync(file, 'utf8');
      writeFileSync(file, text.replace(/securityKeys: \w+/, `securityKeys: ${isOn}`));
      await service.kill('SIGHUP');
      service = await lab.serve('build-0');
      await eventually(announced, (types) => types.includes('sk-ssh-ed25519@openssh.com') === isOn);
    }
    await service.kill('SIGTERM');
  });

  test('three processes share the address; one that is killed is replaced, and no connection is refused meanwhile', async () => {
    await using lab = await openProcessLab({ processes: 3 });
    const service = await lab.serve();
    const all = await lab.untilGateways(
      (pids) => pids.length === 3 && service.events('gateway.started').length === 3,
    );
    const end = keepConnecting(lab.port);
    const [killed = 0] = all;
    process.kill(killed, 'SIGKILL');
    await lab.untilGateways(
      (pids) => pids.length === 3 && !pids.includes(killed) && service.events('gateway.started').length === 4,
    );
    const { lost } = await end();
    // What the killed one had accepted goes with it; nobody finds the address closed.
    assert.deepEqual(
      lost.filter((fault) => /ECONNREFUSED/.test(fault)),
      [],
    );
    assert.ok(lost.length <= 4, lost.join(', '));
    const logins = await Promise.all(Array.from({ length: 6 }, () => lab.ssh(['echo in'])));
    assert.deepEqual(
      logins.map(({ out }) => out),
      logins.map(() => 'in\n'),
    );
    await service.kill('SIGTERM');
    assert.deepEqual(lab.gateways(), []);
  });
});

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

test('a gateway process that stands still is unreached with nothing to revoke, and is no fault where another one serves', {
  skip: whyNot,
}, async () => {
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
