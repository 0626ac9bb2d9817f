/** Peers that flood, stall or never read, on either side of the gateway and on either side of a login. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { defaultLimits } from '../../src/gateway/ssh/limits.ts';
import { createBarrier } from '../../src/gateway/ssh/transport/barrier.ts';
import { readPrivateKey } from '../../src/gateway/ssh/transport/ssh2.ts';
import { Transport } from '../../src/gateway/ssh/transport/transport.ts';
import { message, SSH } from '../../src/lib/ssh/wire.ts';
import { becomes } from '../support/app.ts';
import { listening } from '../support/ports.ts';
import { exec, rawClient, rawUnauthenticated } from './clients/raw.ts';
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
