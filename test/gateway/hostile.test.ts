/** What a well-behaved client never sends. The gateway survives all of it and serves the next person. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import { longestLoginName } from '../../src/domain/access/ssh-session.ts';
import { defaultLimits } from '../../src/gateway/ssh/limits.ts';
import { offerToNode } from '../../src/gateway/ssh/transport/algorithms.ts';
import { createBarrier } from '../../src/gateway/ssh/transport/barrier.ts';
import { readPrivateKey } from '../../src/gateway/ssh/transport/ssh2.ts';
import { Transport } from '../../src/gateway/ssh/transport/transport.ts';
import { signatureBlob, signedData } from '../../src/lib/ssh/public-key.ts';
import { message, SSH, sshString, WireReader } from '../../src/lib/ssh/wire.ts';
import { firstOutput, type Lab, LOGIN, openLab, whyNot } from './lab.ts';

const IDENT = Buffer.from('SSH-2.0-test\r\n');

describe('the gateway survives', { skip: whyNot }, () => {
  let lab: Lab;
  before(async () => {
    // So many wrong names come from one address that answers would be slowed.
    lab = await openLab({ loginGraceMs: 1500, rekeyGraceMs: 1500, backoffMs: 0 });
  });
  after(() => lab.close());

  /** Sends bytes and waits until the gateway has closed the connection. */
  function send(...parts: Buffer[]): Promise<void> {
    return new Promise((resolve) => {
      const socket = connect(lab.gateway.port, '127.0.0.1');
      socket.on('error', () => {});
      socket.on('close', () => resolve());
      socket.resume();
      for (const part of parts) socket.write(part);
    });
  }

  const length = (n: number) => Buffer.from([n >>> 24, n >>> 16, n >>> 8, n]);
  const packet = (payload: Buffer) => {
    const padding = 8 + ((8 - ((payload.length + 5) % 8)) % 8);
    const head = [length(payload.length + padding + 1), Buffer.from([padding])];
    return Buffer.concat([...head, payload, Buffer.alloc(padding)]);
  };

  const attacks: [string, Buffer[]][] = [
    ['nothing but a connection (until the grace time is over)', []],
    ['an identification and nothing more', [IDENT]],
    ['HTTP', [Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n')]],
    ['random bytes', [randomBytes(100_000)]],
    ['an endless first line', [Buffer.alloc(100_000, 0x41)]],
    ['SSH 1', [Buffer.from('SSH-1.5-old\r\n')]],
    ['an oversized packet', [IDENT, length(0x7fffffff), randomBytes(1000)]],
    ['a packet of length zero', [IDENT, length(0), randomBytes(1000)]],
    ['a broken KEXINIT', [IDENT, packet(Buffer.concat([Buffer.from([20]), randomBytes(300)]))]],
    ['an empty KEXINIT', [IDENT, packet(Buffer.from([20]))]],
    ['a login before the key exchange', [IDENT, packet(message(SSH.USERAUTH_REQUEST, 'x', 'y', 'none'))]],
    ['a channel before the key exchange', [IDENT, packet(message(SSH.CHANNEL_OPEN, 'session'))]],
    ['random bytes after the identification', [IDENT, randomBytes(100_000)]],
  ];
  for (const [what, parts] of attacks) test(what, () => send(...parts));

  const sockets = new Set<Socket>();
  // One that does not read would hold up the end of the tests.
  afterEach(async () => {
    for (const socket of sockets) socket.destroy();
    sockets.clear();
    for (let n = 0; n < 500 && lab.gateway.sessions().length > 0; n += 1)
      await new Promise((resolve) => setTimeout(resolve, 10));
  });

  /** A client that may send anything; `heard` gathers what comes back. */
  async function rawClient(logIn: boolean) {
    const heard: Buffer[] = [];
    let ended = '';
    const socket = connect(lab.gateway.port, '127.0.0.1');
    sockets.add(socket);
    const client = await new Promise<Transport>((resolve) => {
      const transport: Transport = new Transport({
        barrier: createBarrier(),
        socket,
        offer: offerToNode('aes128-gcm@openssh.com'),
        verifyHostKey: () => true,
        limits: defaultLimits,
        onReady: () => resolve(transport),
      });
      transport.onMessage = (payload) => heard.push(Buffer.from(payload));
      transport.onEnd = (end) => {
        ended = end.text || end.by;
      };
    });
    const until = async (what: () => unknown) => {
      for (let i = 0; i < 3_000 && !what(); i += 1) await new Promise((resolve) => setTimeout(resolve, 20));
    };
    const next = async (type: number) => {
      const found = () => heard.findIndex((payload) => payload[0] === type);
      await until(() => found() >= 0 || ended);
      return heard.splice(0, found() + 1).at(-1);
    };
    if (logIn) {
      client.send(message(SSH.SERVICE_REQUEST, 'ssh-userauth'));
      client.send(proof(client, (bytes) => bytes));
      assert.ok(await next(SSH.USERAUTH_SUCCESS));
      client.trust();
    }
    return { client, socket, heard, next, until, ended: () => ended };
  }

  function proof(
    client: Transport,
    spoil: (signature: Buffer) => Buffer,
    file = join(lab.dir, 'user'),
  ): Buffer {
    const key = readPrivateKey(readFileSync(file, 'utf8'));
    const blob = key.getPublicSSH();
    const request = message(
      SSH.USERAUTH_REQUEST,
      LOGIN,
      'ssh-connection',
      'publickey',
      true,
      'ssh-ed25519',
      blob,
    );
    const signature = key.sign(signedData(client.sessionId, request));
    assert.ok(Buffer.isBuffer(signature));
    return Buffer.concat([request, sshString(signatureBlob(spoil(signature)))]);
  }

  test('a client that begins a key exchange and never finishes it is disconnected with the reason', async () => {
    const { client, socket, until, ended } = await rawClient(true);
    client.renewKeys(Date.now(), 0);
    // It leaves the answer unread, and so never sends the rest.
    socket.pause();
    const closed = () =>
      lab.events.find(({ why }) => `${why}`.endsWith('client: The key exchange took too long.'));
    await until(closed);
    assert.ok(closed(), JSON.stringify(lab.events.at(-1)));
    socket.resume();
    await until(ended);
    assert.equal(ended(), 'The key exchange took too long.');
  });

  test('a wrong signature is no login', async () => {
    const { client, next } = await rawClient(false);
    client.send(message(SSH.SERVICE_REQUEST, 'ssh-userauth'));
    client.send(proof(client, (bytes) => Buffer.from(bytes.map((byte) => byte ^ 1))));
    assert.ok(await next(SSH.USERAUTH_FAILURE));
    client.close(11, 'done', 100);
  });

  for (const method of ['password', 'keyboard-interactive', 'hostbased', 'none'])
    test(`the method ${method} fails, with only publickey left`, async () => {
      const { client, next } = await rawClient(false);
      client.send(message(SSH.SERVICE_REQUEST, 'ssh-userauth'));
      client.send(message(SSH.USERAUTH_REQUEST, LOGIN, 'ssh-connection', method, false, 'secret'));
      assert.equal(
        new WireReader((await next(SSH.USERAUTH_FAILURE)) ?? Buffer.alloc(0), 1).text(),
        'publickey',
      );
      client.close(11, 'done', 100);
    });

  const cluster = LOGIN.slice(0, 36);
  const noNames: [string, string][] = [
    ['4,001 characters', 'x'.repeat(4_001)],
    ['30,000 bytes, a control sequence among them', `\u001b[2J\n${'é'.repeat(15_000)}`],
    ['no cluster', 'root'],
    ['no username', `${cluster}.`],
    ['a username that is too long', `${cluster}.${'a'.repeat(33)}`],
    ['a line break at the end', `${LOGIN}\n`],
  ];
  const isShort = new RegExp(`^[\\x20-\\x7e]{0,${longestLoginName + 1}}$`);
  for (const method of ['publickey', 'password'])
    for (const [what, name] of noNames)
      test(`a login name of ${what} (${method}) is refused without a question, and logged in a few characters`, async () => {
        const { client, next } = await rawClient(false);
        const key = readPrivateKey(readFileSync(join(lab.dir, 'user'), 'utf8')).getPublicSSH();
        const [asked, logged] = [lab.asked.length, lab.events.length];
        client.send(message(SSH.SERVICE_REQUEST, 'ssh-userauth'));
        client.send(message(SSH.USERAUTH_REQUEST, name, 'ssh-connection', method, false, 'ssh-ed25519', key));
        assert.ok(await next(SSH.USERAUTH_FAILURE));
        const refused = lab.events.slice(logged).filter(({ event }) => event === 'gateway.login.refused');
        assert.deepEqual(
          refused.map(({ reason, loginName }) => [reason, isShort.test(`${loginName}`)]),
          [['not_a_login_name', true]],
        );
        assert.equal(lab.asked.length, asked);
        client.close(11, 'done', 100);
      });

  test('a login name of the most characters is asked about', async () => {
    const { client, next } = await rawClient(false);
    const key = readPrivateKey(readFileSync(join(lab.dir, 'user'), 'utf8')).getPublicSSH();
    const name = `${cluster}.${'a'.repeat(32)}`;
    client.send(message(SSH.SERVICE_REQUEST, 'ssh-userauth'));
    client.send(
      message(SSH.USERAUTH_REQUEST, name, 'ssh-connection', 'publickey', false, 'ssh-ed25519', key),
    );
    assert.ok(await next(SSH.USERAUTH_FAILURE));
    assert.equal(lab.asked.at(-1)?.loginName, name);
    client.close(11, 'done', 100);
  });

  test('keys of types that are never taken are no attempts, as an agent may have many, and are logged with theirs', async () => {
    const { client, next } = await rawClient(false);
    const logged = lab.events.length;
    client.send(message(SSH.SERVICE_REQUEST, 'ssh-userauth'));
    const types = ['rsa-sha2-512', 'ssh-rsa', 'ecdsa-sha2-nistp256', 'ssh-dss'];
    for (const type of [...types, ...types, ...types]) {
      const key = [false, type, sshString(type)] as const;
      client.send(message(SSH.USERAUTH_REQUEST, LOGIN, 'ssh-connection', 'publickey', ...key));
      assert.ok(await next(SSH.USERAUTH_FAILURE));
    }
    client.send(proof(client, (bytes) => bytes));
    assert.ok(await next(SSH.USERAUTH_SUCCESS));
    const refused = lab.events.slice(logged).filter(({ reason }) => reason === 'other_key_type');
    assert.deepEqual(
      refused.slice(0, 4).map(({ detail }) => detail),
      types,
    );
    client.close(11, 'done', 100);
  });

  test('a login that is not decided yet is withdrawn when its client leaves', async () => {
    const { client, until } = await rawClient(false);
    const before = lab.decide.next;
    let asked: AbortSignal | undefined;
    lab.decide.next = (_, gone) => {
      asked = gone;
      return new Promise(() => {});
    };
    client.send(message(SSH.SERVICE_REQUEST, 'ssh-userauth'));
    client.send(proof(client, (bytes) => bytes));
    await until(() => asked);
    lab.decide.next = before;
    client.close(11, 'done', 100);
    await until(() => asked?.aborted);
    assert.equal(asked?.aborted, true);
  });

  for (const what of ['asking for the methods', 'offering a key that may come in'])
    test(`attempts are bounded, ${what} again and again among them`, async () => {
      const { client, ended, until } = await rawClient(false);
      client.send(message(SSH.SERVICE_REQUEST, 'ssh-userauth'));
      const key = readPrivateKey(readFileSync(join(lab.dir, 'user'), 'utf8')).getPublicSSH();
      const how = what.startsWith('offering')
        ? (['publickey', false, 'ssh-ed25519', key] as const)
        : ['none'];
      for (let answers = 0; answers < 100 && !ended(); answers += 1) {
        client.send(message(SSH.USERAUTH_REQUEST, LOGIN, 'ssh-connection', ...how));
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
      await until(ended);
      assert.match(ended(), /Too many authentication failures/);
    });

  test('a channel before the login is not opened', async () => {
    const { client, next } = await rawClient(false);
    client.send(message(SSH.CHANNEL_OPEN, 'session', { uint32: 0 }, { uint32: 1 }, { uint32: 1 }));
    client.send(message(SSH.SERVICE_REQUEST, 'ssh-userauth'));
    assert.ok(await next(SSH.SERVICE_ACCEPT));
    assert.equal(lab.gateway.sessions().length, 0);
    client.close(11, 'done', 100);
  });

  const openSession = (number: number) =>
    message(SSH.CHANNEL_OPEN, 'session', { uint32: number }, { uint32: 1 << 20 }, { uint32: 32768 });

  test('answers to requests keep their order, refused ones among them', async () => {
    const { client, next, heard, until } = await rawClient(true);
    client.send(openSession(5));
    const confirmed = (await next(SSH.CHANNEL_OPEN_CONFIRMATION)) ?? Buffer.alloc(9);
    const to = { uint32: confirmed.readUInt32BE(5) };
    const numbers = { raw: Buffer.alloc(16) };
    client.send(message(SSH.CHANNEL_REQUEST, to, 'pty-req', true, 'xterm', numbers, ''));
    client.send(message(SSH.CHANNEL_REQUEST, to, 'env', true, 'A', 'B'));
    client.send(message(SSH.CHANNEL_REQUEST, to, 'env', true, 'A', 'B'));
    client.send(message(SSH.CHANNEL_REQUEST, to, 'exec', true, 'exit 9'));
    client.send(message(SSH.CHANNEL_REQUEST, to, 'x11-req', true, ''));
    const answers = () => heard.map((payload) => payload[0]).filter((type) => type === 99 || type === 100);
    await until(() => answers().length === 5);
    assert.deepEqual(answers(), [99, 100, 100, 99, 100]);
    client.close(11, 'done', 100);
  });

  test('a keepalive is answered', async () => {
    const { client, next } = await rawClient(true);
    client.send(message(SSH.GLOBAL_REQUEST, 'keepalive@openssh.com', true));
    assert.ok(await next(SSH.REQUEST_FAILURE));
    client.close(11, 'done', 100);
  });

  test('after "no more sessions" there are none', async () => {
    const { client, next } = await rawClient(true);
    client.send(message(SSH.GLOBAL_REQUEST, 'no-more-sessions@openssh.com', false));
    client.send(openSession(1));
    assert.ok(await next(SSH.CHANNEL_OPEN_FAILURE));
    client.close(11, 'done', 100);
  });

  const faults: [string, Buffer[]][] = [
    ['data for a channel that does not exist', [message(SSH.CHANNEL_DATA, { uint32: 77 }, 'x')]],
    ['a channel number twice', [openSession(1), openSession(1)]],
    ['a message that ends too soon', [message(SSH.CHANNEL_REQUEST, { raw: Buffer.from([0, 0]) })]],
    ['a length beyond the message', [message(SSH.GLOBAL_REQUEST, { uint32: 1_000_000 })]],
  ];
  for (const [what, messages] of faults)
    test(`${what} ends the connection`, async () => {
      const { client, until, ended } = await rawClient(true);
      for (const each of messages) client.send(each);
      await until(ended);
      assert.equal(ended(), 'protocol error');
    });

  const packets: [string, Buffer][] = [
    ['the length 0', length(0)],
    ['a length that is no multiple of the block', length(17)],
    ['a length beyond the largest packet', length(0x7fffffff)],
    ['a length that is negative to some', length(0xffffffff)],
    ['a good length and garbage', Buffer.concat([length(32), randomBytes(48)])],
  ];
  for (const logIn of [false, true])
    for (const [what, packet] of packets)
      test(`a packet with ${what} ends the connection, ${logIn ? 'after' : 'before'} the login`, async () => {
        const { socket, until, ended } = await rawClient(logIn);
        socket.write(Buffer.concat([packet, randomBytes(100_000)]));
        await until(ended);
        assert.ok(ended() !== '');
      });

  const confirmedBy = async (raw: Awaited<ReturnType<typeof rawClient>>, number: number) => {
    raw.client.send(openSession(number));
    const confirmed = (await raw.next(SSH.CHANNEL_OPEN_CONFIRMATION)) ?? Buffer.alloc(9);
    return { uint32: confirmed.readUInt32BE(5) };
  };

  /** A transport hands nobody a PONG: it takes it for a message that it does not know. */
  function countUnknown(client: Transport): () => number {
    let count = 0;
    client.refuseMessage = () => {
      count += 1;
    };
    return () => count;
  }

  test('a ping is answered', async () => {
    const { client, until } = await rawClient(true);
    const pongs = countUnknown(client);
    client.send(message(SSH.PING, 'are you there'));
    await until(pongs);
    assert.equal(pongs(), 1);
    client.close(11, 'done', 100);
  });

  test('keepalives are answered in order, each once', async () => {
    const { client, heard, until } = await rawClient(true);
    const pongs = countUnknown(client);
    for (let n = 0; n < 500; n += 1)
      client.send(message(SSH.GLOBAL_REQUEST, n % 2 ? 'keepalive@openssh.com' : 'tcpip-forward', n % 5 > 0));
    client.send(message(SSH.PING, 'last'));
    await until(pongs);
    // The first is the announcement of host keys.
    const answers = heard.flatMap(([type]) =>
      type === SSH.DEBUG || type === SSH.GLOBAL_REQUEST ? [] : [type],
    );
    assert.deepEqual(answers, Array<number>(400).fill(SSH.REQUEST_FAILURE));
    client.close(11, 'done', 100);
  });

  test('a flood of channels is refused one by one, and the connection goes on', async () => {
    const raw = await rawClient(true);
    const to = await confirmedBy(raw, 0);
    for (let n = 1; n <= 2000; n += 1) raw.client.send(openSession(n));
    const answers = () =>
      raw.heard.filter(
        ([type]) => type === SSH.CHANNEL_OPEN_CONFIRMATION || type === SSH.CHANNEL_OPEN_FAILURE,
      );
    await raw.until(() => answers().length === 2000);
    assert.equal(answers().length, 2000);
    assert.equal(
      lab.gateway.sessions().at(-1)?.channels,
      answers().filter(([type]) => type === 91).length + 1,
    );
    raw.client.send(message(SSH.CHANNEL_REQUEST, to, 'exec', true, 'exit 5'));
    assert.ok(await raw.next(SSH.CHANNEL_SUCCESS));
    raw.client.close(11, 'done', 100);
  });

  test('a channel number is free again when both sides have closed it, however often', async () => {
    const raw = await rawClient(true);
    for (let n = 0; n < 50; n += 1) {
      const to = await confirmedBy(raw, 3);
      raw.client.send(message(SSH.CHANNEL_CLOSE, to));
      assert.ok(await raw.next(SSH.CHANNEL_CLOSE));
    }
    assert.equal(lab.gateway.sessions().at(-1)?.channels, 0);
    raw.client.close(11, 'done', 100);
  });

  test('more than the window allows harms no one else', async () => {
    const raw = await rawClient(true);
    const to = await confirmedBy(raw, 0);
    raw.client.send(message(SSH.CHANNEL_REQUEST, to, 'exec', false, 'sleep 5'));
    for (let n = 0; n < 3; n += 1)
      raw.client.send(message(SSH.CHANNEL_WINDOW_ADJUST, to, { uint32: 0xffffffff }));
    for (let n = 0; n < 400; n += 1) raw.client.send(message(SSH.CHANNEL_DATA, to, Buffer.alloc(32_000)));
    assert.equal((await lab.ssh(['gateway', 'exit 6'])).status, 6);
    raw.client.close(11, 'done', 100);
  });

  test('login is decided on the key that was proven, never on one that was only offered', async () => {
    const before = lab.gateway.sessions().length;
    const { client, next } = await rawClient(false);
    client.send(message(SSH.SERVICE_REQUEST, 'ssh-userauth'));
    const good = readPrivateKey(readFileSync(join(lab.dir, 'user'), 'utf8')).getPublicSSH();
    client.send(
      message(SSH.USERAUTH_REQUEST, LOGIN, 'ssh-connection', 'publickey', false, 'ssh-ed25519', good),
    );
    assert.ok(await next(SSH.USERAUTH_PK_OK));
    client.send(proof(client, (bytes) => bytes, lab.newKey('another')));
    assert.ok(await next(SSH.USERAUTH_FAILURE));
    assert.ok(lab.gateway.sessions().length <= before);
    client.close(11, 'done', 100);
  });

  test('a proof for one login name is none for another', async () => {
    const { client, next } = await rawClient(false);
    client.send(message(SSH.SERVICE_REQUEST, 'ssh-userauth'));
    const proven = proof(client, (bytes) => bytes);
    proven.write('x', proven.indexOf('.root') + 1);
    client.send(proven);
    assert.ok(await next(SSH.USERAUTH_FAILURE));
    client.close(11, 'done', 100);
  });

  test('a reader that stalls with gigabytes in flight costs less than 8 MB', async () => {
    const stalled: Awaited<ReturnType<typeof rawClient>>[] = [];
    const used = () => {
      globalThis.gc?.();
      return process.memoryUsage().rss;
    };
    const before = used();
    for (let n = 0; n < 8; n += 1) {
      const raw = await rawClient(true);
      const window = { uint32: 0xffffffff };
      raw.client.send(message(SSH.CHANNEL_OPEN, 'session', { uint32: 1 }, window, { uint32: 32_768 }));
      const confirmed = (await raw.next(SSH.CHANNEL_OPEN_CONFIRMATION)) ?? Buffer.alloc(9);
      const to = { uint32: confirmed.readUInt32BE(5) };
      raw.client.pause();
      raw.client.send(message(SSH.CHANNEL_REQUEST, to, 'exec', false, 'exec cat /dev/zero'));
      stalled.push(raw);
    }
    let passed = -1;
    const down = () => lab.gateway.sessions().reduce((sum, { bytesDown }) => sum + bytesDown, 0);
    // Until nothing moves any more: what is held is held.
    for (; passed !== down(); await new Promise((resolve) => setTimeout(resolve, 500))) passed = down();
    const each = (used() - before) / stalled.length;
    assert.ok(each < 8e6, `${(each / 1e6).toFixed(1)} MB each`);
    assert.ok(passed / stalled.length < 16e6, `${passed} bytes passed`);
    assert.equal((await lab.ssh(['gateway', 'exit 6'])).status, 6);
  });

  test('and serves the next person', async () => {
    assert.equal((await lab.ssh(['gateway', 'exit 6'])).status, 6);
    assert.deepEqual(lab.gateway.sessions(), []);
  });
});

describe('a thousand idle connections', { skip: whyNot }, () => {
  const crowd = 1000;

  /** Connections that say nothing; `gone` counts those that the gateway has ended. */
  async function idle(lab: Lab, count: number) {
    const sockets = Array.from({ length: count }, () => connect(lab.gateway.port, '127.0.0.1'));
    let gone = 0;
    for (const socket of sockets) {
      socket.on('error', () => {});
      socket.on('close', () => {
        gone += 1;
      });
      socket.resume();
    }
    await Promise.all(
      sockets.map(
        (socket) => new Promise((resolve) => socket.once('connect', resolve).once('close', resolve)),
      ),
    );
    return { gone: () => gone, end: () => sockets.forEach((socket) => void socket.destroy()) };
  }

  test('held or turned away, they keep out no one who is in, nor the next one', async () => {
    const room = { unauthenticated: 1200, unauthenticatedPerSource: 1200 };
    const lab = await openLab({ ...room, loginGraceMs: 12_000, helloMs: 60_000 });
    const child = lab.start('ssh', [...lab.options, 'gateway', 'echo up; exec cat']);
    const answer = () => firstOutput(child);
    await answer();
    const before = process.memoryUsage().rss;
    const held = await idle(lab, crowd);
    assert.equal(held.gone(), 0);
    const each = (process.memoryUsage().rss - before) / crowd;
    assert.ok(each < 400_000, `${Math.round(each)} bytes each, the client's side included`);
    const heard = answer();
    child.stdin?.write('x\n');
    await heard;
    assert.equal((await lab.ssh(['gateway', 'exit 6'])).status, 6);
    for (let n = 0; n < 300 && held.gone() < crowd; n += 1)
      await new Promise((done) => setTimeout(done, 100));
    assert.equal(held.gone(), crowd, 'the login grace ends them');
    await lab.close();
  });

  test('by default most of them are turned away, and their memory with them', async () => {
    const lab = await openLab();
    const flood = await idle(lab, crowd);
    const turned = crowd - defaultLimits.unauthenticatedPerSource;
    for (let n = 0; n < 200 && flood.gone() < turned; n += 1)
      await new Promise((resolve) => setTimeout(resolve, 100));
    assert.ok(flood.gone() >= crowd - defaultLimits.unauthenticatedPerSource, `${flood.gone()} gone`);
    flood.end();
    await new Promise((resolve) => setTimeout(resolve, 200));
    assert.equal((await lab.ssh(['gateway', 'exit 6'])).status, 6);
    await lab.close();
  });
});
