/** A TCP proxy in front of the gateway that says where people come from (PROXY protocol, version 2), with real ssh. */
import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { connect, createServer, type Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { GatewayOptions } from '../../src/gateway/ssh/index.ts';
import { readProxyHeader } from '../../src/gateway/ssh/transport/proxy-protocol.ts';
import { becomes } from '../support/app.ts';
import { listening } from '../support/ports.ts';
import { type Lab, openLab, whyNot } from './lab.ts';

const SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');

function header(command: number, family: number, addresses: Buffer): Buffer {
  const head = Buffer.alloc(4);
  head.writeUInt8(0x20 | command, 0);
  head.writeUInt8(family, 1);
  head.writeUInt16BE(addresses.length, 2);
  return Buffer.concat([SIGNATURE, head, addresses]);
}

const ports = [0xc3, 0x50, 0, 22];
const fromV4 = header(1, 0x11, Buffer.from([203, 0, 113, 7, 10, 0, 0, 1, ...ports]));
const v6 = Buffer.from('20010db8000000000000000000000099', 'hex');
const fromV6 = header(1, 0x21, Buffer.concat([v6, v6, Buffer.from(ports), Buffer.from([4, 0, 1, 0])]));
/** As a proxy that listens on `::` says where IPv4 comes from. */
const mapped = (last: number) => {
  const address = Buffer.from([...Buffer.alloc(10), 0xff, 0xff, 203, 0, 113, last]);
  return header(1, 0x21, Buffer.concat([address, v6, Buffer.from(ports)]));
};
const local = header(0, 0, Buffer.alloc(0));

test('a header is read, whole or in part, and what is malformed is known for it', () => {
  assert.deepEqual(readProxyHeader(Buffer.concat([fromV4, Buffer.from('SSH-2.0-x\r\n')])), {
    length: 28,
    address: '203.0.113.7',
  });
  assert.deepEqual(readProxyHeader(fromV6), { length: 56, address: '2001:db8::99' });
  assert.deepEqual(readProxyHeader(mapped(7)), { length: 52, address: '203.0.113.7' });
  assert.deepEqual(readProxyHeader(local), { length: 16 });
  assert.deepEqual(readProxyHeader(header(1, 0x31, Buffer.alloc(216))), { length: 232 });
  for (let n = 0; n < fromV4.length; n += 1) assert.equal(readProxyHeader(fromV4.subarray(0, n)), 'more');
  for (const wrong of [
    header(2, 0x11, Buffer.alloc(12)),
    header(1, 0x11, Buffer.alloc(11)),
    header(1, 0x21, Buffer.alloc(35)),
    header(1, 0x11, Buffer.alloc(1009)),
    Buffer.concat([SIGNATURE, Buffer.from([0x11, 0x11, 0, 12])]),
  ])
    assert.equal(readProxyHeader(wrong), 'malformed');
  assert.equal(readProxyHeader(Buffer.from('SSH-2.0-x\r\n')), 'none');
  assert.equal(readProxyHeader(Buffer.from('PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\n')), 'none');
});

describe('behind a proxy', { skip: whyNot }, () => {
  async function open(
    t: TestContext,
    how: Pick<GatewayOptions, 'trustedProxies' | 'proxyProtocol'>,
  ): Promise<Lab> {
    const lab = await openLab({}, [], how);
    t.after(() => lab.close());
    return lab;
  }
  const trusting = (proxyProtocol: GatewayOptions['proxyProtocol'] = 'optional') => ({
    trustedProxies: ['127.0.0.1'],
    proxyProtocol,
  });

  /** A proxy that sends `head` before what a client says; its port. */
  async function proxy(t: TestContext, lab: Lab, head: Buffer): Promise<number> {
    const sockets = new Set<Socket>();
    const server = createServer((socket) => {
      const to = connect(lab.gateway.port, '127.0.0.1');
      for (const end of [socket, to]) sockets.add(end.on('error', () => {}));
      // Byte by byte as far as TCP lets us: a header may come in pieces.
      to.setNoDelay(true);
      to.write(head.subarray(0, 5));
      setTimeout(() => {
        to.write(head.subarray(5));
        socket.pipe(to).pipe(socket);
      }, 20);
    });
    const port = await listening(server);
    t.after(() => {
      server.close();
      for (const socket of sockets) socket.destroy();
    });
    return port;
  }

  const through = (lab: Lab, port: number) =>
    lab.ssh(['-o', `HostKeyAlias=[127.0.0.1]:${lab.gateway.port}`, '-p', `${port}`, 'gateway', 'exit 7']);

  for (const [what, head, address] of [
    ['IPv4', fromV4, '203.0.113.7'],
    ['IPv6', fromV6, '2001:db8::99'],
    ['LOCAL', local, '127.0.0.1'],
  ] as const)
    test(`the address in its header is the one that counts, in the log and the records: ${what}`, async (t) => {
      const lab = await open(t, trusting());
      const recorded: string[] = [];
      lab.recorder.record = (event) => {
        if (event.kind === 'opened') recorded.push(event.session.remoteAddress);
      };
      const ran = await through(lab, await proxy(t, lab, head));
      assert.equal(ran.status, 7, ran.err);
      const accepted = lab.events.find(({ event }) => event === 'gateway.login.accepted');
      assert.deepEqual([accepted?.['remoteAddress'], recorded], [address, [address]]);
    });

  for (const [what, crowd, other] of [
    ['', fromV4, fromV6],
    [', IPv4 as IPv6 too', mapped(7), mapped(8)],
  ] as const)
    test(`its clients are limited each by itself${what}`, async (t) => {
      const lab = await openLab({ unauthenticated: 20 }, [], trusting());
      t.after(() => lab.close());
      const sockets = Array.from({ length: 40 }, () => connect(lab.gateway.port, '127.0.0.1'));
      for (const socket of sockets) socket.on('error', () => {}).write(crowd);
      await sleep(200);
      assert.equal((await through(lab, await proxy(t, lab, other))).status, 7);
      for (const socket of sockets) socket.destroy();
    });

  const v1 = Buffer.from('PROXY TCP4 192.0.2.1 192.0.2.2 1 22\r\n');
  const nothing = Buffer.alloc(0);
  const rows: [what: string, Parameters<typeof open>[1], head: Buffer, refusal: RegExp | undefined][] = [
    ['none, where it is optional', trusting(), nothing, undefined],
    ['none, where it is required', trusting('required'), nothing, /^no PROXY header,SSH-2\.0-OpenSSH_/],
    ['version 2, where it is required', trusting('required'), fromV4, undefined],
    ['version 1', trusting(), v1, /^unexpected PROXY header,PROXY TCP4 192\.0\.2\.1 192/],
    ['version 2, from nobody who is trusted', { trustedProxies: [] }, fromV4, /^unexpected PROXY header/],
    ['version 2, with the setting off', trusting('off'), fromV4, /^unexpected PROXY header/],
  ];
  for (const [what, how, head, refusal] of rows)
    test(`a header of ${what}: ${refusal ? 'closed, with a line of what came' : 'let in'}`, async (t) => {
      const lab = await open(t, how);
      const { status } = await through(lab, await proxy(t, lab, head));
      assert.equal(status, refusal ? 255 : 7);
      if (refusal) assert.match(`${refusals(lab)}`, refusal);
    });

  test('a malformed header closes the connection', async (t) => {
    const lab = await open(t, trusting());
    const socket = connect(lab.gateway.port, '127.0.0.1');
    socket.on('error', () => {}).resume();
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.write(header(2, 0x11, Buffer.alloc(12)));
    await closed;
    assert.deepEqual(refusals(lab), [['a malformed PROXY header', '???????QUIT?"???????????????']]);
    assert.equal((await lab.ssh(['gateway', 'exit 7'])).status, 7);
  });

  test('what a refused client sends after its header is not taken for another connection', async (t) => {
    const lab = await openLab({ unauthenticated: 1, queued: 0 }, [], trusting());
    const open = async (head: Buffer) => {
      const socket = connect(lab.gateway.port, '127.0.0.1');
      t.after(() => socket.destroy());
      socket.on('error', () => {}).write(head);
      await new Promise((resolve) => socket.once('data', resolve));
      return socket;
    };
    // The first has the only place, which its address cannot take from itself.
    await open(fromV4);
    const refused = await open(fromV4);
    const closed = new Promise((resolve) => refused.once('close', resolve));
    refused.write('SSH-2.0-x\r\n');
    await closed;
    await lab.close();
    const counted = lab.events.filter(({ event }) => /^gateway\.connections?\.refused$/.test(`${event}`));
    assert.deepEqual(
      counted.map(({ event, remoteAddress }) => [event, remoteAddress]),
      [['gateway.connection.refused', '203.0.113.7']],
    );
  });

  for (const [where, proxy, head, most] of [
    ['from a client', '192.0.2.1', Buffer.alloc(0), 0],
    // What comes along with the header, in one read.
    ['behind a proxy', '127.0.0.2', fromV4, 64 * 1024],
  ] as const)
    test(`of a connection that waits ${where} nothing is read that a client sends`, async (t) => {
      const never = { helloMs: 600_000, loginGraceMs: 600_000, queueMs: 600_000 };
      const lab = await openLab({ ...never, unauthenticatedPerSource: 1 }, [], { trustedProxies: [proxy] });
      t.after(() => lab.close());
      const accepted: Socket[] = [];
      const onSocket = (message: unknown) => {
        const { socket } = message as { socket: Socket };
        if (socket.remoteAddress?.endsWith('127.0.0.2')) accepted.push(socket);
      };
      subscribe('net.server.socket', onSocket);
      t.after(() => unsubscribe('net.server.socket', onSocket));
      const open = (sent: Buffer) => {
        const socket = connect({ port: lab.gateway.port, host: '127.0.0.1', localAddress: '127.0.0.2' });
        t.after(() => socket.destroy());
        socket.on('error', () => {}).write(Buffer.concat([head, sent]));
        return socket;
      };
      // It has the only place of its address, and says nothing.
      await new Promise((resolve) => open(Buffer.alloc(0)).once('data', resolve));
      for (let n = 0; n < 20; n += 1) open(Buffer.alloc(2 ** 20, 'x'));
      await becomes(() => accepted.length, 21);
      assert.equal((await lab.ssh(['gateway', 'exit 7'])).status, 7);
      const waiting = accepted.slice(1).map(({ bytesRead }) => bytesRead);
      assert.ok(Math.max(...waiting) <= most, `${Math.max(...waiting)} bytes`);
      if (most > 0) assert.ok(Math.min(...waiting) >= head.length, 'the header is read');
    });
});

const refusals = ({ events }: Lab) =>
  events.flatMap(({ event, reason, detail }) =>
    event === 'gateway.connection.refused' ? [[reason, detail]] : [],
  );
