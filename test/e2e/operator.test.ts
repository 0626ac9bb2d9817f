/** An installation from nothing, by its operator, with the real program and real ssh: README, "Your own installation". */
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { stringify } from 'yaml';
import { createBrowser } from '../identity/issuer/harness.ts';
import { becomes, eventually } from '../support/app.ts';
import { runCommand, startCommand } from '../support/command.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { finished, heard } from '../support/heard.ts';
import { serve, writeSettings } from '../support/service-process.ts';

const withoutSsh = existsSync('/usr/bin/ssh') ? false : 'the OpenSSH client is not installed';
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

test('from an empty directory to a session and its end', { skip: withoutSsh }, async () => {
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
  const does = async (args: string, input = '', ...rest: string[]): Promise<string> => {
    const { status, stdout, stderr } = await runCommand([...args.split(' '), ...rest], { env, input });
    assert.equal(status, 0, stderr);
    return stdout;
  };
  const signIn = async (email: string, password: string, profile: string): Promise<void> => {
    const login = startCommand(['auth', 'login', '--url', platformUrl, '--profile', profile], { env });
    const [address = ''] = /http:\S+user_code=\S+/.exec(await login.until('enter the code')) ?? [];
    const browser = createBrowser(address);
    let page = await browser.visit(address);
    page = await browser.submit(page, '/device/sign-in', { email, password });
    page = await browser.visit(page.location ?? '');
    await browser.submit(page, '/device/approval', { decision: 'approve' });
    const { status, screen } = await login.result;
    assert.equal(status, 0, screen);
    assert.match(screen, RegExp(email.slice(0, 3), 'i'));
  };

  // The first operator is made on the host, which says what to do next; another one while the service runs.
  const bootstrap = `admin bootstrap --config ${config} --email`;
  const made = await does(`${bootstrap} Ada@physics.example --name Ada`, 'correct horse\n');
  assert.match(made, /ada@physics\.example is an operator/);
  assert.ok(made.includes(`auth login --url ${platformUrl}`));
  assert.equal(statSync(join(here, 'data/andromeda.db')).mode & 0o777, 0o600);
  await using server = serve(config, env);
  await server.until('serve.ready');
  await does(`${bootstrap} grace@physics.example`, 'another secret\n');
  await signIn('grace@physics.example', 'another secret', 'grace');
  assert.deepEqual(JSON.parse(await does('call --profile grace business GET /me')).staff_keys, [
    'staff.operate',
  ]);

  // The operator signs in and applies a lab file.
  await signIn('ada@physics.example', 'correct horse', 'default');
  const file = join(here, 'lab.yaml');
  writeFileSync(file, stringify(lab));
  assert.match(await does(`admin plan -f ${file}`), /create +cluster +alpha/);
  assert.match(await does(`admin apply -f ${file}`), /create +member +physics\/bob@physics\.example/);
  assert.match(await does(`admin apply -f ${file}`), /Nothing to change/);
  writeFileSync(file, stringify(lab).replace('role: owner', 'role: emperor'));
  const refused = await runCommand(['admin', 'apply', '-f', file], { env });
  assert.match(refused.stderr, /^\S+lab\.yaml:6: .*role.*\n$/);

  // A password of the operator's lets a member sign in, register a key and log in.
  const set = await does('admin person password bob@physics.example', 'bobs own secret\n');
  assert.ok(!set.includes('bobs own secret'));
  await signIn('bob@physics.example', 'bobs own secret', 'bob');
  const key = join(here, 'id_ed25519');
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key]);
  const body = JSON.stringify({ public_key: readFileSync(`${key}.pub`, 'utf8') });
  const headers = ['-H', 'Idempotency-Key: 1', '-H', 'Audit-Reason: test', '-d', body];
  await does('call --profile bob', '', ...headers, 'business', 'POST', '/me/ssh-keys');
  const org = JSON.parse(await does('call --profile bob business GET /me')).default_org_id;
  const [{ id }] = JSON.parse(await does(`call platform GET /clusters?businessOrgId=${org}`)).items;
  const access = `call --profile bob platform GET /clusters/${id}/ssh-access?organizationId=${org}`;
  await eventually(
    async () => JSON.parse(await does(access)),
    ({ ready }) => ready,
  );
  const options = ['StrictHostKeyChecking=no', 'UserKnownHostsFile=/dev/null', 'BatchMode=yes'];
  const own = [...options, 'LogLevel=ERROR'].flatMap((option) => ['-o', option]);
  const ssh = [...own, '-i', key, '-p', String(gateway), `${id}.bob@127.0.0.1`];
  const openSession = async () => {
    const child = spawn('ssh', [...ssh, 'echo in; sleep 60'], { env });
    const [out, ended] = [heard(child.stdout), finished(child)];
    await becomes(() => out().includes('in'), true);
    return { ended };
  };

  // A session is listed and closed with a reason, and the next one ends with the membership.
  const session = await openSession();
  const [open] = JSON.parse(await does('admin session list -o json')).sessions;
  assert.equal(open.login_name, `${id}.bob`);
  await does(`admin session close ${open.id} --reason`, '', 'maintenance at noon');
  assert.match((await session.ended).err, /maintenance at noon/);
  const next = await openSession();
  await does('members remove --org physics bob@physics.example');
  assert.notEqual((await next.ended).err, '');
  assert.equal(spawnSync('ssh', ssh.concat('true'), { env }).status, 255);

  // The audit trail has all of it, and verifies.
  const lines = (await does('admin audit --person bob@physics.example')).trim().split('\n');
  const operations = lines.map((line) => JSON.parse(line).operation);
  for (const one of ['operatorSetPassword', 'registerSshKey', 'operatorCloseSession', 'removeMember'])
    assert.ok(operations.includes(one), `${one} is not among ${operations}`);
  assert.match(await does('admin audit verify'), /\d+:sha256:[0-9a-f]{64}/);
  assert.ok(!lines.join().includes('secret') && !server.log().includes('secret'));
});
