/** OpenSSH's own clients through a gateway to a real sshd. The names are the contract's sentences where it has one. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { eventually } from '../support/app.ts';
import { finished, firstOutput, freePort, type Lab, openLab, whyNot } from './lab.ts';

describe('a session through the gateway', { skip: whyNot }, () => {
  let lab: Lab;
  before(async () => {
    lab = await openLab();
  });
  after(() => lab.close());

  test('running a command returns its exit status; a good login prints nothing on stderr', async () => {
    const ran = await lab.ssh(['gateway', 'echo out; echo err >&2; exit 3']);
    assert.deepEqual(ran, { status: 3, signal: null, out: 'out\n', err: 'err\n' });
  });

  test('piping standard input and output, byte for byte', async () => {
    const bytes = Buffer.from(Array.from({ length: 3_000_001 }, (_, i) => (i * 7919) & 0xff));
    writeFileSync(join(lab.dir, 'in'), bytes);
    const ran = await lab.run('sh', ['-c', `ssh ${lab.options.join(' ')} gateway cat < in > out`]);
    assert.equal(ran.status, 0, ran.err);
    assert.ok(readFileSync(join(lab.dir, 'out')).equals(bytes));
  });

  for (const cipher of ['chacha20-poly1305@openssh.com', 'aes256-gcm@openssh.com', 'aes256-ctr'])
    test(`piping with ${cipher}, with new keys on the way`, async () => {
      const args = `${lab.options.join(' ')} -c ${cipher} -o RekeyLimit=1M gateway`;
      const ran = await lab.run('sh', [
        '-c',
        `head -c 9999999 /dev/urandom | tee a | ssh ${args} cat > b && cmp a b`,
      ]);
      assert.equal(ran.status, 0, ran.err + ran.out);
    });

  test('half-close: what follows the end of input still arrives', async () => {
    const ran = await lab.ssh(['gateway', 'wc -c; sleep 0.2; echo late; exit 2'], 'twelve bytes');
    assert.deepEqual([ran.status, ran.out], [2, '12\nlate\n']);
  });

  test('a reader that goes away ends the writer', async () => {
    const ran = await lab.run('bash', ['-c', `ssh ${lab.options.join(' ')} gateway yes | head -n 1`]);
    assert.equal(ran.out, 'y\n');
  });

  test('an exit signal comes through as 255 and by name', async () => {
    const ran = await lab.ssh(['-v', 'gateway', 'kill -TERM $$']);
    assert.equal(ran.status, 255);
    assert.match(ran.err, /exit-signal/);
  });

  test('interactive shells: a terminal, a login shell, the exit status', async () => {
    const script = `stty rows 33 cols 101; exec ssh ${lab.options.join(' ')} -tt gateway`;
    const ran = await lab.run(
      'script',
      ['-qefc', script, '/dev/null'],
      'stty size; echo "<$SHELL>"; shopt login_shell; exit 5\n',
    );
    assert.equal(ran.status, 5, ran.out);
    assert.match(ran.out, /\r33 101\r\n<\/bin\/bash>\r\nlogin_shell\s+on/);
  });

  test('with a missing login shell the session prints a warning and falls back to /bin/bash', async () => {
    const { shell } = lab.route;
    lab.route.shell = '/no/such/shell';
    const ran = await lab.ssh(['gateway', 'echo $0']);
    lab.route.shell = shell;
    assert.equal(ran.out, '/bin/bash\n');
    assert.match(ran.err, /^andromeda: your login shell \/no\/such\/shell is missing.*\n$/);
  });

  test('SFTP', async () => {
    writeFileSync(join(lab.dir, 'up'), 'by sftp\n');
    const batch = `put ${lab.dir}/up ${lab.dir}/over\nget ${lab.dir}/over ${lab.dir}/back\n`;
    const ran = await lab.run('sftp', [...lab.options, '-b', '-', 'gateway'], batch);
    assert.equal(ran.status, 0, ran.err);
    assert.equal(readFileSync(join(lab.dir, 'back'), 'utf8'), 'by sftp\n');
  });

  for (const [what, option] of [
    ['modern scp', '-s'],
    ['legacy scp', '-O'],
  ] as const)
    test(what, async () => {
      writeFileSync(join(lab.dir, 'up'), what);
      const to = join(lab.dir, `by${option} scp's file`);
      const remote = option === '-O' ? `gateway:'${to.replaceAll("'", `'\\''`)}'` : `gateway:${to}`;
      const ran = await lab.run('scp', [...lab.options, option, join(lab.dir, 'up'), remote]);
      assert.equal(ran.status, 0, ran.err);
      assert.equal(readFileSync(to, 'utf8'), what);
    });

  test('rsync', { skip: !existsSync('/usr/bin/rsync') && 'rsync is missing' }, async () => {
    writeFileSync(join(lab.dir, 'up'), 'by rsync');
    const rsh = `ssh ${lab.options.join(' ')}`;
    const ran = await lab.run('rsync', ['-a', '-e', rsh, join(lab.dir, 'up'), `gateway:${lab.dir}/rsynced`]);
    assert.equal(ran.status, 0, ran.err);
    assert.equal(ran.err, '');
    assert.equal(readFileSync(join(lab.dir, 'rsynced'), 'utf8'), 'by rsync');
  });

  test('local port forwarding to loopback destinations on the login node', async () => {
    const echo = createServer((socket) => socket.pipe(socket));
    await new Promise<void>((resolve) => echo.listen(0, '127.0.0.1', resolve));
    const address = echo.address();
    const target = typeof address === 'object' && address ? address.port : 0;
    for (const host of ['localhost', '127.0.0.1']) {
      const ran = await lab.ssh(['-W', `${host}:${target}`, 'gateway'], 'through and back');
      assert.deepEqual([ran.status, ran.out], [0, 'through and back'], ran.err);
    }
    echo.close();
  });

  test('refused: forwarding to non-loopback destinations, with a text that says where to', async () => {
    const ran = await lab.ssh(['-W', `0.0.0.0:${lab.sshdPort}`, 'gateway']);
    assert.notEqual(ran.status, 0);
    assert.match(ran.err, /administratively prohibited: forwarding to 0\.0\.0\.0:\d+ is refused/);
  });

  test('refused: use as a jump host', async () => {
    const ran = await lab.ssh(['-J', 'gateway', '-o', 'HostName=192.0.2.1', 'inner', 'true']);
    assert.notEqual(ran.status, 0);
    assert.match(ran.err, /forwarding to 192\.0\.2\.1:\d+ is refused/);
  });

  test('refused: remote forwarding (-R)', async () => {
    const port = await freePort();
    const ran = await lab.ssh([
      '-R',
      `${port}:localhost:22`,
      '-o',
      'ExitOnForwardFailure=yes',
      'gateway',
      'true',
    ]);
    assert.equal(ran.status, 255);
    assert.match(ran.err, /remote port forwarding failed/);
  });

  test('what is refused without a word in the protocol is said to clients with -v', async () => {
    const script = `eval $(ssh-agent) >&2; ssh ${lab.options.join(' ')} -v -A -R 0:localhost:22 gateway true; kill $SSH_AGENT_PID`;
    const { err } = await lab.run('sh', ['-c', script]);
    assert.match(err, /Remote: auth-agent-req@openssh\.com is not supported here/);
    assert.match(err, /Remote: tcpip-forward is not supported here/);
  });

  test('refused: passing environment variables', async () => {
    const ran = await lab.ssh(['-o', 'SetEnv=SECRET=1', 'gateway', 'echo "<$SECRET>"']);
    assert.equal(ran.out, '<>\n');
  });

  test('refused: agent forwarding', async () => {
    const script = `eval $(ssh-agent) >&2; ssh ${lab.options.join(' ')} -A gateway 'echo "<$SSH_AUTH_SOCK>"'; kill $SSH_AGENT_PID`;
    const ran = await lab.run('sh', ['-c', script]);
    assert.equal(ran.out, '<>\n');
  });

  test('refused: X11 forwarding', async () => {
    const script = `DISPLAY=:9 ssh ${lab.options.join(' ')} -Y gateway 'echo "<$DISPLAY>"'`;
    assert.equal((await lab.run('sh', ['-c', script])).out, '<>\n');
  });

  test('twenty commands over one connection', async () => {
    const control = ['-o', `ControlPath=${lab.dir}/mux`];
    const master = lab.start('ssh', [...lab.options, ...control, '-M', '-N', 'gateway']);
    await eventually(
      async () => existsSync(join(lab.dir, 'mux')),
      (isThere) => isThere,
    );
    const before = lab.gateway.sessions().length;
    const all = await Promise.all(
      Array.from({ length: 20 }, (_, i) => lab.ssh([...control, 'gateway', `echo ${i}; exit ${i}`])),
    );
    assert.deepEqual(
      all.map(({ status, out }) => [status, out]),
      Array.from({ length: 20 }, (_, i) => [i, `${i}\n`]),
    );
    assert.equal(lab.gateway.sessions().length, before);
    master.kill();
  });

  test('sessions and connections leave nothing behind', async () => {
    await eventually(
      async () => lab.gateway.sessions(),
      (sessions) => sessions.length === 0,
    );
  });

  test('the log names each login and its end, and holds no key', () => {
    const names = lab.events.map(({ event }) => event);
    assert.ok(names.includes('gateway.login.accepted') && names.includes('gateway.session.closed'));
    assert.doesNotMatch(JSON.stringify(lab.events), /AAAA|PRIVATE KEY/);
  });
});

describe('the end of a session', { skip: whyNot }, () => {
  let lab: Lab;
  before(async () => {
    lab = await openLab({ recheckMs: 1000, confirmGraceMs: 500 });
  });
  after(() => lab.close());

  /** A session that has printed its first line; how it ended is in `done`. */
  async function openSession(command = 'exec cat', ...args: string[]) {
    const child = lab.start('ssh', [...lab.options, ...args, 'gateway', `echo up; ${command}`]);
    const done = finished(child);
    await firstOutput(child);
    return { done };
  }

  test('when the user’s access is revoked: a line that says so, and the end, at once', async () => {
    const { done } = await openSession();
    lab.decide.next = () => ({
      allowed: false,
      reason: 'gone',
      message: 'Your access is gone.',
      disclose: true,
    });
    await lab.gateway.recheck({ userId: 'user_1' });
    assert.equal(lab.gateway.sessions().length, 0);
    const ran = await done;
    assert.equal(ran.status, 255);
    assert.match(ran.err, /^\r\nYour access is gone\.\r\n/);
    lab.decide.next = (route) => ({ allowed: true, route });
  });

  test('not closed: while user and key stay authorized, even by a new login shell', async () => {
    const { done } = await openSession();
    lab.decide.next = (route) => ({ allowed: true, route: { ...route, shell: '/bin/sh' } });
    await lab.gateway.recheck();
    assert.equal(lab.gateway.sessions().length, 1);
    lab.decide.next = (route) => ({ allowed: true, route });
    assert.equal(lab.gateway.close({ clusterId: 'another' }, 'restart', ''), 0);
    const where = { loginNode: `127.0.0.1:${lab.sshdPort}` };
    assert.equal(lab.gateway.close(where, 'restart', 'The login node restarts.'), 1);
    assert.match((await done).err, /The login node restarts\./);
  });

  test('when the gateway cannot confirm access', async () => {
    const { done } = await openSession();
    lab.decide.next = () => Promise.reject(new Error('no database'));
    const ran = await done;
    assert.match(ran.err, /Your access cannot be confirmed/);
    const again = await lab.ssh(['gateway', 'true']);
    assert.equal(again.status, 255);
    assert.match(again.err, /Access cannot be confirmed at the moment/);
    lab.decide.next = (route) => ({ allowed: true, route });
  });

  test('what ran on the login node ends too', async () => {
    const { done } = await openSession('exec sleep 61.75', '-tt');
    const running = async () => (await lab.run('pgrep', ['-fc', '^sleep 61.75$'])).out.trim();
    assert.equal(await running(), '1');
    lab.gateway.close({}, 'test', 'over');
    await done;
    await eventually(running, (count) => count === '0');
    assert.equal(lab.gateway.sessions().length, 0);
  });

  test('when the server stops: a line that says so', async () => {
    const other = await openLab();
    const child = other.start('ssh', [...other.options, 'gateway', 'echo up; exec cat']);
    const done = finished(child);
    await firstOutput(child);
    await other.gateway.stop();
    assert.match((await done).err, /The gateway is being restarted/);
    await other.close();
  });
});

describe('a login that is refused', { skip: whyNot }, () => {
  let lab: Lab;
  before(async () => {
    lab = await openLab();
  });
  after(() => lab.close());

  test('a key of the person’s own that may not come in gets the reason', async () => {
    lab.decide.next = () => ({
      allowed: false,
      reason: 'pending',
      message: 'The cluster has not applied your access yet.',
      disclose: true,
    });
    const ran = await lab.ssh(['gateway', 'true']);
    lab.decide.next = (route) => ({ allowed: true, route });
    assert.equal(ran.status, 255);
    assert.match(
      ran.err,
      /^The cluster has not applied your access yet\.\r\n.*Permission denied \(publickey\)/,
    );
  });

  test('an unknown key and an unknown login name get no reason', async () => {
    const key = lab.newKey('stranger');
    const own = join(lab.dir, 'user');
    for (const args of [
      ['-i', key],
      ['-i', own, '-l', '7b6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50.nobody'],
    ]) {
      const only = ['-F', 'none', '-o', 'IdentitiesOnly=yes', ...args];
      const ran = await lab.run('ssh', [...only, ...strict(lab), 'true']);
      assert.match(ran.err, /^[^\n]*: Permission denied \(publickey\)\.\r\n$/);
    }
  });

  test('only Ed25519 keys are accepted', async () => {
    const key = join(lab.dir, 'ecdsa');
    await lab.run('ssh-keygen', ['-q', '-t', 'ecdsa', '-N', '', '-f', key]);
    const ran = await lab.ssh([
      '-F',
      'none',
      '-v',
      '-i',
      key,
      '-o',
      'IdentitiesOnly=yes',
      ...strict(lab),
      'true',
    ]);
    assert.match(ran.err, /Permission denied \(publickey\)/);
    assert.doesNotMatch(ran.err, /Server accepts key/);
  });

  test('attempts are bounded', async () => {
    const keys = Array.from({ length: 8 }, (_, i) => ['-i', lab.newKey(`k${i}`)]).flat();
    const ran = await lab.run('ssh', [
      '-F',
      'none',
      ...keys,
      '-o',
      'IdentitiesOnly=yes',
      ...strict(lab),
      'true',
    ]);
    assert.match(ran.err, /Too many authentication failures/);
  });

  test('a login node with another host key is not spoken to', async () => {
    const { loginNode } = lab.route;
    lab.route.loginNode = { ...loginNode, hostKey: readFileSync(`${lab.dir}/user.pub`, 'utf8').trim() };
    const ran = await lab.ssh(['gateway', 'true']);
    lab.route.loginNode = loginNode;
    assert.equal(ran.status, 255);
    assert.match(ran.err, /shows a host key that is not the expected one/);
    assert.doesNotMatch(ran.err, /Permission denied/);
  });

  test('a login node that is down is named as the cause', async () => {
    const { loginNode } = lab.route;
    lab.route.loginNode = { ...loginNode, port: await freePort() };
    const ran = await lab.ssh(['gateway', 'true']);
    lab.route.loginNode = loginNode;
    assert.match(ran.err, /The login node refuses connections/);
  });

  test('a login node that does not know the account is named as the cause', async () => {
    lab.route.username = 'daemon-of-nowhere';
    const ran = await lab.ssh(['gateway', 'true']);
    lab.route.username = 'root';
    assert.match(ran.err, /The login node does not let your account in/);
  });
});

test('closed while the login node has not answered yet: the person reads the sentence, not its key', {
  skip: whyNot,
}, async () => {
  const lab = await openLab();
  const silent = createServer((socket) => {
    socket.on('error', () => {});
    lab.gateway.close({}, 'cluster_inactive', 'This cluster is being released.');
  });
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const { port } = silent.address() as { port: number };
  lab.route.loginNode = { ...lab.route.loginNode, port };
  const { status, err } = await lab.ssh(['gateway', 'true']);
  silent.close();
  await lab.close();
  assert.equal(status, 255);
  assert.match(err, /This cluster is being released\./);
  assert.doesNotMatch(err, /cluster_inactive/);
});

/** Where the gateway is, for ssh without the lab's configuration file. */
function strict(lab: Lab): string[] {
  return [
    ...['-o', `UserKnownHostsFile=${lab.dir}/known_hosts`, '-o', 'BatchMode=yes'],
    ...['-p', `${lab.gateway.port}`, '-l', '7b6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50.root', '127.0.0.1'],
  ];
}
