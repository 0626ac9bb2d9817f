/** A start whose gateway cannot listen, or whose disk is full: what fails, what goes on, and what is said of it. */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  constants,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { parse, stringify } from 'yaml';
import { becomes, eventually } from '../../support/app.ts';
import { freePorts } from '../../support/ports.ts';
import { program } from '../../support/program.ts';
import { within } from '../../support/within.ts';
import { canConnect, finished, whyNot } from '../lab.ts';
import { isAlive, openProcessLab, type ProcessLab } from './lab.ts';

const noTmpfs = process.getuid?.() !== 0 && 'only root can mount a disk that is full';

/** Changes the settings of the lab's service. */
function configure(lab: ProcessLab, change: object): void {
  const file = join(lab.dir, 'andromeda.yaml');
  writeFileSync(file, stringify({ ...parse(readFileSync(file, 'utf8')), ...change }));
}

/** Another program that listens on the port. */
async function taken(port: number) {
  const other = createServer().listen(port, '127.0.0.1');
  await new Promise((resolve) => other.once('listening', resolve));
  return { [Symbol.dispose]: () => void other.close() };
}

describe('a start', { skip: whyNot }, () => {
  test('a start that fails for an API ends at once although its log is not read, and leaves no gateway', async () => {
    await using lab = await openProcessLab();
    const file = join(lab.dir, 'andromeda.yaml');
    const { platform } = parse(readFileSync(file, 'utf8'));
    using _other = await taken(Number(platform.listen.split(':')[1]));
    const fifo = join(lab.dir, 'log');
    execFileSync('mkfifo', [fifo]);
    const pipe = openSync(fifo, constants.O_RDWR | constants.O_NONBLOCK);
    assert.throws(() => {
      for (;;) writeSync(pipe, Buffer.alloc(4096));
    }, /EAGAIN/);
    const serve = spawn(program, ['serve', '--config', file], { stdio: ['ignore', 'ignore', pipe] });
    closeSync(pipe);
    using _killed = { [Symbol.dispose]: () => void serve.kill('SIGKILL') };
    const [status] = await within('the service to end', once(serve, 'exit'));
    assert.equal(status, 69);
    assert.deepEqual(lab.gateways(), []);
  });

  test('a new address that cannot be had: sessions and the rest go on, the fault is said, and it is tried again', async () => {
    await using lab = await openProcessLab();
    const first = await lab.serve();
    const open = await lab.open();
    await first.kill('SIGHUP');
    const [port = 0] = await freePorts(1);
    const other = await taken(port);
    configure(lab, { gateway: { listen: `127.0.0.1:${port}`, port } });
    const second = await lab.serve();
    assert.match((await second.ask<string | null>('fault')) ?? '', /EADDRINUSE/);
    assert.equal(await second.ask('count'), 1);
    other[Symbol.dispose]();
    await becomes(() => second.ask<string | null>('fault'), null);
    open.child.stdin?.end('still here');
    const { out } = await within('the session to end', open.ended);
    assert.equal(out, 'still here');
    await second.kill('SIGTERM');
  });

  test('a new address that cannot be had fails the start where there is no session', async () => {
    await using lab = await openProcessLab();
    await (await lab.serve()).kill('SIGHUP');
    const [port = 0] = await freePorts(1);
    using _other = await taken(port);
    configure(lab, { gateway: { listen: `127.0.0.1:${port}`, port } });
    await assert.rejects(lab.serve(), /SSH gateway cannot start: 127\.0\.0\.1:\d+ is in use/);
    await becomes(() => lab.gateways().filter(isAlive).length, 0);
  });

  test('on a full disk a gateway process that ends is replaced, and the service stops as ever', {
    skip: noTmpfs,
  }, async () => {
    await using lab = await openProcessLab();
    const disk = join(lab.dir, 'data');
    mkdirSync(disk);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=6m', 'tmpfs', disk]);
    try {
      const service = await lab.serve();
      const [gateway = 0] = lab.gateways();
      const filler = openSync(join(disk, 'filler'), 'w');
      assert.throws(() => {
        for (;;) writeSync(filler, Buffer.alloc(4096));
      }, /ENOSPC/);
      closeSync(filler);
      process.kill(gateway, 'SIGKILL');
      await becomes(() => service.events('gateway.started').length, 2);
      assert.equal((await lab.ssh(['echo in'])).out, 'in\n');
      assert.equal(service.events('gateway.process.fault').length, 1, 'it is said once');
      rmSync(join(disk, 'filler'));
      await lab.untilGateways((pids) => pids.length === 1 && pids[0] !== gateway);
      await service.kill('SIGTERM');
    } finally {
      execFileSync('umount', ['-l', disk]);
    }
  });

  test('a process from before that ends while the service starts is replaced', async () => {
    await using lab = await openProcessLab();
    const first = await lab.serve();
    const [gateway = 0] = lab.gateways();
    await first.kill('SIGKILL');
    // The service ends one that is silent, and learns of the end only when it waits for somebody to listen.
    process.kill(gateway, 'SIGSTOP');
    const second = await lab.serve();
    assert.notDeepEqual(lab.gateways(), [gateway]);
    assert.equal((await lab.ssh(['echo in'])).out, 'in\n');
    await second.kill('SIGTERM');
  });

  test('a process from before that gets no processor while the service starts keeps its sessions', async () => {
    await using lab = await openProcessLab();
    const first = await lab.serve();
    const open = await lab.open();
    const gateways = lab.gateways();
    await first.kill('SIGKILL');
    for (const pid of gateways) process.kill(pid, 'SIGSTOP');
    const starting = lab.serve();
    // From then on it waits for them.
    await becomes(() => canConnect(join(lab.dir, 'data/run/gateway.sock')), true);
    await sleep(3_000);
    for (const pid of gateways) process.kill(pid, 'SIGCONT');
    const second = await starting;
    assert.deepEqual(lab.gateways(), gateways);
    open.child.stdin?.end('still here');
    assert.equal((await within('the session to end', open.ended)).out, 'still here');
    await second.kill('SIGTERM');
  });

  test('the service is ready only when its gateway listens, and never where that cannot', async () => {
    await using lab = await openProcessLab();
    const file = join(lab.dir, 'andromeda.yaml');
    const { platform } = parse(readFileSync(file, 'utf8'));
    const readiness = async () => {
      const signal = AbortSignal.timeout(7_000);
      const answer = await fetch(`http://${platform.listen}/readyz`, { signal }).catch(() => undefined);
      const text = await answer?.text().catch(() => '');
      return answer && { status: answer.status, text };
    };
    using other = await taken(lab.port);
    const failing = lab.start(program, ['serve', '--config', file]);
    let isOver = false;
    // Its output is read meanwhile: a program may wait for the reader of its log.
    const failed = finished(failing).finally(() => {
      isOver = true;
    });
    const seen: unknown[] = [];
    const watching = (async () => {
      while (!isOver) {
        seen.push((await readiness())?.status);
        await sleep(50);
      }
    })();
    const { status, signal, err } = await within('the start to fail', failed).finally(() => {
      isOver = true;
    });
    await watching;
    assert.deepEqual([status, signal], [69, null], err);
    assert.match(err, /"event":"serve\.failed"/);
    assert.equal(seen.includes(200), false);
    const told = err.split('\n').filter((line) => line.includes('"http.unready"'));
    assert.ok(told.length <= 3, `the reason is logged once in a while, not ${told.length} times`);
    assert.doesNotMatch(told.join(), /"stack"/);
    other[Symbol.dispose]();
    const serving = lab.start(program, ['serve', '--config', file]);
    const ended = finished(serving);
    await eventually(readiness, (answer) => answer?.status === 200);
    const [gateway = 0] = lab.gateways();
    assert.equal(await canConnect(lab.port), true);
    process.kill(gateway, 'SIGSTOP');
    const halted = await eventually(readiness, (answer) => answer?.status === 503);
    assert.match(
      halted?.text ?? '',
      new RegExp(`The SSH gateway does not serve: process ${gateway} does not answer`),
    );
    process.kill(gateway, 'SIGCONT');
    await eventually(readiness, (answer) => answer?.status === 200);
    process.kill(gateway, 'SIGKILL');
    const unready = await eventually(readiness, (answer) => answer?.status === 503);
    assert.match(unready?.text ?? '', /The SSH gateway does not serve: /);
    await eventually(readiness, (answer) => answer?.status === 200);
    serving.kill('SIGTERM');
    assert.equal((await within('the service to stop', ended)).status, 0);
  });
});
