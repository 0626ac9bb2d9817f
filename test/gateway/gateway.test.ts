/**
 * What the gateway refuses and how sessions end, with OpenSSH's own client and a real sshd. The names are the contract's sentences
 * where it has one. What works is in `clients`, with both kinds of login node.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { after, before, describe } from 'node:test';
import type { Route } from '../../src/gateway/ssh/decision.ts';
import { eventually } from '../support/app.ts';
import { fails } from '../support/heard.ts';
import { listening } from '../support/ports.ts';
import { freePort, type Lab, loginWithKey, openLab, openSession, test, whyNot } from './lab.ts';

describe('a session through the gateway', { skip: whyNot }, () => {
  let lab: Lab;
  before(async () => {
    lab = await openLab();
  });
  after(() => lab.close());

  test('a reader that goes away ends the writer', async () => {
    const ran = await lab.run('bash', ['-c', `ssh ${lab.options.join(' ')} gateway yes | head -n 1`]);
    assert.equal(ran.out, 'y\n');
  });

  test('with a missing login shell the session prints a warning and falls back to /bin/bash', async () => {
    const { shell } = lab.route;
    lab.route.shell = '/no/such/shell';
    const ran = await lab.ssh(['gateway', 'echo $0']);
    lab.route.shell = shell;
    assert.equal(ran.out, '/bin/bash\n');
    assert.match(ran.err, /^andromeda: your login shell \/no\/such\/shell is missing.*\n$/);
  });

  test('refused: forwarding to non-loopback destinations, with a text that says where to; use as a jump host', async () => {
    const elsewhere = await lab.ssh(['-W', `0.0.0.0:${lab.sshdPort}`, 'gateway']);
    assert.match(elsewhere.err, /administratively prohibited: forwarding to 0\.0\.0\.0:\d+ is refused/);
    const jump = await lab.ssh(['-J', 'gateway', '-o', 'HostName=192.0.2.1', 'inner', 'true']);
    assert.match(jump.err, /forwarding to 192\.0\.2\.1:\d+ is refused/);
    for (const { status } of [elsewhere, jump]) assert.notEqual(status, 0);
  });

  test('refused: agent forwarding, X11, remote forwarding (-R) and environment variables; -v says so', async () => {
    const options = `${lab.options.join(' ')} -v -A -Y -R 0:localhost:22 -o SetEnv=SECRET=1`;
    const seen = `'echo "<$SSH_AUTH_SOCK$DISPLAY$SECRET>"'`;
    const script = `eval $(ssh-agent) >&2; DISPLAY=:9 ssh ${options} gateway ${seen}; kill $SSH_AGENT_PID`;
    const { out, err } = await lab.run('sh', ['-c', script]);
    assert.equal(out, '<>\n');
    assert.match(err, /Remote: auth-agent-req@openssh\.com is not supported here/);
    assert.match(err, /Remote: tcpip-forward is not supported here/);
    assert.match(err, /remote (port )?forward(ing)? failed/i);
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

  test('not closed: while user and key stay authorized, even by a new login shell', async () => {
    const { done } = await openSession(lab);
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
    const { done } = await openSession(lab);
    lab.decide.next = () => Promise.reject(new Error('no database'));
    assert.match((await done).err, /Your access cannot be confirmed/);
    assert.match((await lab.ssh(['gateway', 'true'])).err, /Access cannot be confirmed at the moment/);
    lab.decide.next = (route) => ({ allowed: true, route });
  });

  test('what ran on the login node ends too', async () => {
    const { done } = await openSession(lab, 'exec sleep 61.75', '-tt');
    const running = async () => (await lab.run('pgrep', ['-fc', '^sleep 61.75$'])).out.trim();
    assert.equal(await running(), '1');
    lab.gateway.close({}, 'test', 'over');
    await done;
    await eventually(running, (count) => count === '0');
    assert.equal(lab.gateway.sessions().length, 0);
  });
});

describe('a login that is refused', { skip: whyNot }, () => {
  let lab: Lab;
  before(async () => {
    lab = await openLab();
  });
  after(() => lab.close());

  test('an unknown key and an unknown login name get no reason', async () => {
    const ways = [[lab.newKey('stranger')], [join(lab.dir, 'user'), '-l', `${lab.route.clusterId}.nobody`]];
    for (const [key = '', ...args] of ways) {
      const ran = await loginWithKey(lab, key, ...args);
      assert.match(ran.err, /^[^\n]*: Permission denied \(publickey\)\.\r\n$/);
    }
  });

  test('only Ed25519 keys are accepted', async () => {
    const key = join(lab.dir, 'ecdsa');
    await lab.run('ssh-keygen', ['-q', '-t', 'ecdsa', '-N', '', '-f', key]);
    const ran = await loginWithKey(lab, key, '-v');
    assert.match(ran.err, /Permission denied \(publickey\)/);
    assert.doesNotMatch(ran.err, /Server accepts key/);
  });

  const causes: [what: string, change: () => Promise<Partial<Route>>, told: RegExp][] = [
    [
      'with another host key is not spoken to',
      async () => ({
        loginNode: { ...lab.route.loginNode, hostKey: readFileSync(`${lab.dir}/user.pub`, 'utf8') },
      }),
      /shows a host key that is not the expected one/,
    ],
    [
      'that is down is named as the cause',
      async () => ({ loginNode: { ...lab.route.loginNode, port: await freePort() } }),
      /The login node refuses connections/,
    ],
    [
      'that does not know the account is named as the cause',
      async () => ({ username: 'daemon-of-nowhere' }),
      /The login node does not let your account in/,
    ],
  ];
  for (const [what, change, told] of causes)
    test(`a login node ${what}`, async () => {
      const real = { ...lab.route };
      Object.assign(lab.route, await change());
      const ran = await lab.ssh(['gateway', 'true']);
      Object.assign(lab.route, real);
      fails(ran, 255, told);
      assert.doesNotMatch(ran.err, /Permission denied/);
    });
});

test('closed while the login node has not answered yet: the person reads the sentence, not its key', async () => {
  await using lab = await openLab();
  const silent = createServer((socket) => {
    socket.on('error', () => {});
    lab.gateway.close({}, 'cluster_inactive', 'This cluster is being released.');
  });
  const port = await listening(silent);
  lab.route.loginNode = { ...lab.route.loginNode, port };
  const { status, err } = await lab.ssh(['gateway', 'true']);
  silent.close();
  assert.equal(status, 255);
  assert.match(err, /This cluster is being released\./);
  assert.doesNotMatch(err, /cluster_inactive/);
});
