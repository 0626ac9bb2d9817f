/** What a well-behaved client never sends. The gateway survives all of it and serves the next person. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { offerToNode } from '../../src/gateway/algorithms.ts';
import { defaultLimits } from '../../src/gateway/limits.ts';
import { SSH } from '../../src/gateway/messages.ts';
import { readPrivateKey } from '../../src/gateway/ssh2.ts';
import { Transport } from '../../src/gateway/transport.ts';
import { signatureBlob, signedData } from '../../src/gateway/user-key.ts';
import { message, reader, sshString } from '../../src/gateway/wire.ts';
import { type Lab, LOGIN, openLab, whyNot } from './lab.ts';

const IDENT = Buffer.from('SSH-2.0-test\r\n');

describe('the gateway survives', { skip: whyNot }, () => {
  let lab: Lab;
  before(async () => {
    lab = await openLab({ loginGraceMs: 1500 });
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

  /** A client that may send anything; `heard` gathers what comes back. */
  async function rawClient(logIn: boolean) {
    const heard: Buffer[] = [];
    let ended = '';
    const client = await new Promise<Transport>((resolve) => {
      const transport: Transport = new Transport({
        socket: connect(lab.gateway.port, '127.0.0.1'),
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
      for (let i = 0; i < 100 && !what(); i += 1) await new Promise((resolve) => setTimeout(resolve, 20));
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
    }
    return { client, heard, next, until, ended: () => ended };
  }

  function proof(client: Transport, spoil: (signature: Buffer) => Buffer): Buffer {
    const key = readPrivateKey(readFileSync(join(lab.dir, 'user'), 'utf8'));
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
      assert.equal(reader((await next(SSH.USERAUTH_FAILURE)) ?? Buffer.alloc(0), 1).text(), 'publickey');
      client.close(11, 'done', 100);
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

  test('and serves the next person', async () => {
    assert.equal((await lab.ssh(['gateway', 'exit 6'])).status, 6);
    assert.deepEqual(lab.gateway.sessions(), []);
  });
});
