/**
 * Random messages through the relay and the policy, 2,000 of each and for as long as FUZZ_SECONDS says. What gets to
 * the other side is read again here, by other code than that which let it through. FUZZ_SEED brings a run back.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defaultLimits } from '../../src/gateway/ssh/limits.ts';
import { judge, type Side } from '../../src/gateway/ssh/relay/policy.ts';
import { Relay } from '../../src/gateway/ssh/relay/relay.ts';
import { createHostKeys } from '../../src/gateway/ssh/transport/host-keys.ts';
import type { Transport } from '../../src/gateway/ssh/transport/transport.ts';
import { message, SSH, WireError } from '../../src/lib/ssh/wire.ts';
import { mulberry } from '../support/random.ts';

const seed = Number(process.env['FUZZ_SEED'] ?? Date.now() % 1_000_000_007);
const random = mulberry(seed);
const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;
const number = (below: number) => Math.floor(random() * below);

function rounds(t: { diagnostic(text: string): void }, body: () => void) {
  t.diagnostic(`FUZZ_SEED=${seed}`);
  const until = Date.now() + Number(process.env['FUZZ_SECONDS'] ?? 0) * 1000;
  let count = 0;
  for (; count < 2000 || Date.now() < until; count += 1) body();
  t.diagnostic(`${count} rounds`);
}

const bytes = (most: number) => Buffer.from(Array.from({ length: number(most) }, () => number(256)));

const hosts = [
  ...['localhost', '127.0.0.1', '127.1.2.3', '::1', '127.255.255.255'],
  ...['0.0.0.0', '::', '127.1', '2130706433', '0x7f.0.0.1', '::ffff:127.0.0.1', 'LOCALHOST', 'localhost.'],
  ...['127.0.0.1\0.evil.example', ' 127.0.0.1', '127.0.0.256', '10.0.0.5', 'evil.example', '', '[::1]'],
];
const loopback = /^(localhost|0?::0?1|127(\.(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])){3})$/i;

const host = () => {
  const base = pick(hosts);
  if (random() < 0.7) return base;
  const at = number(base.length + 1);
  return base.slice(0, at) + pick(['0', '.', '1', ':', '\n', 'x', '\u0000', '２']) + base.slice(at);
};

test('fuzz: forwarding goes to loopback destinations and nowhere else', (t) => {
  rounds(t, () => {
    const name = host();
    const verdict = judge(
      'client',
      { kind: 'open', type: 'direct-tcpip', host: name, port: 22 },
      { path: '/bin/sh', isOfAccount: false },
    );
    assert.equal(
      verdict.do,
      loopback.test(name) && !name.includes('\n') ? 'allow' : 'refuse',
      JSON.stringify(name),
    );
    if (verdict.do === 'refuse') assert.match(verdict.reason, /^[ -~]{1,300}$/);
  });
});

const types = [
  ...['session', 'direct-tcpip', 'forwarded-tcpip', 'x11', 'auth-agent@openssh.com', 'tun@openssh.com'],
  ...['direct-streamlocal@openssh.com', 'Session', 'session\0'],
];
const requests = [
  ...['pty-req', 'window-change', 'signal', 'break', 'eow@openssh.com', 'shell', 'exec', 'subsystem', 'env'],
  ...['x11-req', 'auth-agent-req@openssh.com', 'xon-xoff', 'exit-status', 'exit-signal', 'exec\0', 'EXEC'],
];
const globals = [
  'tcpip-forward',
  'no-more-sessions@openssh.com',
  'keepalive@openssh.com',
  'hostkeys-00@openssh.com',
];
const commands = ['true', 'a\0b', `'; rm -rf /; '`, '\\', '!x', '\n', ''];
const systems = ['sftp', 'netconf', 'sftp\0', ''];

/** A message as a side might send it, sometimes cut short or with a byte changed. */
function anyMessage(): Buffer {
  const channel = { uint32: random() < 0.9 ? number(4) : number(2 ** 32) };
  const big = { uint32: pick([0, 1, 1 << 15, 2 ** 31, 2 ** 32 - 1]) };
  const name = pick(requests);
  const argument = name === 'subsystem' ? pick(systems) : pick(commands);
  const made = pick([
    () => message(SSH.CHANNEL_OPEN, pick(types), channel, big, big, host(), { uint32: 22 }, '127.0.0.1', big),
    () => message(SSH.CHANNEL_OPEN_CONFIRMATION, channel, { uint32: number(4) }, big, big),
    () => message(SSH.CHANNEL_OPEN_FAILURE, channel, { uint32: 1 }, 'no', ''),
    () => message(SSH.CHANNEL_DATA, channel, bytes(100)),
    () => message(SSH.CHANNEL_EXTENDED_DATA, channel, { uint32: 1 }, bytes(100)),
    () => message(SSH.CHANNEL_WINDOW_ADJUST, channel, big),
    () => message(SSH.CHANNEL_EOF, channel),
    () => message(SSH.CHANNEL_CLOSE, channel),
    () => message(SSH.CHANNEL_SUCCESS, channel),
    () => message(SSH.CHANNEL_FAILURE, channel),
    () => message(SSH.CHANNEL_REQUEST, channel, name, random() < 0.5, argument),
    () => message(SSH.GLOBAL_REQUEST, pick(globals), random() < 0.5, 'localhost', { uint32: 22 }),
    () => message(SSH.REQUEST_SUCCESS),
    () => Buffer.concat([Buffer.from([50 + number(142)]), bytes(60)]),
  ])();
  if (random() < 0.9) return made;
  if (random() < 0.5) return made.subarray(0, 1 + number(made.length));
  const spoiled = Buffer.from(made);
  const at = number(spoiled.length);
  spoiled[at] = number(256);
  return spoiled;
}

/** A transport that keeps what is sent over it. */
function fakeTransport() {
  const sent: Buffer[] = [];
  const transport = {
    onMessage: (_: Buffer) => {},
    onDrained: () => {},
    full: false,
    software: 'OpenSSH_9.9',
    send: (payload: Buffer) => void sent.push(Buffer.from(payload)),
    forward: (_: unknown, payload: Buffer) => void sent.push(Buffer.from(payload)),
    pause() {},
    resume() {},
    refuseMessage() {},
  };
  return { transport: transport as unknown as Transport, sent };
}

function text(payload: Buffer, at: number): [string, number] {
  const length = payload.readUInt32BE(at);
  assert.ok(at + 4 + length <= payload.length);
  return [payload.toString('latin1', at + 4, at + 4 + length), at + 4 + length];
}

/** What the login node must never be asked, whatever the person sent. */
function checkForNode(payload: Buffer) {
  const type = payload[0] ?? 0;
  if (type === SSH.GLOBAL_REQUEST) assert.fail('a request of the connection got through');
  if (type === SSH.CHANNEL_OPEN) {
    const [kind, next] = text(payload, 1);
    assert.ok(kind === 'session' || kind === 'direct-tcpip', kind);
    if (kind === 'direct-tcpip') assert.match(text(payload, next + 12)[0], loopback);
  }
  if (type !== SSH.CHANNEL_REQUEST) return;
  const [name, next] = text(payload, 5);
  assert.ok(
    ['pty-req', 'window-change', 'signal', 'break', 'eow@openssh.com', 'exec', 'subsystem'].includes(name),
    name,
  );
  if (name === 'subsystem') assert.equal(text(payload, next + 1)[0], 'sftp');
  if (name === 'exec') {
    const [line] = text(payload, next + 1);
    assert.match(line, /^exec \/bin\/sh -c '[^']*' andromeda '/);
    assert.ok(!line.includes('\0'));
  }
}

function checkForPerson(payload: Buffer) {
  const type = payload[0] ?? 0;
  assert.notEqual(type, SSH.CHANNEL_OPEN, 'a login node opened a channel towards a person');
  assert.notEqual(type, SSH.GLOBAL_REQUEST);
  if (type !== SSH.CHANNEL_REQUEST) return;
  assert.ok(
    ['exit-status', 'exit-signal', 'eow@openssh.com', 'xon-xoff'].includes(text(payload, 5)[0]),
    text(payload, 5)[0],
  );
}

test('fuzz: whatever either side sends, only what the contract supports gets to the other', (t) => {
  let through = 0;
  rounds(t, () => {
    const client = fakeTransport();
    const node = fakeTransport();
    const relay = new Relay({
      client: client.transport,
      node: node.transport,
      limits: { ...defaultLimits, channelsPerConnection: 3, maxPendingReplies: 4 },
      hostKeys: createHostKeys([]),
      route: () => undefined,
      onRefusal() {},
      onUse() {},
    });
    const ended = new Set<Side>();
    for (let n = 0; n < 40 && ended.size === 0; n += 1) {
      const side: Side = random() < 0.6 ? 'client' : 'node';
      try {
        (side === 'client' ? client : node).transport.onMessage(anyMessage());
      } catch (error) {
        // As the transport does: whoever broke the protocol is cut off.
        assert.ok(error instanceof WireError, String(error));
        ended.add(side);
      }
      if (random() < 0.02) relay.notify('a notice');
      assert.ok(relay.channels <= 3);
    }
    for (const payload of node.sent) checkForNode(payload);
    for (const payload of client.sent) checkForPerson(payload);
    through += node.sent.length;
  });
  assert.ok(through > 100, `${through} messages got through: the fuzz must reach the far side`);
});
