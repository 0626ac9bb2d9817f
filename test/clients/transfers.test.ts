/** Readers that stop to read keep no download from anybody else. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { createTrustedProxies } from '../../src/lib/source-address.ts';
import { createDownloads } from '../../src/service/downloads/index.ts';
import type { TransferLimits } from '../../src/service/downloads/transfers.ts';
import { becomes, eventually } from '../support/app.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { listening } from '../support/ports.ts';
import { offerRelease } from './release.ts';

const path = '/download/andromeda-linux';
/** More than the buffers between two programs hold. */
const content = Buffer.alloc(32 * 2 ** 20, 'x');
const silent = { debug() {}, info() {}, warn() {}, error() {} };

/** Downloads behind a trusted proxy at 127.0.0.1. */
async function serve(transfers: TransferLimits) {
  const directory = temporaryDirectory();
  offerRelease(directory.path, '1.0.0', [{ platform: 'linux-x64', name: 'andromeda-linux', content }]);
  const downloads = createDownloads({
    dataDir: directory.path,
    platformUrl: 'http://127.0.0.1',
    portable: async () => ({ mjs: Buffer.alloc(400_000, 'm'), tgz: Buffer.from('tgz') }),
    log: silent as never,
    proxies: createTrustedProxies(['127.0.0.1']),
    transfers,
  });
  const server = createServer(downloads.at('http://127.0.0.1'));
  const port = await listening(server);
  const sockets: Socket[] = [];
  return {
    /** Reads one piece, and nothing more. Resolves to the status. */
    async stall(address: string, asked = path) {
      const socket = connect(port, '127.0.0.1');
      sockets.push(socket);
      socket.on('error', () => {});
      socket.write(`GET ${asked} HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: ${address}\r\n\r\n`);
      const first = await new Promise<string>((resolve) => {
        socket.once('data', (part) => resolve(String(part)));
        socket.once('close', () => resolve(''));
      });
      socket.pause();
      return Number(first.split(' ')[1]);
    },
    async ask(address: string, asked = path, options: RequestInit = {}) {
      const headers = { 'X-Forwarded-For': address, ...options.headers };
      const answer = await fetch(`http://127.0.0.1:${port}${asked}`, { ...options, headers });
      return {
        status: answer.status,
        headers: answer.headers,
        body: Buffer.from(await answer.arrayBuffer()),
      };
    },
    connections: () => new Promise<number>((resolve) => server.getConnections((_, count) => resolve(count))),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      directory[Symbol.dispose]();
    },
  };
}

test('one address gets its share of the downloads; others, and what is small, are served', async () => {
  await using service = await serve({ perSource: 2, inAll: 5, stallMs: 600_000 });
  for (const expected of [200, 200, 503])
    assert.equal(await service.stall('192.0.2.1'), expected, 'the third is one too many');
  const refused = await service.ask('192.0.2.1');
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '30']);
  assert.equal(JSON.parse(refused.body.toString()).code, 'service_unavailable');
  const other = await service.ask('192.0.2.2');
  assert.deepEqual([other.status, other.body.length], [200, content.length]);

  const head = await service.ask('192.0.2.1', path, { method: 'HEAD' });
  assert.deepEqual([head.status, head.headers.get('content-length')], [200, String(content.length)]);
  const known = { 'If-None-Match': head.headers.get('etag') ?? '', 'Cache-Control': 'max-age=0' };
  assert.equal((await service.ask('192.0.2.1', path, { headers: known })).status, 304);
  for (const small of ['/andromeda.mjs', '/andromeda.tgz', '/download/list.json', '/download/clients.json'])
    assert.equal((await service.ask('192.0.2.1', small)).status, 200, small);

  // With all taken, by one of each: more than half of them leave one to an address.
  for (const address of ['192.0.2.3', '192.0.2.4', '192.0.2.5'])
    await becomes(() => service.stall(address), 200);
  assert.equal(await service.stall('192.0.2.6'), 503);
  const many = await Promise.all(
    Array.from({ length: 60 }, () => service.ask('192.0.2.1', '/andromeda.mjs')),
  );
  assert.deepEqual(
    [...new Set(many.map(({ status }) => status))],
    [200],
    'the portable client is not counted',
  );
});

test('a reader that takes nothing for a while is closed, and its slot is free', async () => {
  await using service = await serve({ perSource: 1, inAll: 1, stallMs: 300 });
  const once = () =>
    eventually(
      () => service.stall('192.0.2.1'),
      (status) => status === 200,
    );
  await once();
  await eventually(service.connections, (count) => count === 0);
  await once();
});
