/**
 * The policy and the loopback rule as tables, by the contract's sentences ("SSH gateway behaviour"); and what a login node sends late for
 * a channel that is being closed.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defaultLimits } from '../../src/gateway/ssh/limits.ts';
import { type Ask, judge, type Side } from '../../src/gateway/ssh/relay/policy.ts';
import { createRefusalLog, Relay } from '../../src/gateway/ssh/relay/relay.ts';
import { createHostKeys } from '../../src/gateway/ssh/transport/host-keys.ts';
import { readPrivateKey } from '../../src/gateway/ssh/transport/ssh2.ts';
import type { Transport } from '../../src/gateway/ssh/transport/transport.ts';
import { createLogger } from '../../src/lib/log.ts';
import { isLoopback } from '../../src/lib/source-address.ts';
import { generateSshKey } from '../../src/lib/ssh/public-key.ts';
import { message, SSH } from '../../src/lib/ssh/wire.ts';

const session = (name: string, more: { command?: string; subsystem?: string } = {}): Ask => ({
  kind: 'request',
  channel: 'session',
  name,
  ...more,
});
const open = (type: string, host?: string): Ask => ({
  kind: 'open',
  type,
  ...(host !== undefined && { host, port: 22 }),
});
const all = (name: string): Ask => ({ kind: 'global', name });

const table: [sentence: string, side: Side, ask: Ask, verdict: string][] = [
  ['interactive shells', 'client', open('session'), 'allow'],
  ['interactive shells', 'client', session('pty-req'), 'allow'],
  ['interactive shells', 'client', session('shell'), 'exec'],
  ['interactive shells', 'client', session('signal'), 'allow'],
  ['interactive shells', 'client', session('break'), 'allow'],
  ['interactive shells with terminal resizing', 'client', session('window-change'), 'allow'],
  ['running a command', 'client', session('exec', { command: 'true' }), 'exec'],
  ['a command with a NUL', 'client', session('exec', { command: 'a\0b' }), 'refuse'],
  ['the exit status of a command', 'node', session('exit-status'), 'allow'],
  ['the exit signal of a command', 'node', session('exit-signal'), 'allow'],
  ['piping: the reader has gone', 'node', session('eow@openssh.com'), 'allow'],
  ['piping: the reader has gone', 'client', session('eow@openssh.com'), 'allow'],
  ['SFTP', 'client', session('subsystem', { subsystem: 'sftp' }), 'allow'],
  ['another subsystem', 'client', session('subsystem', { subsystem: 'netconf' }), 'refuse'],
  ['local port forwarding to loopback', 'client', open('direct-tcpip', 'localhost'), 'allow'],
  ['local port forwarding to loopback', 'client', open('direct-tcpip', '127.0.0.1'), 'allow'],
  ['forwarding to non-loopback destinations', 'client', open('direct-tcpip', '10.0.0.5'), 'refuse'],
  ['use as a jump host', 'client', open('direct-tcpip', 'other.example'), 'refuse'],
  ['forwarding to a socket file', 'client', open('direct-streamlocal@openssh.com'), 'refuse'],
  ['a tunnel device', 'client', open('tun@openssh.com'), 'refuse'],
  ['a channel nobody has heard of', 'client', open('new@example.org'), 'refuse'],
  ['remote forwarding (-R)', 'client', all('tcpip-forward'), 'refuse'],
  ['remote forwarding (-R)', 'client', all('cancel-tcpip-forward'), 'refuse'],
  ['remote forwarding (-R)', 'client', all('streamlocal-forward@openssh.com'), 'refuse'],
  ['remote forwarding (-R)', 'node', open('forwarded-tcpip'), 'refuse'],
  ['remote forwarding (-R)', 'node', open('forwarded-streamlocal@openssh.com'), 'refuse'],
  ['agent forwarding', 'client', session('auth-agent-req@openssh.com'), 'refuse'],
  ['agent forwarding', 'node', open('auth-agent@openssh.com'), 'refuse'],
  ['X11 forwarding', 'client', session('x11-req'), 'refuse'],
  ['X11 forwarding', 'node', open('x11'), 'refuse'],
  ['passing environment variables', 'client', session('env'), 'refuse'],
  ['a request nobody has heard of', 'client', session('new@example.org'), 'refuse'],
  ['a keepalive is answered by whom it is asked', 'client', all('keepalive@openssh.com'), 'refuse'],
  ['a keepalive is answered by whom it is asked', 'node', all('keepalive@openssh.com'), 'refuse'],
  ['a keepalive is answered by whom it is asked', 'node', session('keepalive@openssh.com'), 'refuse'],
  ['no more sessions', 'client', all('no-more-sessions@openssh.com'), 'no-more-sessions'],
  ['no more sessions is for clients', 'node', all('no-more-sessions@openssh.com'), 'refuse'],
  ['host keys of login nodes are none of the client’s', 'node', all('hostkeys-00@openssh.com'), 'refuse'],
  ['a login node opens no session', 'node', open('session'), 'refuse'],
];

const shell = { path: '/bin/zsh', isOfAccount: false };

test('where the account has the shell, sshd starts it as it does without a gateway', () => {
  const own = { ...shell, isOfAccount: true };
  const request = (name: string, command?: string): Ask => ({
    ...{ kind: 'request', channel: 'session', name },
    ...(command !== undefined && { command }),
  });
  assert.deepEqual(judge('client', request('shell'), own), { do: 'allow' });
  assert.deepEqual(judge('client', request('exec', 'echo $0'), own), { do: 'exec', command: 'echo $0' });
  assert.equal(judge('client', request('exec', 'a\0b'), own).do, 'refuse');
});

for (const [sentence, side, ask, verdict] of table) {
  const what = ask.kind === 'open' ? `${ask.type} ${ask.host ?? ''}`.trim() : ask.name;
  test(`${sentence}: ${what} from the ${side} is ${verdict}`, () => {
    assert.equal(judge(side, ask, shell).do, verdict);
  });
}

test('a request on a forwarded connection is refused', () => {
  const ask: Ask = { kind: 'request', channel: 'direct-tcpip', name: 'exec', command: 'true' };
  assert.equal(judge('client', ask, shell).do, 'refuse');
});

test('a refusal says where to, in printable characters', () => {
  const verdict = judge('client', open('direct-tcpip', 'evil\u001b[31m.example'), shell);
  assert.equal(verdict.do, 'refuse');
  assert.match(verdict.do === 'refuse' ? verdict.reason : '', /evil\?\[31m\.example:22/);
});

const own = [
  ...['localhost', 'LOCALHOST', 'LocalHost', '127.0.0.1', '127.0.0.2', '127.255.255.254', '127.0.0.0'],
  ...['::1', '0::1', '::0001', '0:0:0:0:0:0:0:1', '0000:0000:0000:0000:0000:0000:0000:0001', '::0.0.0.1'],
];
for (const host of own) test(`loopback: ${host}`, () => assert.equal(isLoopback(host), true));

const foreign = [
  ...['', '0.0.0.0', '::', '0', '127', '127.1', '127.0.1', '2130706433', '0x7f000001', '0x7f.0.0.1'],
  ...['0177.0.0.1', '127.0.0.01', '127.0.0.256', '127.0.0.1.', ' 127.0.0.1', '127.0.0.1 ', '127.0.0.1\n'],
  ...['128.0.0.1', '10.0.0.1', '::ffff:127.0.0.1', '::127.0.0.1', '::ffff:7f00:1', '::2', '1::1', '::1\n'],
  ...['0:0:0:0:0:FFFF:127.0.0.1', '0:0:0:0:0:0:0:0:1', '[::1]', '::1%lo', 'fe80::1', '*', '127.0.0.1:22'],
  ...['localhost.', 'localhost.localdomain', 'ｌocalhost', 'LOCALHOST ', 'localhost.evil.example'],
  '127.0.0.1.evil.example',
];
for (const host of foreign)
  test(`not loopback: ${JSON.stringify(host)}`, () => assert.equal(isLoopback(host), false));

test('what is refused is a line for each reason, however often it is asked for', () => {
  const levels: string[] = [];
  const log = createLogger('debug', (line) => levels.push(JSON.parse(line).level));
  const refused = createRefusalLog(log, 'a session');
  for (let n = 0; n < 3; n += 1) refused('client', 'no such forward');
  refused('client', 'no agents');
  assert.deepEqual(levels, ['warn', 'debug', 'debug', 'warn']);
});

function side() {
  const got: (number | undefined)[] = [];
  const made = {
    onMessage: (_: Buffer): void => {},
    forward: (_: Transport, [type]: Buffer) => void got.push(type),
    send: ([type]: Buffer) => void got.push(type),
  };
  return { made, got, says: (...of: Parameters<typeof message>) => made.onMessage(message(...of)) };
}

test('a login node that says more after its CLOSE ends no connection, and none of it is passed on', () => {
  const [client, node] = [side(), side()];
  new Relay({
    client: client.made as unknown as Transport,
    node: node.made as unknown as Transport,
    limits: defaultLimits,
    hostKeys: createHostKeys([readPrivateKey(generateSshKey().privateKey)]),
    route: () => undefined,
    onRefusal: () => {},
    onUse: () => {},
  });
  const [ofClient, ofNode, size] = [{ uint32: 3 }, { uint32: 8 }, { uint32: 1000 }];
  client.says(SSH.CHANNEL_OPEN, 'session', ofClient, size, size);
  node.says(SSH.CHANNEL_OPEN_CONFIRMATION, ofClient, ofNode, size, size);
  node.says(SSH.CHANNEL_CLOSE, ofClient);
  node.says(SSH.CHANNEL_WINDOW_ADJUST, ofClient, size);
  node.says(SSH.CHANNEL_DATA, ofClient, 'late');
  node.says(SSH.CHANNEL_REQUEST, ofClient, 'exit-status', false, { uint32: 0 });
  client.says(SSH.CHANNEL_CLOSE, ofNode);
  node.says(SSH.CHANNEL_WINDOW_ADJUST, ofClient, size);
  node.says(SSH.CHANNEL_SUCCESS, ofClient);
  assert.deepEqual(client.got, [SSH.CHANNEL_OPEN_CONFIRMATION, SSH.CHANNEL_CLOSE]);
  assert.throws(() => node.says(SSH.CHANNEL_DATA, { uint32: 4 }, 'to none'), /no such channel/);
});
