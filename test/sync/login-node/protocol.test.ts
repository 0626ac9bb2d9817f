import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import ssh2 from 'ssh2';
import { message, SSH, WireReader } from '../../../src/lib/ssh/wire.ts';
import { Channel } from '../../../src/sync/simulated/login-node/channel.ts';
import { sttyArguments } from '../../../src/sync/simulated/login-node/session.ts';
import { bench } from './helpers.ts';

test('terminal modes become words for stty, and what is unknown is left out', () => {
  const mode = (opcode: number, value: number) => Buffer.from([opcode, 0, 0, 0, value]);
  const table: [Buffer[], string][] = [
    [[mode(3, 8), mode(53, 0), mode(36, 1)], 'erase ^H -echo icrnl'],
    [[mode(1, 255), mode(2, 127), mode(4, 120)], 'intr ^- quit ^? kill x'],
    [[mode(99, 1), mode(42, 1)], 'iutf8'],
    [[mode(53, 1), Buffer.from([0]), mode(50, 1)], 'echo'],
    [[mode(53, 1), mode(200, 1), mode(50, 1)], 'echo'],
    [[mode(53, 1), Buffer.from([50, 0])], 'echo'],
  ];
  for (const [modes, words] of table) assert.equal(sttyArguments(Buffer.concat(modes)).join(' '), words);
});

test('a signal reaches the command, and its end by a signal is reported as one', async (t) => {
  const at = await bench(t);
  const client = new ssh2.Client();
  t.after(() => client.end());
  await new Promise((resolve, reject) => {
    client.on('ready', () => resolve(undefined)).on('error', reject);
    client.connect({
      host: '127.0.0.1',
      port: at.node.port,
      username: 'ada',
      privateKey: readFileSync(at.key),
    });
  });
  const ended = await new Promise<unknown[]>((resolve, reject) => {
    client.exec('echo ready; exec sleep 100', (error, stream) => {
      if (error) return reject(error);
      stream.on('exit', (...how: unknown[]) => resolve(how));
      stream.once('data', () => stream.signal('USR1'));
    });
  });
  assert.deepEqual(ended.slice(0, 2), [null, 'SIGUSR1']);
});

test('a client gets no longer packets and no more bytes than it takes', async () => {
  const sent: Buffer[] = [];
  const opened = { local: 1, remote: { uint32: 7 }, window: 40_000, packet: 16_384 };
  const channel = new Channel(
    opened,
    (payload) => sent.push(payload),
    () => {},
  );
  const all = channel.send('stdout', Buffer.alloc(50_000, 'a'));
  await new Promise(setImmediate);
  const lengths = () => sent.filter(([type]) => type === SSH.CHANNEL_DATA).map(({ length }) => length - 9);
  assert.deepEqual(lengths(), [16_384, 16_384, 7_232]);
  channel.receive(SSH.CHANNEL_WINDOW_ADJUST, new WireReader(message(0, { uint32: 10_000 }), 1));
  await all;
  assert.deepEqual(lengths(), [16_384, 16_384, 7_232, 10_000]);
});
