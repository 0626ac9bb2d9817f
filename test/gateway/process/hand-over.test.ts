/** One gateway process after another on the same listening socket, and several at a time: nobody who connects is lost. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { becomes, eventually } from '../../support/app.ts';
import { limit } from '../../support/limit.ts';
import { whyNot } from '../lab.ts';
import { isAlive, openProcessLab } from './lab.ts';

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
