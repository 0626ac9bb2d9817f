/** OpenSSH's `ssh` in the ways people and their tools use it, through the gateway to both kinds of login node. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import pty from '@lydell/node-pty';
import { becomes } from '../../support/app.ts';
import { heard } from '../../support/heard.ts';
import { throughSocks } from '../../support/socks.ts';
import { missing } from '../../sync/login-node/helpers.ts';
import { finished, firstOutput, freePort } from '../lab.ts';
import { echoPort, startMaster, withEachNode } from './nodes.ts';

const noPython = missing('python3');

withEachNode('ssh', {}, (at) => {
  test('a shell in a terminal: its size, resizing, interruption, the exit status', async (t) => {
    const local = pty.spawn('ssh', [...at.lab.options, 'gateway'], { cols: 91, rows: 23 });
    t.after(() => local.kill());
    let screen = '';
    local.onData((text) => {
      screen += text;
    });
    const shows = (what: string) => becomes(() => screen.includes(what), true);
    local.write('echo "size=$(stty size)="\r');
    await shows('size=23 91=');
    local.resize(120, 40);
    await becomes(async () => {
      local.write('echo "size=$(stty size)=$TERM="\r');
      return screen.includes('size=40 120=xterm=');
    }, true);
    local.write('echo "asleep=$((1 + 1))="; sleep 60\r');
    await shows('asleep=2=');
    local.write('\x03');
    local.write('echo "status=$?="\r');
    await shows('status=130=');
    const ended = new Promise<{ exitCode: number }>((resolve) => local.onExit(resolve));
    local.write('exit 7\r');
    assert.equal((await ended).exitCode, 7);
  });

  test('-t: a command in a terminal, complete to its last line', async (t) => {
    const local = pty.spawn('ssh', [...at.lab.options, '-t', 'gateway', 'tty && seq 20000; exit 9'], {});
    t.after(() => local.kill());
    let screen = '';
    local.onData((text) => {
      screen += text;
    });
    const { exitCode } = await new Promise<{ exitCode: number }>((resolve) => local.onExit(resolve));
    assert.equal(exitCode, 9);
    assert.match(screen, /^\/dev\/pts\/\d+\r\n1\r\n2\r\n/);
    assert.equal(screen.split('\r\n').filter((line) => /^\d+$/.test(line)).length, 20_000);
  });

  test('exec: stdout and stderr apart, the exit status, the end of input', async () => {
    const ran = await at.lab.ssh(['gateway', 'wc -c; echo late >&2; exit 3'], 'twelve bytes');
    assert.deepEqual(ran, { status: 3, signal: null, out: '12\n', err: 'late\n' });
  });

  test('a command runs up to the kernel’s limit for one argument, whatever is in it', async () => {
    const most = 131_071;
    const fill = (length: number) => `: ${'a'.repeat(length - 14)}; echo taken`;
    for (const length of [100_000, 130_000, most]) {
      // The client puts a space between its arguments; one alone may not be as long as all of them.
      const command = fill(length);
      const { out, err } = await at.lab.ssh(['gateway', command.slice(0, 60_000), command.slice(60_001)]);
      assert.deepEqual([out, err], ['taken\n', ''], `${length} bytes`);
    }
    const lines = "it's a \\ line!\n".repeat(6_000);
    const script = `wc -c <<'END'\n${lines}END\nexit 5`;
    for (const way of [[], ['-tt']]) {
      const ran = await at.lab.ssh([...way, 'gateway', script]);
      assert.deepEqual([ran.out.trim(), ran.status], [`${lines.length}`, 5]);
    }
  });

  test('a command beyond that limit is refused in words, and its neighbours go on', async (t) => {
    const control = await startMaster(t, at.lab);
    const beside = at.lab.start('ssh', [...at.lab.options, ...control, 'gateway', 'echo up; cat']);
    await firstOutput(beside);
    for (const half of [65_536, 120_000])
      for (const way of [control, []]) {
        const words = [`: ${'a'.repeat(half - 2)}`, 'a'.repeat(half)];
        const { status, err } = await at.lab.ssh([...way, 'gateway', ...words]);
        assert.equal(err, 'andromeda: the command is too long for this login node\n');
        assert.equal(status, 126);
      }
    beside.stdin?.end('still here');
    const { status, out } = await finished(beside);
    assert.deepEqual([status, out], [0, 'still here']);
  });

  test('-N -L: twenty connections at once, each half-closed, none cut short', {
    skip: noPython,
  }, async () => {
    const port = await echoPort(at);
    const local = await freePort();
    at.lab.start('ssh', [...at.lab.options, '-N', '-L', `${local}:localhost:${port}`, 'gateway']);
    await becomes(() => reachable(local), true);
    const sent = Array.from({ length: 20 }, () => randomBytes(200_000 + Math.floor(Math.random() * 100_000)));
    const got = await Promise.all(sent.map((bytes) => exchange(connect(local, '127.0.0.1'), bytes)));
    assert.deepEqual(got.map(digest), sent.map(digest));
  });

  test('-D: destinations by name and address on loopback, others refused, the connection goes on', {
    skip: noPython,
  }, async () => {
    const port = await echoPort(at);
    const socks = await freePort();
    at.lab.start('ssh', [...at.lab.options, '-N', '-D', `${socks}`, 'gateway']);
    await becomes(() => reachable(socks), true);
    for (const host of ['localhost', '127.0.0.1', 'example.org', '10.0.0.5', 'localhost']) {
      const through = await throughSocks(socks, host, port);
      const isHere = host === 'localhost' || host === '127.0.0.1';
      assert.equal(through !== undefined, isHere, host);
      if (through) assert.equal(`${await exchange(through, Buffer.from(host))}`, host);
    }
  });

  test('ControlMaster: ten sessions open at once on one connection, each with its own input and end', async (t) => {
    const { lab } = at;
    const control = await startMaster(t, lab);
    const before = lab.gateway.sessions().length;
    const children = Array.from({ length: 10 }, (_, i) =>
      lab.start('ssh', [
        ...lab.options,
        ...control,
        'gateway',
        `read line; echo "$line"; cat >&2; exit ${i}`,
      ]),
    );
    const done = children.map(finished);
    const seen = children.map(
      (child, i) =>
        new Promise<string>((resolve) => {
          child.stdout?.once('data', (data: Buffer) => resolve(`${data}`));
          child.stdin?.write(`line ${i}\n`);
        }),
    );
    assert.deepEqual(
      await Promise.all(seen),
      Array.from({ length: 10 }, (_, i) => `line ${i}\n`),
    );
    assert.deepEqual([lab.gateway.sessions().length, lab.gateway.sessions().at(-1)?.channels], [before, 10]);
    for (const [i, child] of children.entries()) child.stdin?.end(`rest ${i}`);
    assert.deepEqual(
      (await Promise.all(done)).map(({ status, err }) => [status, err]),
      Array.from({ length: 10 }, (_, i) => [i, `rest ${i}`]),
    );
  });

  test('-T … bash fed on standard input with a dynamic forward, as VS Code does it', {
    skip: noPython,
  }, async () => {
    const port = await echoPort(at);
    const socks = await freePort();
    const child = at.lab.start('ssh', [...at.lab.options, '-T', '-D', `${socks}`, 'gateway', 'bash']);
    const done = finished(child);
    const out = heard(child.stdout);
    // An install script of some size comes first, then what it prints is waited for.
    child.stdin?.write(
      `uname -s\n${'# a line of the script that installs the server\n'.repeat(20_000)}echo "ready=$((6 * 7))="\n`,
    );
    await becomes(() => out().includes('ready=42='), true);
    const traffic = await throughSocks(socks, '127.0.0.1', port);
    assert.ok(traffic);
    const bytes = randomBytes(1_000_000);
    assert.equal(digest(await exchange(traffic, bytes)), digest(bytes));
    child.stdin?.end('exit 4\n');
    assert.deepEqual(await done, { status: 4, signal: null, out: 'Linux\nready=42=\n', err: '' });
  });
});

const digest = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

function reachable(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  return new Promise((resolve) => {
    socket.once('connect', () => resolve(true));
    socket.once('error', () => resolve(false));
  }).then((is) => {
    socket.destroy();
    return is === true;
  });
}

/** Sends everything and its end; what comes back until the other's end. */
function exchange(socket: Socket, bytes: Buffer): Promise<Buffer> {
  const parts: Buffer[] = [];
  socket.on('data', (part) => parts.push(part));
  socket.end(bytes);
  return new Promise((resolve, reject) => {
    socket.once('end', () => resolve(Buffer.concat(parts)));
    socket.once('error', reject);
  });
}
