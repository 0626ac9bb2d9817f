/** Whatever comes over the socket between the service and its gateway processes, neither side ends or grows by it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { findWay, gatewayCommand } from '../../../src/gateway/process/launch.ts';
import { openLines } from '../../../src/gateway/process/lines.ts';
import {
  type FromProcess,
  lineOf,
  mostSessions,
  readFromProcess,
  readToProcess,
  type Settings,
  type ToProcess,
} from '../../../src/gateway/process/messages.ts';
import { createRemoteLog, Records } from '../../../src/gateway/process/outgoing.ts';
import { createUses } from '../../../src/gateway/ssh/events.ts';
import { defaultLimits } from '../../../src/gateway/ssh/limits.ts';
import { mostTrustedProxies } from '../../../src/lib/source-address.ts';
import { alpha, becomes, eventually } from '../../support/app.ts';
import { heard } from '../../support/heard.ts';
import { listening } from '../../support/ports.ts';
import { finished, whyNot } from '../lab.ts';
import { openProcessLab, type ProcessLab, type Service } from './lab.ts';

const hello = { type: 'hello', protocol: 2, build: 'b', pid: 1, draining: false, sessions: [] };

test('a line is a message of its form, one that is not, or none at all', () => {
  assert.deepEqual(readFromProcess(JSON.stringify(hello)), hello);
  assert.equal(readFromProcess('{"type":"of-a-later-version","what":1}'), undefined);
  assert.equal(readToProcess('{"type":"__proto__"}'), undefined);
  const wrong: [(line: string) => unknown, { type: string; id?: number }][] = [
    [readFromProcess, { ...hello, ...{ pid: '1' } }],
    [readFromProcess, { ...hello, ...{ sessions: [1] } }],
    [readFromProcess, { ...hello, ...{ sessions: ['x'.repeat(5_000)] } }],
    [readFromProcess, { type: 'record', ...{ seq: 1, event: { kind: 'opened', at: 1 } } }],
    [readFromProcess, { type: 'record', ...{ seq: 1, event: { kind: 'other', at: 1 } } }],
    // A number that is no time.
    [readFromProcess, { type: 'record', ...{ seq: 1, event: { kind: 'opened', at: 9e15, session } } }],
    [readFromProcess, { type: 'authorize', id: 1, ...{ attempt: { loginName: 'x' } } }],
    [readFromProcess, { type: 'log', ...{ level: 'silent', event: 'gateway.started', fields: {} } }],
    [readToProcess, { type: 'welcome', ...{ settings: {} } }],
    [readToProcess, { type: 'decision', id: 7, ...{ decision: { allowed: true } } }],
    [readToProcess, { type: 'close', ...{ filter: { id: 1 }, reason: '', text: '' } }],
    [readToProcess, { type: 'handOver', ...{ command: 'sh' } }],
  ];
  for (const [read, message] of wrong)
    assert.deepEqual(read(JSON.stringify(message)), { type: 'malformed', of: message.type, id: message.id });
  const none = ['', '{', 'SSH-2.0-x', '\u0000'.repeat(100), 'null', '[]', '{"type":7}'];
  for (const text of none) assert.throws(() => readFromProcess(text), text);
});

/** Two ends of a connection: what the second is sent goes through `openLines`. */
async function pair(onMessage: (message: unknown) => void, read: (line: string) => unknown = JSON.parse) {
  const server = createServer();
  const peer = connect(await listening(server), '127.0.0.1');
  const [socket] = (await once(server, 'connection')) as [Socket];
  const faults: unknown[] = [];
  let closed: string | true | undefined;
  const lines = openLines<unknown, object>(socket, {
    read: (line) => read(line),
    onMessage,
    onClose: (fault) => {
      closed = fault ?? true;
    },
    onFault: (error) => faults.push(error),
  });
  peer.on('error', () => {});
  return {
    peer,
    lines,
    faults,
    closed: () => closed,
    [Symbol.dispose]: () => void [peer.destroy(), server.close()],
  };
}

const huge = `\u0000\ud800"${'\u{1f600}'.repeat(100_000)}`;
const name = `${alpha}.${'a'.repeat(32)}`;
const attempt = {
  loginName: name,
  publicKey: `ssh-ed25519 ${'A'.repeat(68)}`,
  fingerprint: `SHA256:${'A'.repeat(43)}`,
  remoteAddress: 'ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255',
};
const loginNode = { host: `${'a'.repeat(249)}.org`, port: 65_535, hostKey: attempt.publicKey };
const subject = { clusterId: alpha, userId: `user_${alpha}`, keyId: `ssh_key_${alpha}` };
const session = {
  ...{ ...subject, ...attempt, id: alpha, username: 'a'.repeat(32), loginNode: `${loginNode.host}:65535` },
  openedAt: new Date().toISOString(),
  ...{ channels: 1e15, bytesUp: 1e15, bytesDown: 1e15 },
};
const route = { ...subject, username: session.username, shell: `/${'s'.repeat(1_000)}`, loginNode };

/** What the two that a process makes of others' words send for these. */
function reported(): FromProcess[] {
  const sent: FromProcess[] = [];
  const link = { isSlow: false, send: (message: FromProcess) => sent.push(message) > 0 };
  const log = createRemoteLog(link, () => true);
  const cause = Array.from({ length: 20 }).reduce((cause) => new Error(huge, { cause }), undefined);
  const login = { ...attempt, loginName: huge, id: alpha };
  log.error('gateway.login.refused', { ...login, reason: huge, detail: huge, cause: cause as Error });
  const records = new Records(link, log);
  const uses = createUses();
  for (let n = 0; n < 1_000; n += 1) {
    uses.add({ kind: 'exec', command: huge });
    uses.add({ kind: 'forward', to: `${huge}${n}` });
  }
  records.record({ kind: 'opened', at: Date.now(), session });
  records.record({ kind: 'closed', at: Date.now(), session, reason: huge, uses });
  records.record({ kind: 'refused', at: Date.now(), subject, attempt, reason: huge, message: huge });
  return sent;
}

const sessions = Array.from({ length: mostSessions }, () => alpha);
const address = loginNode;
const largestFromProcess: Record<FromProcess['type'], FromProcess[]> = {
  hello: [
    { ...hello, type: 'hello', build: 'b'.repeat(200), listen: `${loginNode.host}:1`, port: 1, sessions },
  ],
  session: [{ type: 'session', session }],
  listening: [{ type: 'listening', port: 65_535 }],
  listenFailed: [{ type: 'listenFailed', code: 'EADDRINUSE', message: huge }],
  authorize: [{ type: 'authorize', id: Number.MAX_SAFE_INTEGER, attempt, openOn: address }],
  record: reported().filter(({ type }) => type === 'record'),
  log: reported().filter(({ type }) => type === 'log'),
  rechecked: [{ type: 'rechecked', id: 1 }],
  counted: [{ type: 'counted', id: 1 }],
  alive: [{ type: 'alive' }],
  ending: [{ type: 'ending' }],
  handedOver: [{ type: 'handedOver', pid: 2 ** 22 }],
  handOverFailed: [{ type: 'handOverFailed', message: huge }],
};

const settings: Settings = {
  listen: { host: loginNode.host, port: 22 },
  hostKeys: ['k'.repeat(500), 'k'.repeat(500), 'k'.repeat(500)],
  clientKeys: ['k'.repeat(500), 'k'.repeat(500)],
  limits: defaultLimits,
  trustedProxies: Array.from({ length: mostTrustedProxies }, () => `${attempt.remoteAddress}/128`),
  ...{ securityKeys: true, proxyProtocol: 'required', debug: true },
};
const filter = { ...subject, id: alpha, loginNode: session.loginNode };
const largestToProcess: Record<ToProcess['type'], ToProcess[]> = {
  welcome: [{ type: 'welcome', settings }],
  configure: [{ type: 'configure', settings }],
  decision: [
    { type: 'decision', id: 1, decision: { allowed: true, route } },
    {
      ...{ type: 'decision', id: 1 },
      decision: {
        allowed: false,
        reason: 'r'.repeat(100),
        message: huge,
        disclose: true,
        subject,
      },
    },
  ],
  undecided: [{ type: 'undecided', id: 1, message: huge }],
  recorded: [{ type: 'recorded', seq: Number.MAX_SAFE_INTEGER }],
  recheck: [{ type: 'recheck', id: 1, filter }],
  close: [{ type: 'close', filter, reason: huge, text: huge }],
  count: [{ type: 'count', id: 1 }],
  handOver: [{ type: 'handOver', command: gatewayCommand('b'.repeat(200), findWay(undefined)) }],
  drain: [{ type: 'drain' }],
  stop: [{ type: 'stop' }],
};

for (const [side, largest, read] of [
  ['a process', largestFromProcess, readFromProcess],
  ['the service', largestToProcess, readToProcess],
] as const)
  for (const [type, messages] of Object.entries<object[]>(largest))
    test(`the largest ${type} that ${side} sends is taken whole by the other end`, async () => {
      assert.ok(messages.length > 0);
      const got: unknown[] = [];
      using at = await pair((message) => got.push(message), read);
      const near = openLines(at.peer, { read: () => {}, onMessage() {}, onClose() {}, onFault() {} });
      for (const message of messages) assert.ok(near.send(message));
      await becomes(() => got.length + Number(at.closed() !== undefined), messages.length);
      assert.deepEqual(
        got,
        messages.map((message) => JSON.parse(lineOf(message))),
      );
    });

test('what is thrown while a message is handled ends nothing; the next one is handled', async () => {
  const got: unknown[] = [];
  using at = await pair((message) => {
    got.push(message);
    if (message === 1) throw new Error('thrown by the test');
  });
  at.peer.write('1\n2');
  at.peer.write('3\n');
  await becomes(() => got.length, 2);
  assert.deepEqual([got, at.faults.length, at.closed()], [[1, 23], 1, undefined]);
});

test('half a line at the end is no message; garbage and a line without an end close the connection', async () => {
  const got: unknown[] = [];
  for (const [text, fault] of [
    ['1\n2', true],
    ['nonsense\n', /JSON/],
    ['x'.repeat(10 * 2 ** 20), /a line longer than/],
  ] as const) {
    using at = await pair((message) => got.push(message));
    at.peer.write(text);
    if (fault === true) at.peer.end();
    const closed = await eventually(async () => at.closed(), Boolean);
    if (fault === true) assert.equal(closed, true);
    else assert.match(`${closed}`, fault);
  }
  assert.deepEqual(got, [1]);
});

test('a peer that never reads is cut off at a bound', async () => {
  using at = await pair(() => {});
  at.peer.pause();
  const message = { texts: Array<string>(2 ** 10).fill('x'.repeat(2 ** 10)) };
  let sent = 0;
  while (at.lines.send(message) && sent < 200) sent += 1;
  assert.ok(sent < 60, `${sent} MiB`);
  await eventually(async () => at.closed(), Boolean);
});

describe('a service with its process', { skip: whyNot }, () => {
  let lab: ProcessLab;
  let service: Service;
  before(async () => {
    lab = await openProcessLab();
    service = await lab.serve();
  });
  // Logins go on, whatever was said.
  afterEach(async () => assert.equal((await lab.ssh(['echo in'])).out, 'in\n'));
  after(() => lab[Symbol.asyncDispose]());

  test('a login name of 5,000 characters is refused, and nothing breaks between the service and its process', async () => {
    const user = ['-o', `User=${'x'.repeat(5_000)}`];
    const refused = await finished(lab.start('ssh', [...user, ...lab.options, '127.0.0.1', 'true']));
    assert.equal(refused.status, 255);
    const [{ reason } = {}] = await eventually(
      async () => service.events('gateway.login.refused'),
      (events) => events.length > 0,
    );
    assert.equal(reason, 'not_a_login_name');
    assert.deepEqual(service.events('gateway.process.fault'), []);
  });

  test('seventy processes from before are answered, and one of another protocol is drained and said', async () => {
    const others = Array.from({ length: 70 }, () => lab.start('sleep', ['60']));
    const sockets = others.map(({ pid }, index) => {
      const socket = connect(join(lab.dir, 'data/run/gateway.sock')).on('error', () => {});
      socket.write(`${JSON.stringify({ ...hello, pid, protocol: index === 0 ? 3 : 2, port: 22 })}\n`);
      return socket.resume();
    });
    await becomes(() => service.events('gateway.process.found').length, 70);
    assert.ok(sockets.every(({ destroyed }) => !destroyed));
    assert.deepEqual(
      service.events('gateway.process.foreign').map(({ pid, protocol }) => [pid, protocol]),
      [[others[0]?.pid, 3]],
    );
    for (const other of others) other.kill('SIGKILL');
    for (const socket of sockets) socket.destroy();
  });

  test('a connection to the service’s socket that says nothing, garbage or too much is closed; logins go on', async () => {
    const path = join(lab.dir, 'data/run/gateway.sock');
    const say = (text: string) => {
      const socket = connect(path).on('error', () => {});
      socket.write(text);
      return socket.resume();
    };
    const texts = ['\n', 'GET / HTTP/1.1\r\n\r\n', '{"type":"stop"}\n', 'x'.repeat(5 * 2 ** 20)];
    // More than there may be, most of them silent.
    const others = [...texts, ...Array<string>(1_100).fill('')].map(say);
    const liar = say(`${JSON.stringify({ ...hello, build: 'none', port: 22, sessions: ['x'] })}\n`);
    assert.equal((await lab.ssh(['echo in'])).out, 'in\n');
    await eventually(async () => others.every(({ destroyed }) => destroyed), Boolean);
    liar.destroy();
    await sleep(500);
  });

  test('a question that is not of its form is undecided and the next is answered; a process that sends garbage is ended', async () => {
    const fake = lab.start('sh', ['-c', 'read line', 'gateway']);
    const ended = once(fake, 'exit');
    const socket = connect(join(lab.dir, 'data/run/gateway.sock')).on('error', () => {});
    const answers = heard(socket);
    const ask = (id: number, loginName: string) => ({
      type: 'authorize',
      id,
      attempt: { ...attempt, loginName },
    });
    const messages = [
      { ...hello, build: 'none', pid: fake.pid },
      ask(1, 'x'.repeat(4_001)),
      { type: 'record', seq: 1, event: {} },
      ask(2, name),
    ];
    for (const message of messages) socket.write(`${JSON.stringify(message)}\n`);
    await eventually(
      async () => answers(),
      (text) => text.includes('"type":"undecided","id":1,') && text.includes('"type":"decision","id":2,'),
    );
    socket.write('garbage\n');
    assert.deepEqual(await ended, [null, 'SIGKILL']);
  });
});
