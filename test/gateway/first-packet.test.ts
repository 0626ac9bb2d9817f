/** The first packets of a connection, in the clear: guesses of the key exchange, and why it ends. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { createQuestion } from '../../src/gateway/ssh/transport/hybrid-kex.ts';
import { message } from '../../src/lib/ssh/wire.ts';
import { becomes } from '../support/app.ts';
import { packet, rawUnauthenticated } from './clients/raw.ts';
import { type Lab, openLab, whyNot } from './lab.ts';

function kexInit(kex: string, hostKey: string, follows: boolean): Buffer {
  const [cipher, mac] = ['aes128-gcm@openssh.com', 'hmac-sha2-256-etm@openssh.com'];
  const lists = [kex, hostKey, cipher, cipher, mac, mac, 'none', 'none', '', ''];
  return packet(message(20, { raw: Buffer.alloc(16) }, ...lists, follows, { uint32: 0 }));
}

const point = () =>
  generateKeyPairSync('x25519').publicKey.export({ format: 'der', type: 'spki' }).subarray(-32);
const curveInit = () => packet(message(30, point()));
const hybridInit = () => packet(message(30, createQuestion().toSend()));

describe('in the clear', { skip: whyNot }, () => {
  let lab: Lab;
  before(async () => {
    lab = await openLab({ loginGraceMs: 6000 });
  });
  after(() => lab.close());

  /** The messages that come back, by number, until one of `last` or the end; and the text of a disconnect. */
  function exchange(parts: Buffer[], last: number): Promise<{ types: number[]; text: string }> {
    return new Promise((resolve) => {
      const socket = connect(lab.gateway.port, '127.0.0.1');
      let bytes = Buffer.alloc(0);
      const done = () => {
        socket.destroy();
        const types: number[] = [];
        let text = '';
        for (let at = bytes.indexOf(10) + 1; at + 6 < bytes.length; at += 4 + bytes.readUInt32BE(at)) {
          const type = bytes.readUInt8(at + 5);
          types.push(type);
          if (type === 1) text = bytes.toString('utf8', at + 14, at + 14 + bytes.readUInt32BE(at + 10));
          if (type === 21) break;
        }
        resolve({ types, text });
      };
      socket.on('error', () => {}).on('close', done);
      socket.on('data', (chunk: Buffer) => {
        bytes = Buffer.concat([bytes, chunk]);
        if (bytes.includes(packet(Buffer.from([last])).subarray(0, 6))) done();
      });
      socket.write(Buffer.concat([Buffer.from('SSH-2.0-test\r\n'), ...parts]));
    });
  }

  const hybrid = 'mlkem768x25519-sha256';
  const curve = 'curve25519-sha256';
  const rows: [string, Buffer[]][] = [
    ['a right guess is taken', [kexInit(`${hybrid},${curve}`, 'ssh-ed25519', true), hybridInit()]],
    ['so is one of an exchange that we like less', [kexInit(curve, 'ssh-ed25519', true), curveInit()]],
    [
      'a wrong guess of the exchange is left unread',
      [kexInit(`ecdh-x,${curve}`, 'ssh-ed25519', true), packet(message(30, 'wrong')), curveInit()],
    ],
    [
      'so is one of the host key, though the exchange is the right one',
      [kexInit(curve, 'ssh-rsa,ssh-ed25519', true), packet(message(30, 'wrong')), curveInit()],
    ],
    ['without a guess all is as ever', [kexInit(curve, 'ssh-ed25519', false), curveInit()]],
  ];
  for (const [what, parts] of rows)
    test(what, async () => assert.deepEqual((await exchange(parts, 21)).types, [20, 31, 21]));

  test('where nothing fits, the client is sent what was offered', async () => {
    const old = 'diffie-hellman-group1-sha1';
    const { types, text } = await exchange([kexInit(old, 'ssh-ed25519', false)], 99);
    assert.deepEqual(
      [types, text],
      [[20, 1], `Handshake failed: no matching key exchange algorithm: ${old}`],
    );
    const ran = await lab.ssh(['-o', 'Ciphers=aes128-cbc', 'gateway', 'true']);
    assert.match(ran.err, /no matching cipher|no matching C->S cipher/);
  });

  test('a client that stalls within a key exchange gets the reason that it took too long', async () => {
    const { types, text } = await exchange([kexInit(curve, 'ssh-ed25519', false)], 99);
    assert.deepEqual([types, text], [[20, 1], 'The login took too long.']);
  });

  for (const [what, opening] of [
    ['a version', []],
    ['a version and a KEXINIT', [kexInit(curve, 'ssh-ed25519', false)]],
  ] as const)
    test(`a flood from many addresses that sends ${what} and nothing more displaces no login that is in its key exchange`, async () => {
      // The login has to wait in its key exchange, and of all strangers there are handshakes for itself only.
      const own = { handshakesPerSource: 0.2, handshakesPerSourceBurst: 1 };
      await using lab = await openLab({ ...own, handshakes: 1, handshakesBurst: 2, helloMs: 600_000 });
      (await rawUnauthenticated(lab)).close();
      const flood = startFlood(lab, Buffer.concat([Buffer.from('SSH-2.0-x\r\n'), ...opening]));
      await becomes(() => flood.ended() > 0, true);
      const before = flood.ended();
      const { status, err } = await lab.ssh(['gateway', 'exit 7']);
      const displaced = flood.ended() - before;
      flood.stop();
      assert.equal(status, 7, err);
      assert.ok(displaced > 192, `all places of strangers changed hands meanwhile: ${displaced}`);
    });
});

/** More connections than strangers have places, then a hundred each second, each from the next of 2,000 addresses. */
function startFlood(lab: Lab, bytes: Buffer) {
  const sockets: Socket[] = [];
  let ended = 0;
  const open = () => {
    const n = sockets.length % 2000;
    const localAddress = `127.0.${100 + Math.floor(n / 200)}.${1 + (n % 200)}`;
    const socket = connect({ port: lab.gateway.port, host: '127.0.0.1', localAddress });
    socket.on('error', () => {}).on('data', () => {});
    socket.once('close', () => {
      ended += 1;
    });
    socket.write(bytes);
    sockets.push(socket);
  };
  const started = performance.now();
  // As many as are due, however late the timer is.
  const more = () => {
    while (sockets.length < 200 + (performance.now() - started) / 10) open();
  };
  more();
  const timer = setInterval(more, 10);
  return {
    ended: () => ended,
    stop() {
      clearInterval(timer);
      for (const socket of sockets) socket.destroy();
    },
  };
}
