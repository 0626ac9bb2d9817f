import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import type { Deadlines } from '../../src/api/http/listen.ts';
import { startHarness } from '../identity/issuer/harness.ts';
import { becomes } from '../support/app.ts';
import { createBusinessApi, listenHere } from './support.ts';

const api = createBusinessApi({ operations: { registerSshKey: async () => ({}) } });
const deadlines = { headersMs: 300, requestMs: 600, keepAliveMs: 500, idleMs: 600_000, closeMs: 200 };
const each = 10;

const post = (path: string, type: string) => `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: ${type}\r\n`;
const halves = (path: string, type: string): Record<string, string> => ({
  'nothing at all': '',
  'half a request line': 'GET / HT',
  'half the headers': `${post(path, type)}Content-`,
  'half a body': `${post(path, type)}Content-Length: 500\r\n\r\n{"public_key`,
  'half a body in chunks': `${post(path, type)}Transfer-Encoding: chunked\r\n\r\n5\r\n{"pub\r\n`,
  'nonsense, and no end of it': 'nonsense\r\n\r\n',
  'one request and then nothing': 'GET /nothing-here HTTP/1.1\r\nHost: x\r\n\r\n',
});

const unread = (path: string, times: number) => [`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(times)];

test('half-sent requests hold no socket of an API', async () => {
  await assertAllGone(api, Object.values(halves('/v1/ssh-keys', 'application/json')), each);
});

test('half-sent requests hold no socket of the issuer', async () => {
  await using harness = await startHarness();
  const sent = Object.values(halves('/device/sign-in', 'application/x-www-form-urlencoded'));
  await assertAllGone(harness.issuer.handle, sent, each);
});

test('replies that are not read hold no socket of an API', async () => {
  await assertAllGone(api, unread('/openapi.json', 300), 2, { idleMs: 1_000 });
});

test('replies that are not read hold no socket of the issuer', async () => {
  await using harness = await startHarness();
  const sent = unread('/.well-known/openid-configuration', 2_000);
  await assertAllGone(harness.issuer.handle, sent, 2, { idleMs: 1_000 });
});

test('a stop cuts connections that have sent nothing', async () => {
  const listener = await listenHere(() => {});
  const socket = connect(listener.port, '127.0.0.1');
  socket.on('error', () => {});
  await once(socket, 'connect');
  const closed = once(socket, 'close');
  await listener.stop(50);
  socket.resume();
  await closed;
});

/** Sends each text `times` times on connections of its own; every second client reads nothing. */
async function assertAllGone(
  handler: RequestListener,
  texts: readonly string[],
  times: number,
  more: Partial<Deadlines> = {},
): Promise<void> {
  const listener = await listenHere(handler, { deadlines: { ...deadlines, ...more } });
  const accepted: Socket[] = [];
  const onAccepted = (message: unknown) => {
    const { socket } = message as { socket: Socket };
    if (socket.localPort === listener.port) accepted.push(socket);
  };
  subscribe('net.server.socket', onAccepted);
  const clients: Socket[] = [];
  // `allowHalfOpen`: a client that does not close its side when the server has closed its own.
  const open = (text: string, reads: boolean) => {
    const client = connect({ port: listener.port, host: '127.0.0.1', allowHalfOpen: true });
    client.on('error', () => {});
    if (reads) client.resume();
    client.write(text);
    clients.push(client);
  };
  try {
    for (const text of texts) for (let n = 0; n < times; n += 1) open(text, n % 2 === 1);
    const count = clients.length;
    await becomes(() => accepted.length, count);
    await becomes(() => accepted.every((socket) => socket.destroyed), true);
  } finally {
    unsubscribe('net.server.socket', onAccepted);
    for (const client of clients) client.destroy();
    await listener.stop(0);
  }
}
