/** An installation from nothing, by its operator, with the real program and real ssh: README, "Your own installation". */
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { stringify } from 'yaml';
import { createBrowser } from '../identity/issuer/harness.ts';
import { eventually } from '../support/app.ts';
import { runCommand, startCommand } from '../support/command.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { serve, writeSettings } from '../support/service-process.ts';

const withoutSsh = existsSync('/usr/bin/ssh') ? false : 'the OpenSSH client is not installed';

test('from an empty directory to a session and its end', { skip: withoutSsh }, async (t) => {
  using home = temporaryDirectory();
  const here = home.path;
  const more = { sync: { intervalSeconds: 1 }, clusters: { allowSimulated: true } };
  const { file: config, platform, gateway } = await writeSettings(here, more);
  const platformUrl = `http://127.0.0.1:${platform}`;
  const env = {
    PATH: process.env['PATH'],
    HOME: here,
    XDG_STATE_HOME: here,
    ANDROMEDA_CREDENTIAL_STORE: 'file',
    XDG_CACHE_HOME: join(here, '.cache'),
    NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
  };
  const run = (args: string[], input = '') => runCommand(args, { env, input });
  const admin = async (...args: string[]): Promise<string> => {
    const { status, stdout, stderr } = await run(['admin', ...args]);
    assert.equal(status, 0, stderr);
    return stdout;
  };

  await t.test('admin bootstrap makes the first operator on the host, and says what to do next', async () => {
    const { status, stdout, stderr } = await run(
      ['admin', 'bootstrap', '--config', config, '--email', 'Ada@physics.example', '--name', 'Ada'],
      'correct horse\n',
    );
    assert.equal(status, 0, stderr);
    assert.match(stdout, /ada@physics\.example is an operator/);
    assert.ok(stdout.includes(`auth login --url ${platformUrl}`));
    assert.equal(statSync(join(here, 'data/andromeda.db')).mode & 0o777, 0o600);
  });

  await using server = serve(config, env);
  await server.until('serve.ready');

  const signIn = async (email: string, password: string, profile: string): Promise<string> => {
    const login = startCommand(['auth', 'login', '--url', platformUrl, '--profile', profile], { env });
    const [address = ''] = /http:\S+user_code=\S+/.exec(await login.until('enter the code')) ?? [];
    const browser = createBrowser(address);
    let page = await browser.visit(address);
    page = await browser.submit(page, '/device/sign-in', { email, password });
    page = await browser.visit(page.location ?? '');
    await browser.submit(page, '/device/approval', { decision: 'approve' });
    const { status, screen } = await login.result;
    assert.equal(status, 0, screen);
    return screen;
  };

  await t.test('which also works while the server runs', async () => {
    const { status, stderr } = await run(
      ['admin', 'bootstrap', '--config', config, '--email', 'grace@physics.example'],
      'another secret\n',
    );
    assert.equal(status, 0, stderr);
    assert.match(await signIn('grace@physics.example', 'another secret', 'grace'), /grace/);
    const { stdout } = await run(['call', '--profile', 'grace', 'business', 'GET', '/me']);
    assert.deepEqual(JSON.parse(stdout).staff_keys, ['staff.operate']);
  });

  await t.test('the operator signs in and applies a lab file', async () => {
    assert.match(await signIn('ada@physics.example', 'correct horse', 'default'), /Ada/);
    const lab = {
      organizations: [
        {
          slug: 'physics',
          name: 'Physics',
          members: [
            { email: 'ada@physics.example', role: 'owner', username: 'ada' },
            { email: 'bob@physics.example', role: 'member', username: 'bob', permissions: ['clusters.ssh'] },
          ],
        },
      ],
      clusters: [
        {
          name: 'alpha',
          organization: 'physics',
          scheduler: 'sunk',
          simulated: { computeNodes: 2, gpusPerNode: 8 },
        },
      ],
    };
    const file = join(here, 'lab.yaml');
    writeFileSync(file, stringify(lab));
    assert.match(await admin('plan', '-f', file), /create +cluster +alpha/);
    assert.match(await admin('apply', '-f', file), /create +member +physics\/bob@physics\.example/);
    const again = await run(['admin', 'apply', '-f', file]);
    assert.match(again.stdout + again.stderr, /[Nn]othing to change/);
  });

  const key = join(here, 'id_ed25519');
  const call = async (profile: string, api: string, method: string, path: string, body?: object) => {
    const headers = body
      ? ['-H', `Idempotency-Key: ${Math.random()}`, '-H', 'Audit-Reason: test', '-d', JSON.stringify(body)]
      : [];
    const { status, stdout, stderr } = await run([
      'call',
      '--profile',
      profile,
      ...headers,
      api,
      method,
      path,
    ]);
    assert.equal(status, 0, stderr);
    return JSON.parse(stdout);
  };

  await t.test('a password of the operator’s lets a member sign in, register a key and log in', async () => {
    const set = await run(['admin', 'person', 'password', 'bob@physics.example'], 'bobs own secret\n');
    assert.equal(set.status, 0, set.stderr);
    assert.ok(!(set.stdout + set.stderr).includes('bobs own secret'));
    await signIn('bob@physics.example', 'bobs own secret', 'bob');
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key]);
    await call('bob', 'business', 'POST', '/me/ssh-keys', { public_key: readFileSync(`${key}.pub`, 'utf8') });
  });

  const org = (await call('bob', 'business', 'GET', '/me')).default_org_id;
  const [cluster] = (await call('default', 'platform', 'GET', `/clusters?businessOrgId=${org}`)).items;
  const access = () =>
    call('bob', 'platform', 'GET', `/clusters/${cluster.id}/ssh-access?organizationId=${org}`);
  await eventually(access, (answer) => answer.ready);
  const ssh = [
    ...[
      'StrictHostKeyChecking=no',
      'UserKnownHostsFile=/dev/null',
      'BatchMode=yes',
      'LogLevel=ERROR',
    ].flatMap((o) => ['-o', o]),
    ...['-i', key, '-p', String(gateway), `${cluster.id}.bob@127.0.0.1`],
  ];
  const openSession = async () => {
    const child = spawn('ssh', [...ssh, 'echo in; sleep 60'], { env });
    let out = '';
    let err = '';
    child.stdout.setEncoding('utf8').on('data', (part) => {
      out += part;
    });
    child.stderr.setEncoding('utf8').on('data', (part) => {
      err += part;
    });
    const ended = new Promise((done) => child.on('exit', done));
    await eventually(
      async () => out,
      (text) => text.includes('in'),
    );
    return { ended, said: () => err };
  };

  await t.test(
    'session list shows an open session, session close ends it and gives the person the reason',
    async () => {
      const session = await openSession();
      const list = JSON.parse(await admin('session', 'list', '-o', 'json'));
      const [{ id, login_name }] = list.sessions ?? list;
      assert.equal(login_name, `${cluster.id}.bob`);
      await admin('session', 'close', id, '--reason', 'maintenance at noon');
      await session.ended;
      assert.match(session.said(), /maintenance at noon/);
    },
  );

  await t.test('removing a member closes their open session and lets them in no more', async () => {
    const session = await openSession();
    const removed = await run(['members', 'remove', '--org', 'physics', 'bob@physics.example']);
    assert.equal(removed.status, 0, removed.stderr);
    await session.ended;
    assert.notEqual(session.said(), '');
    assert.equal(spawnSync('ssh', ssh.concat('true'), { env }).status, 255);
  });

  await t.test('the audit trail has all of it, and verifies', async () => {
    const lines = (await admin('audit', '--person', 'bob@physics.example'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    const operations = lines.map((entry) => entry.operation);
    for (const operation of [
      'operatorSetPassword',
      'registerSshKey',
      'operatorCloseSession',
      'removeMember',
    ]) {
      assert.ok(operations.includes(operation), `${operation} is not among ${operations}`);
    }
    assert.match(await admin('audit', 'verify'), /\d+:sha256:[0-9a-f]{64}/);
    assert.ok(!JSON.stringify(lines).includes('secret') && !server.log().includes('secret'));
  });
});
