/**
 * Every byte of long copies, both ways at once: memory is reused between reads, sockets and sessions, so bytes that were
 * kept too short would turn up somewhere else. New keys every few megabytes, from both sides, while much waits.
 */
import assert from 'node:assert/strict';
import { randomBytes, randomInt } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { message, SSH } from '../../../src/lib/ssh/wire.ts';
import { startMaster, withEachNode } from './nodes.ts';
import { data, eof, exec, rawClient } from './raw.ts';

const CIPHERS = [
  'aes128-gcm@openssh.com',
  'aes256-gcm@openssh.com',
  'chacha20-poly1305@openssh.com',
  'aes256-ctr',
];

withEachNode('copies', { rekeyBytes: 1_000_000 }, (at) => {
  /** Runs a script of bash in the lab's folder, with the way to the gateway as `$way`; what it says on standard error. */
  const bash = async (way: readonly string[], script: string) => {
    const ran = await at.lab.run('bash', ['-o', 'pipefail', '-ec', `way='${way.join(' ')}'; ${script}`]);
    assert.equal(ran.status, 0, ran.err);
    return ran.err;
  };

  test('several sessions at once, each with another cipher, and new keys from both sides', async () => {
    const megabytes = 3;
    const sessions = CIPHERS.map((cipher, n) =>
      bash(
        [...at.lab.options, '-v', '-o', 'RekeyLimit=700K', '-c', cipher, 'gateway'],
        `head -c ${megabytes}M /dev/urandom > in${n}; ssh $way cat < in${n} | cmp in${n} -`,
      ),
    );
    for (const said of await Promise.all(sessions))
      assert.ok((said.match(/SSH2_MSG_NEWKEYS received/g)?.length ?? 0) > megabytes);
  });

  test('one that only the gateway asks for new keys gets them by volume', async () => {
    const megabytes = 5;
    const way = [...at.lab.options, '-v', 'gateway'];
    const said = await bash(way, `head -c ${megabytes}M /dev/urandom | tee a | ssh $way cat > b; cmp a b`);
    // The gateway counts both directions; the first is that of the login.
    assert.ok((said.match(/SSH2_MSG_NEWKEYS received/g)?.length ?? 0) > megabytes / 4);
  });

  test('many channels of one connection', async (t) => {
    const control = await startMaster(t, at.lab, '-o', 'RekeyLimit=1M');
    const channels = Array.from({ length: 6 }, (_, n) =>
      bash(
        [...at.lab.options, ...control, 'gateway'],
        `head -c 1200K /dev/urandom > ch${n}; ssh $way cat < ch${n} | cmp ch${n} -`,
      ),
    );
    await Promise.all(channels);
  });

  test('a reader that stalls again and again, and one that does not', async () => {
    writeFileSync(join(at.lab.dir, 'much'), randomBytes(12e6));
    const way = [...at.lab.options, '-o', 'RekeyLimit=2M', 'gateway'];
    const slowly = '(for n in 1 2 3 4; do head -c 2000000; sleep 0.2; done; cat)';
    await Promise.all([
      bash(way, `ssh $way cat < much | ${slowly} | cmp much -`),
      bash(way, 'ssh $way cat < much | cmp much -'),
    ]);
  });

  test('a client that stalls, with many channels and new keys in between', async () => {
    const client = await rawClient(at.lab);
    const { transport } = client;
    const echoes: Echo[] = [];
    for (let n = 0; n < 6; n += 1) {
      const to = await client.openSession(n, 1 << 20);
      transport.send(exec(to, 'exec cat', false));
      echoes.push(createEcho(to, (payload) => transport.send(payload)));
    }
    const onMessage = (payload: Buffer) => {
      if (payload.length >= 5) echoes[payload.readUInt32BE(1)]?.onMessage(payload);
    };
    transport.onMessage = onMessage;
    // What was granted before this.
    client.heard.forEach(onMessage);
    const done = () => echoes.every((echo) => echo.done);
    for (let n = 0; !done() && client.ended() === ''; n += 1) {
      if (n % 3 === 0) transport.pause();
      await sleep(randomInt(1, 15));
      transport.resume();
      if (n % 5 === 0) transport.renewKeys(performance.now(), -1);
      await sleep(randomInt(1, 5));
    }
    assert.ok(done(), `${client.ended()} ${JSON.stringify(at.lab.events.slice(-2))}`);
    client.close();
  });
});

interface Echo {
  readonly done: boolean;
  onMessage(payload: Buffer): void;
}

/** Sends bytes of its own over a channel as far as the window goes, and compares all that comes back. */
function createEcho(to: number, send: (payload: Buffer) => void, total = 2_000_000): Echo {
  const bytes = randomBytes(1_000_003);
  const twice = Buffer.concat([bytes, bytes]);
  /** What lies at an offset of the endless repetition. */
  const expected = (from: number, length: number) =>
    twice.subarray(from % bytes.length, (from % bytes.length) + length);
  let window = 0;
  let sent = 0;
  let back = 0;

  function fill() {
    // What comes during a key exchange is queued, up to 8 MiB of all channels.
    while (window > 0 && sent < total && sent - back < 1_000_000) {
      const length = Math.min(window, total - sent, randomInt(1, 32_000));
      send(data(to, expected(sent, length)));
      window -= length;
      sent += length;
      if (sent === total) send(eof(to));
    }
  }

  return {
    get done() {
      return back === total;
    },
    onMessage(payload) {
      if (payload[0] === SSH.CHANNEL_OPEN_CONFIRMATION) window += payload.readUInt32BE(9);
      if (payload[0] === SSH.CHANNEL_WINDOW_ADJUST) window += payload.readUInt32BE(5);
      if (payload[0] === SSH.CHANNEL_DATA) {
        const part = payload.subarray(9);
        assert.ok(part.equals(expected(back, part.length)), `after ${back} bytes of channel ${to}`);
        back += part.length;
        send(message(SSH.CHANNEL_WINDOW_ADJUST, { uint32: to }, { uint32: part.length }));
      }
      fill();
    },
  };
}

withEachNode('new keys by time', { rekeyMs: 400, recheckMs: 200 }, (at) => {
  test('in an otherwise quiet session, which goes on', async () => {
    const ran = await at.lab.ssh(['-v', 'gateway', 'sleep 2; cat'], 'still here');
    assert.deepEqual([ran.status, ran.out], [0, 'still here'], ran.err);
    const exchanges = ran.err.match(/SSH2_MSG_NEWKEYS received/g)?.length ?? 0;
    assert.ok(exchanges > 2, `${exchanges} key exchanges`);
  });

  if (at.kind === 'sshd')
    test('while a login node stands still, what its channels may be sent does not pile up', async (t) => {
      const way = [...(await startMaster(t, at.lab)), 'gateway'];
      // In all twice as much as may wait; while keys are exchanged, all that is in sockets is read.
      const size = 4_000_000;
      const copy = `(sleep 1.5; head -c ${size} /dev/zero) | ssh ${[...at.lab.options, ...way].join(' ')} wc -c`;
      const channels = Array.from({ length: 8 }, () => at.lab.run('bash', ['-c', copy]));
      await sleep(1000);
      // All channels are one process of the node's; it is stopped from within, for several times the age of keys.
      const stop = await at.lab.ssh([...way, 'node=$PPID; (sleep 3; kill -CONT $node) & kill -STOP $node']);
      const ended = () => JSON.stringify(at.lab.events.filter(({ event }) => event === 'gateway.node.ended'));
      assert.equal(stop.status, 0, stop.err + ended());
      const ran = await Promise.all(channels);
      for (const { status, out, err } of ran)
        assert.deepEqual([status, out.trim()], [0, `${size}`], err + ended());
    });
});
