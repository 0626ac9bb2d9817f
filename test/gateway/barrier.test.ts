/** What is thrown anywhere in one connection ends that connection: the process and the next person do not notice. */
import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createBarrier } from '../../src/gateway/ssh/transport/barrier.ts';
import { Transport } from '../../src/gateway/ssh/transport/transport.ts';
import { becomes } from '../support/app.ts';
import { firstOutput, type Lab, openLab, whyNot } from './lab.ts';

const fail = () => {
  throw new Error('thrown by the test');
};

test('every step of a fault runs, once, whatever a step or a later handler throws', async () => {
  const ran: string[] = [];
  const barrier = createBarrier();
  barrier.onFault(fail);
  barrier.onFault((cause) => ran.push(`${cause}`));
  barrier.guard(fail)();
  barrier.after(1, fail);
  await barrier.watch(Promise.reject(new Error('late')));
  await sleep(20);
  assert.deepEqual(ran, ['Error: thrown by the test']);
});

test('in the folder nothing listens or waits outside a barrier', () => {
  const folder = new URL('../../src/gateway/ssh/', import.meta.url);
  const loose: string[] = [];
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.ts') || file === 'transport/barrier.ts') continue;
    const text = readFileSync(new URL(file, folder), 'utf8').replace(/^\s*(\*|\/\/).*$/gm, '');
    for (const [call] of text.matchAll(
      /(\.on(ce)?|\bsetTimeout|\bsetImmediate|\bsetInterval|\bnextTick|\.then)\((\s*'\w+',)?\s*\S.*/g,
    ))
      if (!/\((\s*'\w+',)?\s*(barrier\.)?guard(ed)?|, on[A-Z]\w+\)|goOn/.test(call))
        loose.push(`${file}: ${call}`);
  }
  // The listening socket itself, and what a pass over all sessions waits for.
  const known = [
    "index.ts: .on('error', (error) => log.error('gateway.listen.failed', { error }));",
    'index.ts: setInterval(tick, Math.min(tickMs, this.#recheckMs)).unref(),',
    'index.ts: setInterval(() => void this.recheck(), this.#recheckMs).unref(),',
    'index.ts: setTimeout(resolve, drainMs);',
    'index.ts: setTimeout(() => reject(new Error(`no answer within $' + '{ms} ms`)), ms).unref();',
  ];
  assert.deepEqual(loose.sort(), known.sort());
});

describe('thrown in a connection', { skip: whyNot }, () => {
  let lab: Lab;
  const sockets = new Set<Socket>();
  const onSocket = (message: unknown) => {
    const { socket } = message as { socket: Socket };
    sockets.add(socket);
  };
  const uncaught: unknown[] = [];
  const onUncaught = (error: unknown) => uncaught.push(error);
  before(async () => {
    process.on('uncaughtException', onUncaught).on('unhandledRejection', onUncaught);
    subscribe('net.server.socket', onSocket);
    subscribe('net.client.socket', onSocket);
    // What is not given back shows soon.
    lab = await openLab({
      sessionsPerUser: 3,
      sessionsPerSource: 3,
      recheckMs: 50,
      rekeyMs: 150,
      keepaliveMs: 2000,
    });
  });
  after(async () => {
    unsubscribe('net.server.socket', onSocket);
    unsubscribe('net.client.socket', onSocket);
    process.off('uncaughtException', onUncaught).off('unhandledRejection', onUncaught);
    await lab.close();
  });

  /** Makes a property throw where the gateway uses it, and nowhere else; the result mends it. */
  function spoil(target: object, name: string): () => void {
    const own = Object.getOwnPropertyDescriptor(target, name);
    let from = target;
    while (!Object.hasOwn(from, name)) from = Object.getPrototypeOf(from);
    const { get, value } = Object.getOwnPropertyDescriptor(from, name) ?? {};
    Object.defineProperty(target, name, {
      configurable: true,
      get() {
        if (/\/src\/gateway\//.test(`${new Error().stack}`)) fail();
        return get ? get.call(this) : value;
      },
      set() {},
    });
    return () => {
      if (own) Object.defineProperty(target, name, own);
      else Reflect.deleteProperty(target, name);
    };
  }

  /** Spoils a thing before a login and during a session, and looks whether all is well afterwards. */
  async function survives(spoilt: () => (() => void)[]): Promise<void> {
    for (const stage of ['login', 'session']) {
      const child = lab.start('ssh', [...lab.options, 'gateway', 'echo up; cat']);
      if (stage === 'session') await firstOutput(child);
      const restore = spoilt();
      try {
        child.stdin?.write('x'.repeat(100_000));
        await sleep(300);
        child.kill('SIGKILL');
        await lab.gateway.recheck();
        lab.gateway.close({}, 'closed by an operator', 'Bye.');
        await sleep(100);
      } finally {
        for (const each of restore) each();
      }
      lab.gateway.close({}, 'closed by an operator', 'Bye.');
      await becomes(() => lab.gateway.sessions().length, 0);
      for (const socket of sockets) socket.destroy();
      sockets.clear();
    }
    // That the next person gets in shows with the next session.
    assert.deepEqual(uncaught.splice(0), []);
  }

  const inTransport = Object.getOwnPropertyNames(Transport.prototype).filter(
    (name) => name !== 'constructor',
  );
  for (const name of inTransport)
    test(`by the transport's ${name}`, () => survives(() => [spoil(Transport.prototype, name)]));

  const require = createRequire(import.meta.url);
  const Protocol = require('ssh2/lib/protocol/Protocol.js');
  for (const name of ['parse', 'rekey', 'cleanup'])
    test(`by ssh2's ${name}`, () => survives(() => [spoil(Protocol.prototype, name)]));

  for (const name of [
    'write',
    'end',
    'pause',
    'resume',
    'destroy',
    'cork',
    'uncork',
    'writableLength',
    'writable',
  ])
    test(`by ${name} of its sockets`, () =>
      survives(() => [...sockets].map((socket) => spoil(socket, name))));

  test('by the log', () => survives(() => [spoil(lab.events, 'push')]));
  test('by the records', () => survives(() => [spoil(lab.recorder, 'record')]));
  test('by the decision', () => survives(() => [spoil(lab.decide, 'next')]));

  test('what was thrown is in the log', async () => {
    const restore = spoil(lab.recorder, 'record');
    await lab.ssh(['gateway', 'true']);
    restore();
    assert.equal((await lab.ssh(['gateway', 'exit 6'])).status, 6);
    const failed = lab.events.filter(({ event }) => event === 'gateway.connection.failed').at(-1);
    assert.match(JSON.stringify(failed), /thrown by the test/);
  });
});
