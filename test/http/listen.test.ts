import assert from 'node:assert/strict';
import { once } from 'node:events';
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
