import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { test } from 'node:test';
import { eventually } from '../support/app.ts';
import { listenHere } from './support.ts';

test('what is not readable as a request is refused with the standard body', async () => {
  const listener = await listenHere((_request, response) => response.end('ok'));
  const say = async (text: string) => {
    const socket = connect(listener.port, '127.0.0.1').setEncoding('utf8');
    socket.write(text);
    let reply = '';
    socket.on('data', (part) => {
      reply += part;
    });
    await once(socket, 'close');
    const [head = '', body = ''] = reply.split('\r\n\r\n');
    return { status: head.split(' ')[1], body: JSON.parse(body) };
  };
  const cases: [string, string, string?][] = [
    ['nonsense\r\n\r\n', 'This is not readable as an HTTP request.'],
    ['SSH-2.0-OpenSSH_9.2\r\n', 'This is not readable as an HTTP request.'],
    ['GET / HTTP/1.1\r\n\r\n', 'The request lacks a Host header.'],
    [`GET / HTTP/1.1\r\nX: ${'x'.repeat(80_000)}\r\n\r\n`, 'The request headers are too large.'],
    ['GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n', 'The request has more than one Host header.'],
    [
      'GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n',
      'The request has more than one Authorization header.',
    ],
    [
      'GET / HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n',
      'The request expects what is not known here: of Expect, 100-continue is.',
      '417',
    ],
    ['CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n', 'CONNECT is not answered here: this is no proxy.'],
  ];
  for (const [text, message, expected = '400'] of cases) {
    const { status, body } = await say(text);
    assert.equal(status, expected);
    assert.deepEqual(body, { code: 'invalid_request', message, retryable: false });
  }
  await listener.stop(100);
});

/** A listener whose `/slow` waits for `release`, and a proxy that keeps a connection to it. */
async function startKept() {
  const held = Promise.withResolvers<void>();
  const slow = Promise.withResolvers<void>();
  const listener = await listenHere(async (incoming, response) => {
    if (incoming.url === '/slow') {
      slow.resolve();
      await held.promise;
    }
    response.end('ok');
  });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const ask = async (path: string, by: Agent | false = agent) => {
    const asking = request({ host: '127.0.0.1', port: listener.port, path, agent: by }).end();
    const [response] = (await once(asking, 'response')) as [IncomingMessage];
    const closed = once(response.socket, 'close');
    const text = (await response.setEncoding('utf8').toArray()).join('');
    return { connection: response.headers.connection, wasKept: asking.reusedSocket, closed, text };
  };
  return { listener, ask, isSlow: slow.promise, release: held.resolve };
}

test('a listener that stops answers for a while, as the last on each connection, and then what is under way', async () => {
  const { listener, ask, isSlow, release } = await startKept();
  assert.equal((await ask('/')).connection, 'keep-alive');
  const other = new Agent({ keepAlive: true });
  const underWay = ask('/slow', other);
  await isSlow;
  const stopped = listener.stop(600_000, 1_000);
  const last = await ask('/');
  assert.deepEqual([last.wasKept, last.connection], [true, 'close']);
  await last.closed;
  assert.equal((await ask('/', false)).connection, 'close');
  await eventually(
    () => ask('/', false).then(String, ({ code }: NodeJS.ErrnoException) => code),
    (code) => code === 'ECONNREFUSED',
  );
  release();
  const ended = await underWay;
  assert.equal(ended.connection, 'close');
  await ended.closed;
  await stopped;
});

test('while nothing is served requests wait for what comes next, on connections that stay open', async () => {
  const { listener, ask, isSlow, release } = await startKept();
  await ask('/');
  const underWay = ask('/slow', new Agent({ keepAlive: true }));
  await isSlow;
  const paused = listener.pause(600_000);
  const waiting = [ask('/'), ask('/', false)];
  release();
  assert.equal((await underWay).text, 'ok');
  await paused;
  listener.serve((_request, response) => response.end('next'), {});
  const [kept, fresh] = await Promise.all(waiting);
  assert.deepEqual([kept?.text, kept?.wasKept, fresh?.text], ['next', true, 'next']);
  await listener.stop(0);
});

test('what is under way when nothing is served any more is cut at the end of the time for it', async () => {
  for (const how of ['pause', 'stop'] as const) {
    const { listener, ask, isSlow } = await startKept();
    const underWay = ask('/slow', false);
    underWay.catch(() => {});
    await isSlow;
    await listener[how](50);
    await assert.rejects(underWay, /socket hang up/);
    if (how === 'pause') await listener.stop(0);
  }
});

test('what nothing is asked on is closed at the end of the time for it, and without one at once', async () => {
  for (const lingerMs of [50, 0]) {
    const { listener, ask } = await startKept();
    const { closed } = await ask('/');
    await listener.stop(600_000, lingerMs);
    await closed;
  }
});
