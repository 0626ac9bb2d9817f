/** What a gateway process asks the service when the connection between them breaks. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Link } from '../../../src/gateway/process/link.ts';
import {
  type FromProcess,
  type Hello,
  readFromProcess,
  type Settings,
} from '../../../src/gateway/process/messages.ts';
import { defaultLimits } from '../../../src/gateway/ssh/limits.ts';
import { becomes } from '../../support/app.ts';

const hello: Hello = { type: 'hello', protocol: 2, build: 'b', pid: 1, draining: false, sessions: [] };
const settings: Settings = {
  listen: { host: '127.0.0.1', port: 1 },
  ...{ hostKeys: ['h'], clientKeys: ['c'], limits: defaultLimits, trustedProxies: [] },
  ...{ securityKeys: false, proxyProtocol: 'off', debug: false },
};
const attempt = { loginName: 'l', publicKey: 'p', fingerprint: 'f', remoteAddress: '::1' };

/** A service that welcomes, and does with each question what `onQuestion` says. */
async function openService(onQuestion: (id: number, socket: Socket) => void) {
  const dir = mkdtempSync(join(tmpdir(), 'andromeda-link-'));
  const path = join(dir, 'gateway.sock');
  const asked: number[] = [];
  const sockets = new Set<Socket>();
  let welcomed = 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    let rest = '';
    socket.setEncoding('utf8').on('data', (chunk) => {
      const lines = `${rest}${chunk}`.split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        const message = readFromProcess(line) as FromProcess;
        if (message.type === 'authorize') {
          asked.push(message.id);
          onQuestion(message.id, socket);
        }
        if (message.type !== 'hello') continue;
        welcomed += 1;
        socket.write(`${JSON.stringify({ type: 'welcome', settings })}\n`);
      }
    });
    socket.on('error', () => {});
  }).listen(path);
  await once(server, 'listening');
  const link = new Link({ path, hello: () => hello, onWelcome() {}, onMessage() {}, onFault() {} });
  link.start();
  return {
    link,
    asked,
    welcomed: () => welcomed,
    cut: () => sockets.forEach((socket) => void socket.destroy()),
    async [Symbol.asyncDispose]() {
      link.end();
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
      rmSync(dir, { recursive: true });
    },
  };
}

test('a question that breaks the connection is asked once more, and then no more', async () => {
  await using service = await openService((_, socket) => void socket.destroy());
  const { link, asked } = service;
  await assert.rejects(link.ask({ type: 'authorize', attempt }, 60_000), /lost twice/);
  await becomes(() => service.welcomed() >= 3, true);
  assert.deepEqual(asked, [1, 1]);
});

test('a question that is not of its form for the service fails at once, and no other with it', async () => {
  await using service = await openService((id, socket) => {
    const answer =
      id === 1
        ? { decision: { allowed: 'yes' } }
        : { decision: { allowed: false, reason: 'r', message: '', disclose: false } };
    socket.write(`${JSON.stringify({ type: 'decision', id, ...answer })}\n`);
  });
  const ask = () => service.link.ask({ type: 'authorize', attempt }, 60_000);
  const [first, second] = await Promise.allSettled([ask(), ask()]);
  assert.match(`${first.status === 'rejected' && first.reason}`, /not of its form/);
  assert.equal(second.status, 'fulfilled');
  assert.equal(service.welcomed(), 1);
});

test('a question whose connection is gone is withdrawn: it is not asked again', async () => {
  await using service = await openService(() => {});
  const gone = new AbortController();
  const answer = service.link.ask({ type: 'authorize', attempt }, 60_000, gone.signal);
  await becomes(() => service.asked.length, 1);
  gone.abort();
  await assert.rejects(answer, /is gone/);
  await assert.rejects(service.link.ask({ type: 'authorize', attempt }, 60_000, gone.signal), /is gone/);
  service.cut();
  await becomes(() => service.welcomed(), 2);
  // Behind it, nothing that was to be asked again is still to come.
  const late = new AbortController();
  const last = service.link.ask({ type: 'authorize', attempt }, 60_000, late.signal);
  await becomes(() => service.asked.length, 2);
  assert.deepEqual(service.asked, [1, 3]);
  late.abort();
  await assert.rejects(last, /is gone/);
});
