/** Whatever comes over the socket between the service and its gateway processes, neither side ends or grows by it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openLines } from '../../../src/gateway-process/lines.ts';
import { readFromProcess, readToProcess } from '../../../src/gateway-process/messages.ts';
import { eventually } from '../../support/app.ts';
import { whyNot } from '../lab.ts';
import { openProcessLab } from './lab.ts';

const hello = { type: 'hello', protocol: 1, build: 'b', pid: 1, draining: false, sessions: [] };

test('a line is a message of its form, or none', () => {
  assert.deepEqual(readFromProcess(JSON.stringify(hello)), hello);
  assert.equal(readFromProcess('{"type":"of-a-later-version","what":1}'), undefined);
  assert.equal(readToProcess('{"type":"__proto__"}'), undefined);
  const wrong: [(line: string) => unknown, unknown][] = [
    [readFromProcess, null],
    [readFromProcess, []],
    [readFromProcess, { type: 7 }],
    [readFromProcess, { ...hello, pid: '1' }],
    [readFromProcess, { ...hello, sessions: [1] }],
    [readFromProcess, { ...hello, sessions: ['x'.repeat(5_000)] }],
    [readFromProcess, { type: 'record', seq: 1, event: { kind: 'opened', at: 1 } }],
    [readFromProcess, { type: 'record', seq: 1, event: { kind: 'other', at: 1 } }],
    [readFromProcess, { type: 'authorize', id: 1, attempt: { loginName: 'x' } }],
    [readFromProcess, { type: 'log', level: 'silent', event: 'gateway.started', fields: {} }],
    [readToProcess, { type: 'welcome', settings: {} }],
    [readToProcess, { type: 'close', filter: { id: 1 }, reason: '', text: '' }],
    [readToProcess, { type: 'handOver', command: 'sh' }],
  ];
  for (const [read, message] of wrong)
    assert.throws(() => read(JSON.stringify(message)), `${JSON.stringify(message)}`);
  for (const text of ['', '{', 'SSH-2.0-x', '\u0000'.repeat(100)]) assert.throws(() => readFromProcess(text));
});

/** Two ends of a connection: what the second is sent goes through `openLines`. */
async function pair(onMessage: (message: unknown) => void) {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const peer = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [socket] = (await once(server, 'connection')) as [Socket];
  const faults: unknown[] = [];
  let closed: string | true | undefined;
  const lines = openLines<unknown, object>(socket, {
    read: (line) => JSON.parse(line),
    onMessage,
    onClose: (fault) => {
      closed = fault ?? true;
    },
    onFault: (error) => faults.push(error),
  });
  peer.on('error', () => {});
  return {
    peer,
    lines,
    faults,
    closed: () => closed,
    [Symbol.dispose]: () => void [peer.destroy(), server.close()],
  };
}

test('what is thrown while a message is handled ends nothing; the next one is handled', async () => {
  const got: unknown[] = [];
  using at = await pair((message) => {
    got.push(message);
    if (message === 1) throw new Error('thrown by the test');
  });
  at.peer.write('1\n2');
  at.peer.write('3\n');
  await eventually(
    async () => got.length,
    (count) => count === 2,
  );
  assert.deepEqual([got, at.faults.length, at.closed()], [[1, 23], 1, undefined]);
});

test('half a line at the end is no message; garbage and a line without an end close the connection', async () => {
  const got: unknown[] = [];
  for (const [text, fault] of [
    ['1\n2', true],
    ['nonsense\n', /JSON/],
    ['x'.repeat(10 * 2 ** 20), /a line longer than/],
  ] as const) {
    using at = await pair((message) => got.push(message));
    at.peer.write(text);
    if (fault === true) at.peer.end();
    const closed = await eventually(async () => at.closed(), Boolean);
    if (fault === true) assert.equal(closed, true);
    else assert.match(`${closed}`, fault);
  }
  assert.deepEqual(got, [1]);
});

test('a peer that never reads is cut off at a bound', async () => {
  using at = await pair(() => {});
  at.peer.pause();
  const message = { text: 'x'.repeat(2 ** 20) };
  let sent = 0;
  while (at.lines.send(message) && sent < 200) sent += 1;
  assert.ok(sent < 60, `${sent} MiB`);
  await eventually(async () => at.closed(), Boolean);
});

test('whoever connects to the service’s socket and says nothing, garbage or too much is closed; logins go on', {
  skip: whyNot,
  timeout: 60_000,
}, async () => {
  await using lab = await openProcessLab();
  const service = await lab.serve();
  const path = join(lab.dir, 'data/run/gateway.sock');
  const others = ['', '\n', 'GET / HTTP/1.1\r\n\r\n', '{"type":"stop"}\n', 'x'.repeat(5 * 2 ** 20)].map(
    (text) => {
      const socket = connect(path);
      socket.on('error', () => {}).write(text);
      return socket.resume();
    },
  );
  // More than there may be, all silent.
  for (let n = 0; n < 100; n += 1)
    others.push(
      connect(path)
        .on('error', () => {})
        .resume(),
    );
  const liar = connect(path)
    .on('error', () => {})
    .resume();
  liar.write(`${JSON.stringify({ ...hello, build: 'none', port: 22, sessions: ['x'] })}\n`);
  assert.equal((await lab.ssh(['echo in'])).out, 'in\n');
  await eventually(async () => others.every(({ destroyed }) => destroyed), Boolean, 10_000);
  liar.destroy();
  await sleep(500);
  assert.equal((await lab.ssh(['echo in'])).out, 'in\n');
  await service.kill('SIGTERM');
  assert.deepEqual(lab.gateways(), []);
});
