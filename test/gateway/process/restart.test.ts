/** The service is killed and comes back, and no session notices: real ssh, scp and sftp to a real sshd. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { defaultLimits } from '../../../src/gateway/ssh/limits.ts';
import { becomes } from '../../support/app.ts';
import { finished, test, whyNot } from '../lab.ts';
import { isAlive, openProcessLab } from './lab.ts';

const mebibytes = 2;

describe('a service that is away', { skip: whyNot }, () => {
  test('kill -9 of the service under twenty sessions that copy: not a byte is wrong, a login meanwhile gets in, each record is there once', async () => {
    await using lab = await openProcessLab();
    const first = await lab.serve();
    const gateways = lab.gateways();
    const shell = await lab.open();
    const content = randomBytes(mebibytes * 2 ** 20);
    const source = join(lab.dir, 'source');
    writeFileSync(source, content);
    for (const name of ['up', 'down']) mkdirSync(join(lab.dir, name));
    // Slow enough to be under way all the time that the service is away.
    const slow = ['-l', `${mebibytes * 1024}`];
    const copies = Array.from({ length: 20 }, (_, index) => {
      const sftp = index % 4 < 2 ? ['-s'] : ['-O'];
      const pair =
        index % 2 === 0
          ? [source, `127.0.0.1:${join(lab.dir, 'up', `${index}`)}`]
          : [`127.0.0.1:${source}`, join(lab.dir, 'down', `${index}`)];
      return finished(lab.start('scp', ['-q', ...sftp, ...slow, ...lab.options, ...pair]));
    });
    await becomes(() => first.ask<number>('count'), 21);
    await first.kill('SIGKILL');
    const login = lab.ssh(['echo in']);
    const short = lab.start('ssh', [...lab.options, '127.0.0.1', 'true']);
    // Now: it may end while the other login is waited for.
    const shortEnd = finished(short);
    await sleep(1_000);
    assert.deepEqual([short.exitCode, lab.gateways()], [null, gateways]);
    const second = await lab.serve();
    assert.equal((await login).out, 'in\n');
    assert.equal((await shortEnd).status, 0);
    assert.deepEqual(
      (await Promise.all(copies)).map(({ status, err }) => `${status}${err}`),
      Array.from({ length: 20 }, () => '0'),
    );
    for (let index = 0; index < 20; index += 1) {
      const file = join(lab.dir, index % 2 === 0 ? 'up' : 'down', `${index}`);
      assert.ok(readFileSync(file).equals(content), `${index} is as it was`);
    }
    shell.child.stdin?.end('still here');
    assert.equal((await shell.ended).out, 'still here');
    const entries = await second.entries(46);
    const count = (operation: string) => entries.filter((entry) => entry.operation === operation).length;
    assert.deepEqual([count('ssh.session.opened'), count('ssh.session.closed')], [23, 23]);
    assert.deepEqual([...new Set(entries.map(({ reason }) => reason))].sort(), ['login', 'the person left']);
    assert.deepEqual(lab.gateways(), gateways, 'it is the same process');
    await second.kill('SIGTERM');
    assert.deepEqual(lab.gateways(), []);
  });

  test('a login whose client leaves while the service is away is not asked about when it is back', async () => {
    await using lab = await openProcessLab();
    await (await lab.serve()).kill('SIGKILL');
    const login = lab.start('ssh', ['-v', ...lab.options, '127.0.0.1', 'true']);
    await new Promise<void>((resolve) => {
      let said = '';
      login.stderr?.on('data', (part) => {
        said += part;
        if (said.includes('Offering public key')) resolve();
      });
    });
    // Until it has been asked for in vain.
    await sleep(500);
    login.kill('SIGKILL');
    const service = await lab.serve();
    assert.equal((await lab.ssh(['echo in'])).out, 'in\n');
    assert.equal(await service.ask('asked'), 2, 'the key that was offered, and the one that was proven');
    await service.kill('SIGTERM');
  });

  test('what ends while the service is away is recorded once it is back, with its own reason', async () => {
    await using lab = await openProcessLab();
    const first = await lab.serve();
    const ending = await lab.open();
    const staying = await lab.open();
    await first.entries(2);
    await first.kill('SIGKILL');
    ending.child.stdin?.end();
    await ending.ended;
    const second = await lab.serve();
    const entries = await second.entries(3);
    assert.deepEqual(
      entries.map(({ operation, reason }) => [operation, reason]),
      [
        ['ssh.session.opened', 'login'],
        ['ssh.session.opened', 'login'],
        ['ssh.session.closed', 'the person left'],
      ],
    );
    assert.equal((await second.ask<unknown[]>('sessions')).length, 1);
    staying.child.stdin?.end();
    await staying.ended;
    await second.kill('SIGTERM');
  });

  test('unconfirmed sessions end when the grace is over, and then the process', async () => {
    const limits = { confirmGraceSeconds: 3, recheckSeconds: 1, loginGraceSeconds: 2 };
    await using lab = await openProcessLab({ limits });
    const service = await lab.serve();
    const [gateway = 0] = lab.gateways();
    const open = await lab.open();
    // What is not written down when the service ends is kept for a while only.
    await service.entries(1);
    await service.kill('SIGKILL');
    const { err } = await open.ended;
    assert.match(err, /Your access cannot be confirmed at the moment/);
    // Its records wait for a service as long as a login would.
    await becomes(() => isAlive(gateway), false);
    const next = await lab.serve();
    const entries = await next.entries(2);
    assert.deepEqual(
      entries.map(({ reason }) => reason),
      ['login', 'the service was cut off'],
    );
    await next.kill('SIGTERM');
  });

  test('a service that stands still confirms nothing: sessions end soon, and the records of that come when it goes on', async () => {
    assert.equal(defaultLimits.unconfirmedMs, 30_000);
    const limits = { confirmGraceSeconds: 3_600, unconfirmedSeconds: 3, recheckSeconds: 1 };
    await using lab = await openProcessLab({ limits });
    const service = await lab.serve();
    const open = await lab.open();
    process.kill(service.pid, 'SIGSTOP');
    assert.match((await open.ended).err, /Your access cannot be confirmed at the moment/);
    process.kill(service.pid, 'SIGCONT');
    const entries = await service.entries(2);
    assert.deepEqual(
      entries.map(({ reason }) => reason),
      ['login', 'access cannot be confirmed'],
    );
    await service.kill('SIGTERM');
  });

  test('a service that is stopped for longer than one that runs may leave sessions unconfirmed finds them open', async () => {
    const limits = { confirmGraceSeconds: 3_600, unconfirmedSeconds: 10, recheckSeconds: 1 };
    await using lab = await openProcessLab({ limits });
    const first = await lab.serve();
    const open = await lab.open();
    await first.kill('SIGKILL');
    await sleep(13_000);
    const second = await lab.serve();
    assert.equal((await second.ask<unknown[]>('sessions')).length, 1);
    open.child.stdin?.end('still here');
    assert.equal((await open.ended).out, 'still here');
    await second.kill('SIGTERM');
  });

  test('a process whose data directory is gone ends at once, and its address is free', async () => {
    await using lab = await openProcessLab();
    const service = await lab.serve();
    const [gateway = 0] = lab.gateways();
    await service.kill('SIGKILL');
    rmSync(join(lab.dir, 'data'), { recursive: true });
    const again = await lab.serve();
    assert.equal(isAlive(gateway), false);
    assert.equal((await lab.ssh(['echo in'])).out, 'in\n');
    await again.kill('SIGTERM');
  });
});

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
