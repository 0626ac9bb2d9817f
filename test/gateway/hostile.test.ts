/** What a well-behaved client never sends. The gateway survives all of it and serves the next person. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, afterEach, before, describe } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { longestLoginName } from '../../src/domain/access/ssh-session.ts';
import { readPrivateKey } from '../../src/gateway/ssh/transport/ssh2.ts';
import { message, SSH, sshString, WireReader } from '../../src/lib/ssh/wire.ts';
import { becomes } from '../support/app.ts';
import { data, exec, packet, proof, type RawClient, rawClient, rawUnauthenticated } from './clients/raw.ts';
import { firstOutput, type Lab, LOGIN, openLab, test, whyNot } from './lab.ts';

const IDENT = Buffer.from('SSH-2.0-test\r\n');

describe('the gateway survives', { skip: whyNot }, () => {
  let lab: Lab;
  before(async () => {
    // So many wrong names come from one address that answers would be slowed.
    lab = await openLab({ loginGraceMs: 5000, rekeyGraceMs: 3000, backoffMs: 0 });
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
  test('whatever is no SSH is closed, and silence when the login grace is over', async () => {
    const open = new Set(attacks.map(([what]) => what));
    for (const [what, parts] of attacks) void send(...parts).then(() => open.delete(what));
    await becomes(() => [...open].join(), '');
  });

  const clients = new Set<RawClient>();
  const kept = (client: RawClient) => {
    clients.add(client);
    return client;
  };
  const stranger = async () => {
    const client = kept(await rawUnauthenticated(lab));
    client.transport.send(message(SSH.SERVICE_REQUEST, 'ssh-userauth'));
    return client;
  };
  const person = async () => kept(await rawClient(lab));
  // One that does not read would hold up the end of the tests.
  afterEach(async () => {
    for (const { socket } of clients) socket.destroy();
    clients.clear();
    await becomes(() => lab.gateway.sessions().length, 0);
  });

  /** Asks for a login that is refused; the answer. */
  async function asked({ transport, next }: RawClient, ...fields: Parameters<typeof message>[1][]) {
    transport.send(message(SSH.USERAUTH_REQUEST, ...fields));
    return next(SSH.USERAUTH_FAILURE);
  }
  const publicKey = () => readPrivateKey(readFileSync(join(lab.dir, 'user'), 'utf8')).getPublicSSH();

  test('a client that begins a key exchange and never finishes it is disconnected with the reason', async () => {
    const { transport, socket, ended } = await person();
    transport.renewKeys(Date.now(), 0);
    // It leaves the answer unread, and so never sends the rest.
    socket.pause();
    const isClosed = ({ why }: { why?: unknown }) =>
      `${why}`.endsWith('client: The key exchange took too long.');
    await becomes(() => lab.events.some(isClosed), true);
    socket.resume();
    await becomes(ended, 'The key exchange took too long.');
  });

  test('password, keyboard-interactive, hostbased and none fail, with only publickey left', async () => {
    const client = await stranger();
    for (const method of ['password', 'keyboard-interactive', 'hostbased', 'none']) {
      const refused = await asked(client, LOGIN, 'ssh-connection', method, false, 'secret');
      assert.equal(new WireReader(refused, 1).text(), 'publickey', method);
    }
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
  for (const [what, name] of noNames)
    test(`a login name of ${what} is refused without a question, and logged in a few characters`, async () => {
      const [before, logged] = [lab.asked.length, lab.events.length];
      for (const method of ['publickey', 'password'])
        await asked(await stranger(), name, 'ssh-connection', method, false, 'ssh-ed25519', publicKey());
      const refused = lab.events.slice(logged).filter(({ event }) => event === 'gateway.login.refused');
      assert.deepEqual(
        refused.map(({ reason, loginName }) => [reason, isShort.test(`${loginName}`)]),
        Array(2).fill(['not_a_login_name', true]),
      );
      assert.equal(lab.asked.length, before);
    });

  test('a login name of the most characters is asked about', async () => {
    const name = `${cluster}.${'a'.repeat(32)}`;
    const client = await stranger();
    await asked(client, name, 'ssh-connection', 'publickey', false, 'ssh-ed25519', publicKey());
    assert.equal(lab.asked.at(-1)?.loginName, name);
  });

  test('keys of types that are never taken are no attempts, as an agent may have many, and are logged with theirs', async () => {
    const client = await stranger();
    const logged = lab.events.length;
    const types = ['rsa-sha2-512', 'ssh-rsa', 'ecdsa-sha2-nistp256', 'ssh-dss'];
    for (const type of [...types, ...types, ...types])
      await asked(client, LOGIN, 'ssh-connection', 'publickey', false, type, sshString(type));
    client.transport.send(proof(client, lab));
    await client.next(SSH.USERAUTH_SUCCESS);
    const refused = lab.events.slice(logged).filter(({ reason }) => reason === 'other_key_type');
    assert.deepEqual(
      refused.slice(0, 4).map(({ detail }) => detail),
      types,
    );
  });

  test('a login that is not decided yet is withdrawn when its client leaves', async () => {
    const client = await stranger();
    const before = lab.decide.next;
    let gone: AbortSignal | undefined;
    lab.decide.next = (_, signal) => {
      gone = signal;
      return new Promise(() => {});
    };
    client.transport.send(proof(client, lab));
    await becomes(() => gone?.aborted, false);
    lab.decide.next = before;
    client.close();
    await becomes(() => gone?.aborted, true);
  });

  for (const what of ['asking for the methods', 'offering a key that may come in'])
    test(`attempts are bounded, ${what} again and again among them`, async () => {
      const { transport, ended } = await stranger();
      const how = what.startsWith('offering')
        ? (['publickey', false, 'ssh-ed25519', publicKey()] as const)
        : ['none'];
      for (let answers = 0; answers < 100 && !ended(); answers += 1) {
        transport.send(message(SSH.USERAUTH_REQUEST, LOGIN, 'ssh-connection', ...how));
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
      await becomes(() => ended().includes('Too many authentication failures'), true);
    });

  test('a channel before the login is not opened', async () => {
    const client = await stranger();
    client.transport.send(openSession(0));
    await asked(client, LOGIN, 'ssh-connection', 'none');
    assert.equal(lab.gateway.sessions().length, 0);
  });

  const openSession = (number: number) =>
    message(SSH.CHANNEL_OPEN, 'session', { uint32: number }, { uint32: 1 << 20 }, { uint32: 32768 });

  test('answers to requests keep their order, refused ones among them', async () => {
    const client = await person();
    const to = { uint32: await client.openSession(5) };
    const numbers = { raw: Buffer.alloc(16) };
    for (const request of [
      message(SSH.CHANNEL_REQUEST, to, 'pty-req', true, 'xterm', numbers, ''),
      message(SSH.CHANNEL_REQUEST, to, 'env', true, 'A', 'B'),
      message(SSH.CHANNEL_REQUEST, to, 'env', true, 'A', 'B'),
      message(SSH.CHANNEL_REQUEST, to, 'exec', true, 'exit 9'),
      message(SSH.CHANNEL_REQUEST, to, 'x11-req', true, ''),
    ])
      client.transport.send(request);
    const answers = () => client.types().filter((type) => type === 99 || type === 100);
    await becomes(() => answers().length, 5);
    assert.deepEqual(answers(), [99, 100, 100, 99, 100]);
  });

  test('after "no more sessions" there are none', async () => {
    const { transport, next } = await person();
    transport.send(message(SSH.GLOBAL_REQUEST, 'no-more-sessions@openssh.com', false));
    transport.send(openSession(1));
    await next(SSH.CHANNEL_OPEN_FAILURE);
  });

  const faults: [string, Buffer[]][] = [
    ['data for a channel that does not exist', [message(SSH.CHANNEL_DATA, { uint32: 77 }, 'x')]],
    ['a channel number twice', [openSession(1), openSession(1)]],
    ['a message that ends too soon', [message(SSH.CHANNEL_REQUEST, { raw: Buffer.from([0, 0]) })]],
    ['a length beyond the message', [message(SSH.GLOBAL_REQUEST, { uint32: 1_000_000 })]],
  ];
  for (const [what, messages] of faults)
    test(`${what} ends the connection`, async () => {
      const { transport, ended } = await person();
      for (const each of messages) transport.send(each);
      await becomes(ended, 'protocol error');
    });

  const packets: [string, Buffer][] = [
    ['the length 0', length(0)],
    ['a length that is no multiple of the block', length(17)],
    ['a length beyond the largest packet', length(0x7fffffff)],
    ['a length that is negative to some', length(0xffffffff)],
    ['a good length and garbage', Buffer.concat([length(32), randomBytes(48)])],
  ];
  for (const [what, bytes] of packets)
    test(`a packet with ${what} ends the connection, before the login and after it`, async () => {
      for (const open of [stranger, person]) {
        const { socket, ended } = await open();
        socket.write(Buffer.concat([bytes, randomBytes(100_000)]));
        await becomes(() => ended() !== '', true);
      }
    });

  test('keepalives are answered in order, each once', async () => {
    const { transport, heard } = await person();
    let pongs = 0;
    // A transport hands nobody a PONG: it takes it for a message that it does not know.
    transport.refuseMessage = () => {
      pongs += 1;
    };
    const before = heard.length;
    for (let n = 0; n < 500; n += 1)
      transport.send(
        message(SSH.GLOBAL_REQUEST, n % 2 ? 'keepalive@openssh.com' : 'tcpip-forward', n % 5 > 0),
      );
    transport.send(message(SSH.PING, 'last'));
    await becomes(() => pongs, 1);
    // The first is the announcement of host keys.
    const answers = heard
      .slice(before)
      .flatMap(([type]) => (type === SSH.DEBUG || type === SSH.GLOBAL_REQUEST ? [] : [type]));
    assert.deepEqual(answers, Array<number>(400).fill(SSH.REQUEST_FAILURE));
  });

  test('a flood of channels is refused one by one, and the connection goes on', async () => {
    const { transport, next, types, ...client } = await person();
    const to = await client.openSession(0);
    for (let n = 1; n <= 2000; n += 1) transport.send(openSession(n));
    const [confirmed, refused] = [SSH.CHANNEL_OPEN_CONFIRMATION, SSH.CHANNEL_OPEN_FAILURE];
    const count = (type: number) => types().filter((one) => one === type).length;
    await becomes(() => count(confirmed) + count(refused), 2001);
    assert.equal(lab.gateway.sessions().at(-1)?.channels, count(confirmed));
    transport.send(exec(to, 'exit 5'));
    await next(SSH.CHANNEL_SUCCESS);
  });

  test('more than the window allows harms no one else', async () => {
    const { transport, openSession } = await person();
    const to = await openSession(0);
    transport.send(exec(to, 'sleep 5', false));
    for (let n = 0; n < 3; n += 1)
      transport.send(message(SSH.CHANNEL_WINDOW_ADJUST, { uint32: to }, { uint32: 0xffffffff }));
    for (let n = 0; n < 400; n += 1) transport.send(data(to, Buffer.alloc(32_000)));
    assert.equal((await lab.ssh(['gateway', 'exit 6'])).status, 6);
  });

  test('login is decided on the key that was proven, never on one that was only offered', async () => {
    const client = await stranger();
    const offer = ['ssh-connection', 'publickey', false, 'ssh-ed25519', publicKey()] as const;
    client.transport.send(message(SSH.USERAUTH_REQUEST, LOGIN, ...offer));
    await client.next(SSH.USERAUTH_PK_OK);
    client.transport.send(proof(client, lab, lab.newKey('another')));
    await client.next(SSH.USERAUTH_FAILURE);
  });

  test('a wrong signature is no login, and a proof for one login name is none for another', async () => {
    const client = await stranger();
    for (const change of [
      (proven: Buffer) => proven.writeUInt8(proven.readUInt8(proven.length - 1) ^ 1, proven.length - 1),
      (proven: Buffer) => proven.write('x', proven.indexOf('.root') + 1),
    ]) {
      const proven = proof(client, lab);
      change(proven);
      client.transport.send(proven);
      await client.next(SSH.USERAUTH_FAILURE);
    }
    assert.ok(!client.types().includes(SSH.USERAUTH_SUCCESS));
  });

  test('a reader that stalls with gigabytes in flight costs less than 8 MB', async () => {
    setFlagsFromString('--expose-gc');
    const collect: () => void = runInNewContext('gc');
    const used = () => {
      collect();
      return process.memoryUsage().rss;
    };
    const before = used();
    const count = 8;
    for (let n = 0; n < count; n += 1) {
      const { transport, openSession } = await person();
      const to = await openSession(1, 0xffffffff);
      transport.pause();
      transport.send(exec(to, 'exec cat /dev/zero', false));
    }
    let passed = -1;
    const down = () => lab.gateway.sessions().reduce((sum, { bytesDown }) => sum + bytesDown, 0);
    // Until nothing moves any more: what is held is held.
    for (; passed !== down(); await new Promise((resolve) => setTimeout(resolve, 500))) passed = down();
    const each = (used() - before) / count;
    assert.ok(each < 8e6, `${(each / 1e6).toFixed(1)} MB each`);
    assert.ok(passed / count < 16e6, `${passed} bytes passed`);
    assert.equal((await lab.ssh(['gateway', 'exit 6'])).status, 6);
  });

  test('and serves the next person', async () => {
    assert.equal((await lab.ssh(['gateway', 'exit 6'])).status, 6);
    assert.deepEqual(lab.gateway.sessions(), []);
  });
});

test('a thousand idle connections that are held keep out no one who is in, nor the next one', async () => {
  const crowd = 1000;
  const room = { unauthenticated: 1200, unauthenticatedPerSource: 1200 };
  await using lab = await openLab({ ...room, loginGraceMs: 12_000, helloMs: 60_000 });
  const child = lab.start('ssh', [...lab.options, 'gateway', 'echo up; exec cat']);
  const answer = () => firstOutput(child);
  await answer();
  const before = process.memoryUsage().rss;
  let gone = 0;
  const sockets = Array.from({ length: crowd }, () => connect(lab.gateway.port, '127.0.0.1'));
  for (const socket of sockets) {
    socket
      .on('error', () => {})
      .on('close', () => {
        gone += 1;
      });
    socket.resume();
  }
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  assert.equal(gone, 0);
  const each = (process.memoryUsage().rss - before) / crowd;
  assert.ok(each < 400_000, `${Math.round(each)} bytes each, the client's side included`);
  const heard = answer();
  child.stdin?.write('x\n');
  await heard;
  assert.equal((await lab.ssh(['gateway', 'exit 6'])).status, 6);
  // The login grace ends them.
  await becomes(() => gone, crowd);
});
