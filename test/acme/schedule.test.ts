/** When a certificate is renewed, how long failures wait, and what a client's first message says. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { protocolsOf } from '../../src/acme/client-hello.ts';
import { renewalAt, retryAfter } from '../../src/acme/schedule.ts';

test('renewed at two thirds of the life, spread over a hundredth', () => {
  const life = { beginsAt: 0, endsAt: 90 };
  assert.equal(renewalAt(life, 0), 60);
  assert.equal(renewalAt(life, 1), 60.9);
});

test('failures wait a minute, then twice as long each, six hours at most; and as long as the authority asks, a week at most', () => {
  assert.equal(retryAfter(1, 1), 64_000);
  assert.equal(retryAfter(2, 1), 128_000);
  assert.equal(retryAfter(1, 0), 32_000);
  assert.equal(retryAfter(1000, 1), 6 * 3_600_000);
  assert.equal(retryAfter(1, 1, 3_600_000), 3_600_000);
  assert.equal(retryAfter(1, 1, Number.MAX_VALUE), 7 * 24 * 3_600_000);
});

test('the protocols of a client, byte by byte as they come', async () => {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const client = connectTls({
    port,
    host: '127.0.0.1',
    servername: 'a.example',
    ALPNProtocols: ['h2', 'acme-tls/1'],
  });
  client.on('error', () => {});
  const [socket] = await once(server, 'connection');
  const [hello] = (await once(socket, 'data')) as [Buffer];
  for (let length = 0; length < hello.length; length += 1)
    assert.equal(protocolsOf(hello.subarray(0, length)), undefined);
  assert.deepEqual(protocolsOf(hello), ['h2', 'acme-tls/1']);
  client.destroy();
  socket.destroy();
  server.close();
  // Whatever else comes is read to an end as well.
  for (let at = 5; at < hello.length; at += 1) {
    const other = Buffer.from(hello);
    other[at] = 255 - (other[at] ?? 0);
    assert.ok(Array.isArray(protocolsOf(other)));
  }
  assert.deepEqual(protocolsOf(Buffer.from('GET / HTTP/1.1')), []);
});
