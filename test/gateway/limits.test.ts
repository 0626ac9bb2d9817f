/** The gateway's limits, each with OpenSSH's own client in front of it, and the reason that a person reads. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { longestLoginName } from '../../src/domain/access/ssh-session.ts';
import { defaultLimits } from '../../src/gateway/ssh/limits.ts';
import { Admission } from '../../src/gateway/ssh/login/admission.ts';
import { message, SSH } from '../../src/lib/ssh/wire.ts';
import { becomes } from '../support/app.ts';
import { fails } from '../support/heard.ts';
import { listening } from '../support/ports.ts';
import { rawUnauthenticated } from './clients/raw.ts';
import {
  finished,
  firstOutput,
  freePort,
  type Lab,
  LOGIN,
  loginWithKey,
  openLab,
  openSession,
  whyNot,
} from './lab.ts';

describe('limits', { skip: whyNot }, () => {
  test('idle timeout (off by default): a session in which nothing happens ends with a line that says so', async () => {
    assert.equal(defaultLimits.idleMs, 0);
    await using lab = await openLab({ idleMs: 3000, recheckMs: 200 });
    const busy = await openSession(lab, 'for i in $(seq 50); do echo $i; sleep 0.1; done; exit 4');
    const idle = await openSession(lab);
    assert.match((await idle.done).err, /^\r\nNothing happened here for 3 s, so this session ends\.\r\n/);
    assert.equal((await busy.done).status, 4);
  });

  test('per-user sessions: one more is refused, and says how many are open', async () => {
    await using lab = await openLab({ sessionsPerUser: 2 });
    const open = [await openSession(lab), await openSession(lab)];
    const ran = await lab.ssh(['gateway', 'true']);
    fails(ran, 255, /You have 2 sessions open, which is the most/);
    assert.doesNotMatch(ran.err, /Permission denied/);
    open[0]?.child.stdin?.end();
    await open[0]?.done;
    assert.equal((await lab.ssh(['gateway', 'exit 7'])).status, 7);
  });

  test('per-source sessions: one more is refused', async () => {
    await using lab = await openLab({ sessionsPerSource: 1 });
    await openSession(lab);
    const ran = await lab.ssh(['gateway', 'true']);
    assert.match(ran.err, /1 sessions are open from your address, which is the most/);
  });

  test('channels per connection: one more is refused with the reason', async () => {
    await using lab = await openLab({ channelsPerConnection: 2 });
    const control = ['-o', `ControlPath=${lab.dir}/mux`];
    const { child, done } = await openSession(lab, 'exec cat', ...control, '-M', '-v');
    const second = lab.start('ssh', [...lab.options, ...control, 'gateway', 'echo up; exec cat']);
    await firstOutput(second);
    assert.ok(existsSync(join(lab.dir, 'mux')));
    const ran = await lab.ssh([...control, '-v', 'gateway', 'true']);
    // The client makes a connection of its own then.
    assert.match(ran.err, /Session open refused by peer/);
    second.stdin?.end();
    child.stdin?.end();
    assert.match((await done).err, /open failed: resource shortage: too many channels on one connection/);
  });

  test('failures are slowed by source, and a registered key that proves itself never waits', async () => {
    await using lab = await openLab({ backoffAfterFailures: 2, backoffMs: 2_000 });
    const key = lab.newKey('stranger');
    const timed = async (what: () => Promise<{ err: string }>) => {
      const start = Date.now();
      return { ...(await what()), ms: Date.now() - start };
    };
    for (let round = 0; round < 3; round += 1)
      assert.match((await loginWithKey(lab, key)).err, /Permission denied/);
    const slowed = await timed(() => loginWithKey(lab, key));
    assert.match(slowed.err, /Permission denied/);
    assert.ok(slowed.ms >= 2000, `${slowed.ms} ms for a failure`);
    lab.events.length = 0;
    assert.equal((await lab.ssh(['gateway', 'exit 7'])).status, 7);
    // The same address, among its failures, and nothing was refused or kept back.
    assert.deepEqual(
      lab.events.filter(({ event }) => event === 'gateway.login.refused'),
      [],
    );
  });

  test('an address with a live session is spared the delay', async () => {
    await using lab = await openLab({ backoffAfterFailures: 1, backoffMs: 60_000, backoffMaxMs: 60_000 });
    const { child } = await openSession(lab);
    const key = lab.newKey('stranger');
    for (let round = 0; round < 4; round += 1)
      assert.match((await loginWithKey(lab, key)).err, /Permission denied/);
    assert.equal((await lab.ssh(['gateway', 'exit 7'])).status, 7);
    child.stdin?.end();
  });

  /** Connections from so many addresses that say nothing; resolves when all have arrived and `greeted` were greeted. */
  async function silent(lab: Lab, addresses: number, each: number, greeted: number) {
    let count = 0;
    const open = (localAddress: string) => {
      const socket = connect({ port: lab.gateway.port, host: '127.0.0.1', localAddress });
      const onGreeting = () => {
        count += 1;
      };
      return socket.on('error', () => {}).once('data', onGreeting);
    };
    const sockets = Array.from({ length: addresses * each }, (_, n) =>
      open(`127.0.2.${1 + (n % addresses)}`),
    );
    await Promise.all(sockets.map((socket) => once(socket, 'connect')));
    await becomes(() => count >= greeted, true);
    // Connections are accepted in order, and one from a new address always gets a slot.
    const last = open('127.0.3.1');
    await once(last, 'data');
    last.destroy();
    return { end: () => sockets.forEach((socket) => void socket.destroy()) };
  }

  const logins = async (lab: Lab, count: number) => {
    const ran = await Promise.all(Array.from({ length: count }, () => lab.ssh(['gateway', 'exit 7'])));
    const statuses = ran.map(({ status }) => status);
    assert.deepEqual(statuses, Array<number>(count).fill(7), ran.map(({ err }) => err).join(''));
  };

  test('128 idle strangers at one address keep no one at another out, twenty logins at once', async () => {
    await using lab = await openLab();
    const idle = await silent(lab, 1, 128, 16);
    await logins(lab, 20);
    idle.end();
  });

  test('idle strangers at many addresses keep no one out, also not who logs in for the first time', async () => {
    // They would be ended for saying nothing, and with the login grace.
    await using lab = await openLab({ helloMs: 600_000, loginGraceMs: 600_000, queueMs: 600_000 });
    // Every place that strangers can have, and all that may wait.
    const idle = await silent(lab, 40, 16, 192);
    // As many as one address has places: the queue is full, so more would be refused on a busy machine.
    await logins(lab, 16);
    idle.end();
  });

  test('refused connections are a line a source and reason, and their number', async () => {
    const lab = await openLab({ unauthenticatedPerSource: 2, queuedPerSource: 3 });
    const idle = await silent(lab, 3, 55, 6 + 3 * 50);
    await lab.close();
    idle.end();
    const lines = lab.events.filter(({ event }) => `${event}`.startsWith('gateway.connection'));
    const first = lines.filter(({ event }) => event === 'gateway.connection.refused');
    const full = first.filter(({ reason }) => reason === 'too_many_logins');
    assert.deepEqual(
      new Set(full.map(({ remoteAddress }) => remoteAddress)),
      new Set(['127.0.2.1', '127.0.2.2', '127.0.2.3']),
    );
    const sums = lines.filter(
      ({ event, reason }) => event === 'gateway.connections.refused' && reason === 'too_many_logins',
    );
    const refused = full.length + sums.reduce((sum, { connections }) => sum + Number(connections), 0);
    assert.equal(refused, 3 * 50);
    assert.ok(lines.length < 30, `${lines.length} lines`);
  });

  test('a login that is refused is a line with its name and key, and a flood of them is summed up', async () => {
    const lab = await openLab({ loginAttempts: 100 });
    const { transport, heard, close } = await rawUnauthenticated(lab);
    transport.send(message(SSH.SERVICE_REQUEST, 'ssh-userauth'));
    for (let n = 1; n <= 60; n += 1) {
      const answers = () => heard.filter(([type]) => type === SSH.USERAUTH_FAILURE).length;
      transport.send(message(SSH.USERAUTH_REQUEST, LOGIN, 'ssh-connection', 'password', false, 'guess'));
      await becomes(() => answers(), n);
    }
    close();
    await lab.close();
    const lines = lab.events.filter(({ event }) => event === 'gateway.login.refused');
    assert.equal(lines.length, 20);
    const sums = lab.events.filter(({ event }) => event === 'gateway.logins.refused');
    assert.deepEqual(
      sums.map(({ source, reason, logins }) => [source, reason, logins]),
      [['127.0.0.1', 'other_method', 40]],
    );
  });

  test('clients that have no key to offer are logged and summed up, and slow no one', async () => {
    const lab = await openLab({ backoffAfterFailures: 1, backoffMs: 60_000, backoffMaxMs: 60_000 });
    const refused = () => lab.events.filter(({ reason }) => reason === 'no_key');
    const stranger = lab.newKey('stranger');
    const ways = [['/nonexistent'], [stranger, '-o', 'PreferredAuthentications=password']] as const;
    for (const [key, ...more] of ways)
      assert.match((await loginWithKey(lab, key, ...more)).err, /Permission denied \(publickey\)/);
    await becomes(
      () =>
        refused()
          .map(({ loginName }) => loginName)
          .join(),
      `${LOGIN},${LOGIN}`,
    );
    assert.match(`${refused()[0]?.detail}`, /^OpenSSH_\S+.*: only "none" was tried$/);
    for (let n = 3; n <= 24; n += 1) {
      const { transport, next, close } = await rawUnauthenticated(lab);
      transport.send(message(SSH.SERVICE_REQUEST, 'ssh-userauth'));
      transport.send(message(SSH.USERAUTH_REQUEST, 'x'.repeat(4_000), 'ssh-connection', 'none'));
      await next(SSH.USERAUTH_FAILURE);
      close();
    }
    // A stranger's key would be answered late, and one that is let in says nothing of it.
    assert.match((await loginWithKey(lab, stranger)).err, /Permission denied/);
    assert.equal((await lab.ssh(['gateway', 'exit 7'])).status, 7);
    await lab.close();
    assert.equal(refused()[2]?.loginName, 'x'.repeat(longestLoginName + 1));
    const sums = refused().filter(({ event }) => event === 'gateway.logins.refused');
    assert.deepEqual([refused().length, sums[0]?.logins], [21, 4]);
  });

  test('scans of host keys and of ports, which ask for no login, are a line a source, and their number', async () => {
    const lab = await openLab();
    const port = String(lab.gateway.port);
    const keys = await finished(lab.start('ssh-keyscan', ['-t', 'ed25519', '-p', port, '127.0.0.1']));
    assert.match(keys.out, /ssh-ed25519/);
    (await silent(lab, 1, 3, 3)).end();
    await becomes(() => lab.gateway.connections, 0);
    await lab.close();
    const of = lab.events.filter(
      ({ reason, remoteAddress }) => reason === 'no login' && remoteAddress !== '127.0.3.1',
    );
    assert.deepEqual(
      of.map(({ remoteAddress, source, connections }) => `${remoteAddress ?? source} ${connections ?? 1}`),
      ['127.0.0.1 1', '127.0.2.1 1', '127.0.2.1 2'],
    );
    assert.match(`${of[0]?.detail}`, /^OpenSSH/);
    assert.equal(of[1]?.detail, 'said nothing');
  });

  test('a client that waits too long in line gets the reason, and one that says nothing leaves its place to the next', async () => {
    for (const limits of [{ queueMs: 500, helloMs: 60_000 }, { helloMs: 500 }]) {
      await using lab = await openLab({ unauthenticatedPerSource: 1, ...limits });
      const idle = connect(lab.gateway.port, '127.0.0.1');
      await new Promise((resolve) => idle.once('data', resolve));
      const { status, err } = await lab.ssh(['gateway', 'exit 7']);
      if (limits.queueMs) assert.match(err, /Too many logins at once/);
      else assert.equal(status, 7);
      idle.destroy();
    }
  });

  test('a success forgets failures, as those of an agent that offers other keys first', async () => {
    await using lab = await openLab({ backoffAfterFailures: 2, backoffMs: 60_000, backoffMaxMs: 60_000 });
    const wrong = lab.newKey('wrong');
    for (let round = 0; round < 5; round += 1)
      assert.equal((await lab.ssh(['-i', wrong, 'gateway', 'exit 7'])).status, 7);
  });

  test('login grace: a client that takes too long gets the reason', async () => {
    await using lab = await openLab({ loginGraceMs: 2500 });
    lab.decide.next = (route) => sleep(6000).then(() => ({ allowed: true, route }));
    fails(await lab.ssh(['gateway', 'true']), 255, /The login took too long/);
  });
});

describe('draining', { skip: whyNot }, () => {
  test('new logins are refused with a reason, open sessions get a notice and a configurable time', async () => {
    await using lab = await openLab({ drainMs: 10_000 });
    const finishes = await openSession(lab, 'read line; echo done; exit 3');
    const stays = await openSession(lab);
    const stopped = lab.gateway.stop();
    await sleep(100);
    const late = await lab.ssh(['gateway', 'true']);
    assert.equal(late.status, 255);
    assert.match(late.err, /The gateway is being restarted\. Please connect again in a minute\./);
    finishes.child.stdin?.write('go on\n');
    const first = await finishes.done;
    assert.deepEqual([first.status, first.out], [3, 'up\ndone\n']);
    assert.match(first.err, /^\r\nThe gateway is being restarted: this session ends in 10 s\.\r\n$/);
    const last = await stays.done;
    assert.equal(last.status, 255);
    assert.match(last.err, /ends in 10 s\.\r\n\r\nThe gateway is being restarted\. Please connect again/);
    await stopped;
  });

  test('when the last session ends, it waits no longer', async () => {
    await using lab = await openLab({ drainMs: 3_600_000 });
    const { child, done } = await openSession(lab);
    const stopped = lab.gateway.stop();
    child.stdin?.end();
    await done;
    await stopped;
  });

  test('a notice takes nothing of a stream: a copy that is drained comes through whole', async () => {
    await using lab = await openLab({ drainMs: 8000 });
    const copy = lab.start('sh', [
      '-c',
      `head -c 30000000 /dev/urandom > a; ssh ${lab.options.join(' ')} gateway 'cat ${lab.dir}/a; sleep 0.3; cat ${lab.dir}/a' > b; cat a a | cmp - b`,
    ]);
    const done = finished(copy);
    await becomes(() => lab.gateway.sessions().length, 1);
    const stopped = lab.gateway.stop();
    const ran = await done;
    assert.equal(ran.status, 0, ran.err + ran.out);
    await stopped;
  });
});

describe('login nodes: each failure has its own message', { skip: whyNot }, () => {
  /** A way to a port of this machine, which listens on another. */
  async function proxyTo(to: number, port: number) {
    const ends: Socket[] = [];
    const proxy = createServer((socket) => {
      const other = connect(to, '127.0.0.1');
      socket.pipe(other).pipe(socket);
      for (const end of [socket, other]) ends.push(end.on('error', () => {}));
    });
    return { proxy, ends, port: await listening(proxy, port) };
  }

  /** A machine that says something and closes. */
  async function saying(text: string) {
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.resume().end(text);
    });
    return { port: await listening(server), close: () => server.close() };
  }
  const table: [what: string, said: string, told: RegExp][] = [
    [
      'penalties of sshd',
      'Not allowed at this time\r\n',
      /shuts the gateway out for a while \(PerSourcePenalties\)/,
    ],
    ['too many startups', 'Exceeded MaxStartups\r\n', /takes no more logins at the moment \(MaxStartups\)/],
    ['a connection closed at once', '', /closed the connection before the login/],
    ['not an SSH server', 'SSH-1.5-old\r\n', /The connection to the login node failed/],
  ];
  test('by what it says before it closes', async () => {
    await using lab = await openLab({ retryMs: 0 });
    for (const [what, said, told] of table) {
      const node = await saying(said);
      lab.route.loginNode = { ...lab.route.loginNode, port: node.port };
      const ran = await lab.ssh(['gateway', 'true']);
      node.close();
      assert.equal(ran.status, 255, what);
      assert.match(ran.err, told, what);
    }
  });

  test('unreachable: a machine that does not answer', async () => {
    await using lab = await openLab({ connectMs: 500 });
    lab.route.loginNode = { ...lab.route.loginNode, host: '192.0.2.1', port: 22 };
    const ran = await lab.ssh(['gateway', 'true']);
    assert.match(ran.err, /The login node cannot be reached/);
  });

  test('gone while a session is open: it gives no sign of life any more, and the person reads that', async () => {
    await using lab = await openLab({ keepaliveMs: 1000, keepaliveMisses: 4, recheckMs: 100 });
    const { proxy, ends, port } = await proxyTo(lab.sshdPort, 0);
    lab.route.loginNode = { ...lab.route.loginNode, port };
    const { done } = await openSession(lab);
    for (const end of ends) end.unpipe().pause();
    assert.match((await done).err, /The login node does not answer any more\./);
    proxy.close();
    for (const end of ends) end.destroy();
  });

  test('reconnect: a login node that comes back within a moment is not noticed', async () => {
    await using lab = await openLab();
    const port = await freePort();
    lab.route.loginNode = { ...lab.route.loginNode, port };
    const ran = lab.ssh(['gateway', 'exit 7']);
    await sleep(700);
    const { proxy } = await proxyTo(lab.sshdPort, port);
    const { status, err } = await ran;
    proxy.close();
    assert.deepEqual([status, err], [7, '']);
  });
});

/** Connections at an admission: `begun` and `gone` have the numbers of those that were started and that gave way. */
function connections(admission: Admission) {
  const begun: number[] = [];
  const gone: number[] = [];
  const leaves = new Map<number, () => void>();
  let last = 0;
  return {
    begun,
    gone,
    leave: (number: number) => leaves.get(number)?.(),
    enter(address: string, isIdle = true): number {
      last += 1;
      const number = last;
      admission.enter(address, {
        start(leave) {
          begun.push(number);
          leaves.set(number, leave);
        },
        giveWay: () => gone.push(number),
        isIdle: () => isIdle,
      });
      return number;
    },
  };
}

test('a handshake that leads to a login costs its source nothing; one that comes to nothing does', () => {
  const admission = new Admission({ ...defaultLimits, handshakesPerSource: 1, handshakesPerSourceBurst: 5 });
  const { enter, leave, gone } = connections(admission);
  for (let login = 0; login < 200; login += 1) {
    const number = enter('192.0.2.1');
    assert.equal(admission.handshakeMs('192.0.2.1'), 0, `login ${login}`);
    assert.equal(admission.admit('192.0.2.1', 'user_1'), undefined);
    leave(number);
    admission.end('192.0.2.1', 'user_1');
  }
  assert.deepEqual(gone, []);
  const waits = Array.from({ length: 7 }, () => admission.handshakeMs('192.0.2.2'));
  assert.deepEqual(waits.slice(0, 5), [0, 0, 0, 0, 0]);
  assert.ok(waits.slice(5).every((ms) => ms > 0));
});

test('one source never takes all the unauthenticated connections, and 56 bits of IPv6 are one', () => {
  const { enter, leave, begun, gone } = connections(
    new Admission({ ...defaultLimits, unauthenticatedPerSource: 2, queuedPerSource: 1 }),
  );
  for (const address of [
    '2001:db8::1',
    '2001:db8:0:ff::2',
    '2001:db8:0:7::3',
    '2001:db8:0:100::1',
    '10.0.0.1',
  ])
    enter(address);
  assert.deepEqual([begun, gone], [[1, 2, 4, 5], []]);
  enter('2001:db8:0:3::4');
  assert.deepEqual(gone, [6]);
  leave(5);
  assert.deepEqual(begun, [1, 2, 4, 5]);
  leave(1);
  assert.deepEqual(begun, [1, 2, 4, 5, 3]);
});

test('strangers who do nothing make room, and never take what is kept for sources that logged in lately', () => {
  const admission = new Admission({
    ...defaultLimits,
    unauthenticated: 8,
    unauthenticatedPerSource: 3,
    queued: 0,
  });
  const { enter, leave, begun, gone } = connections(admission);
  const known = enter('10.0.0.1');
  assert.equal(admission.admit('10.0.0.1', 'ada'), undefined);
  leave(known);
  // The session is over since: that it was there counts.
  admission.end('10.0.0.1', 'ada');
  for (const source of [2, 3]) for (let n = 0; n < 3; n += 1) enter(`10.0.0.${source}`, n > 0);
  assert.deepEqual([begun.length, gone], [7, []]);
  enter('10.0.0.4');
  assert.deepEqual(gone, [3]);
  for (let n = 0; n < 2; n += 1) enter('10.0.0.1');
  assert.deepEqual([begun.length, gone], [10, [3]]);
});
