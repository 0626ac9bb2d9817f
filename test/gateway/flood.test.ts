/** Peers that flood, stall or never read, on either side of the gateway and of a login; and the first packets, in the clear. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { defaultLimits } from '../../src/gateway/ssh/limits.ts';
import { createBarrier } from '../../src/gateway/ssh/transport/barrier.ts';
import { createQuestion } from '../../src/gateway/ssh/transport/hybrid-kex.ts';
import { readPrivateKey } from '../../src/gateway/ssh/transport/ssh2.ts';
import { Transport } from '../../src/gateway/ssh/transport/transport.ts';
import { message, SSH } from '../../src/lib/ssh/wire.ts';
import { becomes } from '../support/app.ts';
import { listening } from '../support/ports.ts';
import { exec, packet, rawClient, rawUnauthenticated } from './clients/raw.ts';
import { type Lab, openLab, whyNot } from './lab.ts';

const bigPing = message(SSH.PING, Buffer.alloc(32_000));

describe('strangers', { skip: whyNot }, () => {
  let lab: Lab;
  before(async () => {
    lab = await openLab();
  });
  after(() => lab.close());

  const floods: [string, Buffer][] = [
    ['pings', bigPing],
    ['small pings', message(SSH.PING, 'x')],
    ['ignored messages', message(SSH.IGNORE, Buffer.alloc(32_000))],
    ['requests for the service', message(SSH.SERVICE_REQUEST, 'ssh-userauth')],
    ['unknown messages', message(199, Buffer.alloc(100))],
    ['channels', message(SSH.CHANNEL_OPEN, 'session', { uint32: 0 }, { uint32: 1 }, { uint32: 1 })],
  ];
  for (const [what, flood] of floods)
    test(`a stranger who sends ${what} without end and never reads is cut off, and no one else notices`, async () => {
      const { transport, ended } = await rawUnauthenticated(lab);
      transport.pause();
      for (let bytes = 0; bytes < 16e6 && !transport.ended; await sleep(0))
        for (const end = bytes + 500_000; bytes < end; bytes += flood.length + 32) transport.send(flood);
      transport.resume();
      await becomes(() => ended() !== '', true);
      assert.equal((await lab.ssh(['gateway', 'exit 6'])).status, 6);
    });

  test('a ping before the login is not answered, and harms nothing', async () => {
    const { transport, heard, next, close } = await rawUnauthenticated(lab);
    let pongs = 0;
    transport.refuseMessage = () => {
      pongs += 1;
    };
    transport.send(message(SSH.PING, 'are you there'));
    transport.send(message(SSH.SERVICE_REQUEST, 'ssh-userauth'));
    await next(SSH.SERVICE_ACCEPT);
    assert.deepEqual([pongs, heard.length], [0, 1]);
    close();
  });

  test('a second key exchange before the login ends the connection', async () => {
    const { transport, ended } = await rawUnauthenticated(lab);
    transport.renewKeys(Date.now(), 0);
    await becomes(() => ended() !== '', true);
    assert.match(ended(), /protocol error/);
  });
});

describe('people who are logged in', { skip: whyNot }, () => {
  test('a client that asks without reading the answers is not read, keeps little waiting, and may go on', async () => {
    await using lab = await openLab();
    const client = await rawClient(lab);
    let pongs = 0;
    client.transport.refuseMessage = () => {
      pongs += 1;
    };
    client.transport.pause();
    const before = process.memoryUsage().rss;
    let sent = 0;
    // More than sockets hold on the way there and back: 30 MB.
    for (; sent < 1000; sent += 1) client.transport.send(bigPing);
    await sleep(500);
    const held = process.memoryUsage().rss - before;
    assert.ok(held < 200e6, `${held} bytes`);
    assert.equal(client.ended(), '');
    assert.equal((await lab.ssh(['gateway', 'exit 6'])).status, 6);
    client.transport.resume();
    await becomes(() => pongs, sent);
    client.close();
  });
});

/** A login node that lets everybody in and behaves as it is told, before or after it has. */
async function hostileNode(t: TestContext, lab: Lab, behave: (node: Transport, loggedIn: boolean) => void) {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    const node: Transport = new Transport({
      socket,
      barrier: createBarrier(),
      hostKey: readPrivateKey(readFileSync(join(lab.dir, 'node'), 'utf8')),
      limits: defaultLimits,
      onReady() {
        node.trust();
        behave(node, false);
      },
    });
    node.onMessage = ([type]) => {
      if (type === SSH.SERVICE_REQUEST) node.send(message(SSH.SERVICE_ACCEPT, 'ssh-userauth'));
      else if (type === SSH.USERAUTH_REQUEST) {
        node.send(message(SSH.USERAUTH_SUCCESS));
        behave(node, true);
      }
    };
  });
  lab.route.loginNode = { ...lab.route.loginNode, port: await listening(server) };
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
}

describe('login nodes', { skip: whyNot }, () => {
  const before: [string, (node: Transport) => void][] = [
    ['sends pings without end and never reads', flood(bigPing)],
    ['sends ignored messages without end', flood(message(SSH.IGNORE, Buffer.alloc(32_000)))],
    ['sends banners without end', flood(message(SSH.USERAUTH_BANNER, 'x'.repeat(30_000), ''))],
    ['begins a second key exchange', (node) => node.renewKeys(Date.now(), 0)],
  ];
  for (const [what, behave] of before)
    test(`one that ${what} before it lets a person in is given up, and the person gets the reason`, async (t) => {
      await using lab = await openLab();
      const real = lab.route.loginNode;
      await hostileNode(t, lab, (node, loggedIn) => loggedIn || behave(node));
      const ran = await lab.ssh(['gateway', 'true']);
      assert.match(ran.err, /The connection to the login node failed/);
      lab.route.loginNode = real;
      assert.equal((await lab.ssh(['gateway', 'exit 6'])).status, 6);
    });

  test('one that sends pings without end and never reads, after a login, is not read and harms no one', async (t) => {
    await using lab = await openLab();
    const real = lab.route.loginNode;
    await hostileNode(t, lab, (node, loggedIn) => loggedIn && flood(bigPing)(node));
    const client = await rawClient(lab);
    const at = process.memoryUsage().rss;
    await sleep(500);
    assert.ok(process.memoryUsage().rss - at < 200e6);
    lab.route.loginNode = real;
    assert.equal((await lab.ssh(['gateway', 'exit 6'])).status, 6);
    assert.equal(lab.gateway.close({}, 'closed by an operator', 'Bye.'), 1);
    await becomes(() => client.ended() !== '', true);
    assert.equal(client.ended(), 'Bye.');
  });

  test('one that takes a whole upload and reads nothing of it holds up the person, and no one else', async (t) => {
    await using lab = await openLab();
    const real = lab.route.loginNode;
    await hostileNode(t, lab, (node, loggedIn) => {
      if (!loggedIn) return;
      node.onMessage = ([type]) => {
        if (type !== SSH.CHANNEL_OPEN) return;
        const sizes = [{ uint32: 7 }, { uint32: 0xffffffff }, { uint32: 32_768 }];
        node.send(message(SSH.CHANNEL_OPEN_CONFIRMATION, { uint32: 0 }, ...sizes));
        node.pause();
      };
    });
    const client = await rawClient(lab);
    const to = await client.openSession(0);
    client.transport.send(exec(to, 'cat', false));
    for (let n = 0; n < 1000; n += 1)
      client.transport.send(message(SSH.CHANNEL_DATA, { uint32: to }, Buffer.alloc(30_000)));
    await sleep(500);
    const passed = lab.gateway.sessions()[0]?.bytesUp ?? 0;
    assert.ok(passed < 20e6, `${passed} bytes passed`);
    lab.route.loginNode = real;
    assert.equal((await lab.ssh(['gateway', 'exit 6'])).status, 6);
    client.close();
  });
});

/** Sends a message again and again for as long as there is anybody, and never reads. */
function flood(what: Buffer): (node: Transport) => void {
  return (node) => {
    node.pause();
    let left = 1000;
    const more = () => {
      for (let n = 0; n < 20 && !node.ended && !node.full; n += 1) node.send(what);
      left -= 1;
      if (left > 0 && !node.ended) setTimeout(more, 2);
    };
    more();
  };
}

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
