import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { test } from 'node:test';
import { listen } from '../../src/http/listen.ts';

test('what is not readable as a request is refused with the standard body', async () => {
  const listener = await listen((_request, response) => response.end('ok'), {
    name: 'test',
    host: '127.0.0.1',
    port: 0,
  });
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
  const cases: [string, string][] = [
    ['nonsense\r\n\r\n', 'This is not readable as an HTTP request.'],
    ['SSH-2.0-OpenSSH_9.2\r\n', 'This is not readable as an HTTP request.'],
    ['GET / HTTP/1.1\r\n\r\n', 'The request lacks a Host header.'],
    [`GET / HTTP/1.1\r\nX: ${'x'.repeat(40_000)}\r\n\r\n`, 'The request headers are too large.'],
  ];
  for (const [text, message] of cases) {
    const { status, body } = await say(text);
    assert.equal(status, '400');
    assert.deepEqual(body, { code: 'invalid_request', message, retryable: false });
  }
  await listener.stop(100);
});

/** A listener whose `/slow` waits for `release`, and a proxy that keeps a connection to it. */
async function startKept() {
  const held = Promise.withResolvers<void>();
  const slow = Promise.withResolvers<void>();
  const listener = await listen(
    async (incoming, response) => {
      if (incoming.url === '/slow') {
        slow.resolve();
        await held.promise;
      }
      response.end('ok');
    },
    { name: 'test', host: '127.0.0.1', port: 0 },
  );
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const ask = async (path: string, by: Agent | false = agent) => {
    const asking = request({ host: '127.0.0.1', port: listener.port, path, agent: by }).end();
    const [response] = (await once(asking, 'response')) as [IncomingMessage];
    const closed = once(response.socket, 'close');
    response.resume();
    await once(response, 'end');
    return { connection: response.headers.connection, wasKept: asking.reusedSocket, closed };
  };
  return { listener, ask, isSlow: slow.promise, release: held.resolve };
}

test('a listener that stops answers what comes on kept connections, as the last on each, and takes no others', async () => {
  const { listener, ask, isSlow, release } = await startKept();
  assert.equal((await ask('/')).connection, 'keep-alive');
  const other = new Agent({ keepAlive: true });
  const underWay = ask('/slow', other);
  await isSlow;
  // Nothing here ends by time.
  const stopped = listener.stop(600_000, 600_000);
  await assert.rejects(ask('/', false), /ECONNREFUSED/);
  const last = await ask('/');
  assert.deepEqual([last.wasKept, last.connection], [true, 'close']);
  await last.closed;
  release();
  const ended = await underWay;
  assert.equal(ended.connection, 'close');
  await ended.closed;
  await stopped;
});

test('what nothing is asked on is closed at the end of the time for it, and without one at once', async () => {
  for (const lingerMs of [50, 0]) {
    const { listener, ask } = await startKept();
    const { closed } = await ask('/');
    await listener.stop(600_000, lingerMs);
    await closed;
  }
});
