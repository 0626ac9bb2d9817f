import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { test } from 'node:test';
import { listen } from '../../src/api/http/listen.ts';
import { createLogger } from '../../src/lib/log.ts';
import { noteRefusal } from '../../src/lib/response.ts';
import { createTrustedProxies } from '../../src/lib/source-address.ts';
import { createAuthority } from '../support/certificate.ts';
import { fieldsOf } from '../support/fields.ts';

const hasV6 = Object.values(networkInterfaces()).some((of) => of?.some(({ family }) => family === 'IPv6'));

async function start({ perSource = 16, inAll = 64, proxies = [] as string[], isTls = false } = {}) {
  const own = isTls ? createAuthority().issue('server') : undefined;
  const log: { event?: string; address?: string; reason?: string }[] = [];
  const waiting: (() => void)[] = [];
  const listener = await listen(
    (req, res) => {
      if (req.url === '/logged') res.setHeader('X-Request-Id', '1');
      if (req.url === '/slow') return waiting.push(() => res.end('slow'));
      if (req.url === '/away') {
        noteRefusal(res, 'too many sign-ins');
        res.statusCode = 303;
      } else if (req.url !== '/') res.statusCode = 429;
      res.end('ok');
    },
    {
      name: 'test',
      ...(own && { tls: { cert: Buffer.from(own.cert), key: Buffer.from(own.key) } }),
      // IPv4 comes as IPv6 where both are listened to.
      host: hasV6 ? '::' : '127.0.0.1',
      port: 0,
      limit: {
        perSource,
        inAll,
        proxies: createTrustedProxies(proxies),
        log: createLogger('info', (line) => log.push(JSON.parse(line))),
      },
    },
  );
  const sockets: Socket[] = [];
  /** Opens so many idle connections; how many are still open when the server has answered or closed each. */
  const idle = async (count: number, localAddress: string): Promise<number> => {
    const outcomes = await Promise.all(
      Array.from({ length: count }, async () => {
        const socket = connect({ port: listener.port, host: '127.0.0.1', localAddress });
        sockets.push(socket);
        socket.on('error', () => {});
        await Promise.race([once(socket, 'connect'), once(socket, 'close')]).catch(() => {});
        socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
        await Promise.race([once(socket, 'data'), once(socket, 'close')]).catch(() => {});
        return !socket.destroyed && socket.bytesRead > 0;
      }),
    );
    return outcomes.filter(Boolean).length;
  };
  const get = (path: string, headers: Record<string, string | string[]> = {}, localAddress = '127.0.0.1') =>
    new Promise<number>((resolve) => {
      const asked = request(
        { port: listener.port, host: '127.0.0.1', localAddress, path, headers, agent: false },
        (res) => {
          res.resume();
          res.once('end', () => resolve(res.statusCode ?? 0));
        },
      );
      asked.once('error', () => resolve(0));
      asked.end();
    });
  return {
    log,
    port: listener.port,
    waiting,
    idle,
    get,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await listener.stop(0);
    },
  };
}

test('one address may hold so many connections, and another is answered as before', async () => {
  await using server = await start();
  assert.equal(await server.idle(40, '127.0.0.66'), 16);
  assert.equal(await server.get('/', {}, '127.0.0.66'), 0);
  for (let i = 0; i < 20; i++) assert.equal(await server.get('/', {}, '127.0.0.7'), 200);
  // The others of the address are summed up.
  const refused = server.log.filter(({ event }) => event === 'http.connection.refused');
  assert.deepEqual(fieldsOf(refused, 'address'), ['127.0.0.66']);
});

test('what cannot be read is a line with the reason, a source and reason at a time', async () => {
  await using server = await start();
  for (let i = 0; i < 3; i++) await server.get('/', { authorization: 'x'.repeat(100_000) }, '127.0.0.66');
  await server.get('/', { authorization: ['Bearer a', 'Bearer b'] }, '127.0.0.66');
  await server.get('/', { expect: 'x' }, '127.0.0.66');
  const socket = connect({ port: server.port, host: '127.0.0.1', localAddress: '127.0.0.66' });
  socket.end('CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n').resume();
  await once(socket, 'close');
  const reasons = [
    'HPE_HEADER_OVERFLOW',
    'The request has more than one Authorization header.',
    'The request expects what is not known here: of Expect, 100-continue is.',
    'CONNECT is not answered here: this is no proxy.',
  ];
  const expected = reasons.map((reason) => ['http.connection.refused', '127.0.0.66', reason]);
  assert.deepEqual(fieldsOf(server.log, 'event', 'address', 'reason'), expected);
});

test('a TLS handshake that fails is a line with the reason', async () => {
  await using server = await start({ isTls: true });
  assert.equal(await server.get('/', {}, '127.0.0.66'), 0);
  const { address, reason } = server.log[0] ?? {};
  assert.deepEqual([address, reason], ['127.0.0.66', 'ERR_SSL_HTTP_REQUEST']);
});

test('a refusal of a handler is a line with its path, unless its request has an ID', async () => {
  await using server = await start();
  for (const path of ['/link?token=1', '/link?token=2', '/logged'])
    assert.equal(await server.get(path, {}, '127.0.0.66'), 429);
  assert.equal(await server.get('/away', {}, '127.0.0.66'), 303);
  assert.deepEqual(fieldsOf(server.log, 'address', 'reason'), [
    ['127.0.0.66', '429 GET /link'],
    ['127.0.0.66', 'too many sign-ins'],
  ]);
});

test('while most are taken each address may hold an eighth, and all together have a bound', async () => {
  await using server = await start();
  for (const last of [1, 2]) assert.equal(await server.idle(16, `127.0.1.${last}`), 16);
  assert.equal(await server.idle(16, '127.0.1.3'), 2);
  assert.equal(await server.get('/', {}, '127.0.0.7'), 200);
  for (let last = 4; last < 19; last++)
    assert.equal(await server.idle(2, `127.0.1.${last}`), 2, String(last));
  assert.equal(await server.idle(1, '127.0.1.99'), 0);
});

test('a trusted proxy holds what it needs; of each client of it so many requests are under way', async () => {
  await using server = await start({ proxies: ['127.0.0.1'] });
  assert.equal(await server.idle(30, '127.0.0.1'), 30);
  const from = (client: string) => ({ 'x-forwarded-for': client });
  const slow = Array.from({ length: 16 }, () => server.get('/slow', from('192.0.2.66')));
  while (server.waiting.length < 16) await new Promise((done) => setTimeout(done, 10));
  assert.equal(await server.get('/', from('192.0.2.66')), 503);
  const { address, reason } = server.log[0] ?? {};
  assert.deepEqual([address, reason], ['192.0.2.66', 'too many requests']);
  assert.equal(await server.get('/', from('192.0.2.7')), 200);
  for (const finish of server.waiting) finish();
  assert.deepEqual(await Promise.all(slow), Array(16).fill(200));
  assert.equal(await server.get('/', from('192.0.2.66')), 200);
});
