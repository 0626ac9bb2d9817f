/** Reused memory: who holds a piece, and that sockets of this Node are really read into it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { hold, holders, PIECE, release, take, toKeep } from '../../src/gateway/ssh/transport/memory.ts';
import { writeNow } from '../../src/gateway/ssh/transport/outbox.ts';
import { adopt, createReads, readChunks } from '../../src/gateway/ssh/transport/reads.ts';
import { listening } from '../support/ports.ts';

test('a piece is given out again when the last holder has released it, and not before', () => {
  const first = take(PIECE);
  hold(first.subarray(100, 200));
  release(first);
  const second = take(PIECE);
  assert.notEqual(second.buffer, first.buffer);
  release(first.subarray(7));
  assert.equal(take(40_000).buffer, first.buffer);
});

test('a piece that is released twice is an error, for two would write to it', () => {
  const piece = take(PIECE);
  release(piece);
  assert.throws(() => release(piece), /released twice/);
  assert.equal(holders(take(PIECE)), 1);
});

test('few bytes, and more than a piece, are ordinary memory', () => {
  for (const length of [1, 1000, PIECE + 1]) {
    const memory = take(length);
    assert.deepEqual([memory.length, holders(memory)], [length, 0]);
    hold(memory);
    release(memory);
    release(memory);
    assert.equal(toKeep(memory), memory);
  }
});

test('what is kept of a piece does not change with it', () => {
  const piece = take(PIECE).fill(1);
  const kept = toKeep(piece.subarray(0, 10));
  piece.fill(2);
  assert.deepEqual(kept, Buffer.alloc(10, 1));
});

/** Both ends of a connection. */
async function pair(onread?: ReturnType<typeof createReads>['onread']): Promise<[Socket, Socket]> {
  const server = createServer();
  const port = await listening(server);
  const client = connect({ port, host: '127.0.0.1', ...(onread && { onread }) });
  const [accepted] = (await once(server, 'connection')) as [Socket];
  server.close();
  return [client, accepted];
}

/** Sends a megabyte and returns what came, with whether each chunk lay in reused memory. */
async function through(from: Socket, to: Socket, reads: ReturnType<typeof createReads>) {
  const data = Buffer.from(Array.from({ length: 1 << 20 }, (_, n) => (n * 31) >> (n % 7)));
  const came: Buffer[] = [];
  let reused = 0;
  reads.onChunk = (chunk) => {
    came.push(Buffer.from(chunk));
    if (holders(chunk) > 0) reused += chunk.length;
  };
  const onData = (chunk: Buffer) => assert.fail(`${chunk.length} bytes came past the reused memory`);
  to.on('data', onData);
  from.end(data);
  await once(to, 'end');
  to.end();
  assert.ok(Buffer.concat(came).equals(data));
  return reused / data.length;
}

test('an accepted socket is read into reused memory: this Node has the internals that it takes', async () => {
  const [client, accepted] = await pair();
  const reads = createReads();
  assert.equal(adopt(accepted, reads), true);
  const share = await through(client, accepted, reads);
  assert.ok(share > 0.5, `${share} of it`);
});

test('so is one that we connect', async () => {
  const reads = createReads();
  const [client, accepted] = await pair(reads.onread);
  const share = await through(accepted, client, reads);
  assert.ok(share > 0.5, `${share} of it`);
});

test('bytes that came before a socket was adopted come first', async () => {
  const [client, accepted] = await pair();
  accepted.pause();
  client.write('one ');
  while (accepted.readableLength < 4) await new Promise((resolve) => setTimeout(resolve, 5));
  const came: string[] = [];
  readChunks(accepted, undefined, (chunk) => came.push(`${chunk}`));
  client.end('two');
  await new Promise((resolve) => setTimeout(resolve, 50));
  accepted.resume();
  await once(accepted, 'end');
  accepted.end();
  assert.equal(came.join(''), 'one two');
});

test('what the kernel takes is written at once, and nothing past what waits', async () => {
  const [client, accepted] = await pair();
  const piece = Buffer.alloc(PIECE, 'x');
  assert.equal(writeNow(accepted, [piece]), PIECE);
  assert.equal(writeNow(accepted, [piece, piece.subarray(1)]), 2 * PIECE - 1);
  let sent = 3 * PIECE - 1;
  // Until it is full: a part of a piece, or none of it.
  for (let taken = PIECE; taken === PIECE; sent += taken) taken = writeNow(accepted, [piece]);
  accepted.write('waits');
  assert.equal(writeNow(accepted, [piece]), 0);
  accepted.end();
  let came = 0;
  client.on('data', (chunk: Buffer) => {
    came += chunk.length;
  });
  await once(client, 'end');
  assert.equal(came, sent + 5);
  client.destroy();
});

test('where Node has no such internals the bytes are left to come as events', async () => {
  const [client, accepted] = await pair();
  const bare = Object.create(accepted, { _handle: { value: {} } }) as Socket;
  assert.equal(adopt(bare, createReads()), false);
  client.destroy();
  accepted.destroy();
});
