/** Keys of the gateway take one another's place under a running service: by commands on the host, reloads, and the real ssh. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { stringify } from 'yaml';
import { eventually, physics, type TestApp } from '../support/app.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { startTestIssuer } from '../support/issuer.ts';
import { freePorts } from '../support/ports.ts';
import { program } from '../support/program.ts';
import { sshPerson } from '../support/ssh-person.ts';

test('the host key and the key towards login nodes: announced, switched, retired, and people log in throughout', async (t) => {
  using directory = temporaryDirectory();
  await using issuer = await startTestIssuer(Date.now);
  const [platform, business, gateway = 0] = await freePorts(3);
  const file = join(directory.path, 'andromeda.yaml');
  const dataDir = join(directory.path, 'data');
  const settings = {
    dataDir,
    platform: { listen: `127.0.0.1:${platform}` },
    business: { listen: `127.0.0.1:${business}` },
    gateway: { listen: `127.0.0.1:${gateway}`, port: gateway },
    identity: { issuer: issuer.url },
    sync: { intervalSeconds: 1 },
    clusters: { unsafeSimulatedLogins: true },
    seed: 'lab.yaml',
  };
  writeFileSync(file, stringify(settings));
  writeFileSync(join(directory.path, 'lab.yaml'), stringify(physics));
  const child = spawn(program, ['serve', '--config', file], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  t.after(() => child.kill('SIGKILL'));
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (part) => {
    log += part;
  });
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const starts = () => log.split('"event":"serve.ready"').length - 1;
  const untilStarted = (times: number) =>
    eventually(
      async () => starts(),
      (n) => n === times,
    );
  const reload = async () => {
    const before = starts();
    child.kill('SIGHUP');
    await untilStarted(before + 1);
  };
  async function key(...args: string[]) {
    const command = spawn(program, ['admin', 'key', ...args, '--config', file], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let said = '';
    for (const stream of [command.stdout, command.stderr])
      stream.setEncoding('utf8').on('data', (part) => {
        said += part;
      });
    const status = await new Promise((done) => command.once('close', done));
    return { status, said };
  }
  async function does(...args: string[]): Promise<string> {
    const { status, said } = await key(...args);
    assert.equal(status, 0, said);
    return said;
  }
  async function refuses(pattern: RegExp, ...args: string[]): Promise<void> {
    const { status, said } = await key(...args);
    assert.equal(status, 1, said);
    assert.match(said, pattern);
  }
  async function call(port: number | undefined, path: string, as: string, body?: unknown) {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        authorization: `Bearer ${await issuer.token(as)}`,
        'content-type': 'application/json',
        'idempotency-key': crypto.randomUUID(),
        'audit-reason': 'test',
      },
      body: body === undefined ? null : JSON.stringify(body),
    });
    return { status: response.status, body: (await response.json()) as never, headers: response.headers };
  }
  const service = {
    gatewayPort: gateway,
    business: (path: string, { as = '' }) => call(business, path, as),
    platform: (path: string, { as = '' }) => call(platform, path, as),
    write: (path: string, { as = '', body }: { as?: string; body?: unknown }) =>
      call(business, path, as, body),
  } as unknown as TestApp;

  await untilStarted(1);
  using ada = await sshPerson(service, 'ada');
  const known = String(ada.options.at(-1)).replace('UserKnownHostsFile=', '');
  const knownKeys = () => readFileSync(known, 'utf8').trim().split('\n').length;
  const logIn = async (...more: string[]) => {
    const { status, out, err } = await ada.ssh([...more, ada.target, 'sleep 0.3; echo in']);
    assert.deepEqual([status, out], [0, 'in\n'], err);
  };
  const learning = ['-o', 'UpdateHostKeys=yes'];
  await logIn(...learning);
  assert.equal(knownKeys(), 1);

  await refuses(/There is no next key\. Announce one first/, 'switch', 'host');
  await does('announce', 'host');
  assert.match(await does('announce', 'client'), /\n +ssh-ed25519 AAAA\S+\n/);
  for (const name of ['host', 'client'])
    assert.equal(statSync(join(dataDir, `keys/gateway_${name}_ed25519.next`)).mode & 0o777, 0o600);
  await refuses(/There is a next key already/, 'announce', 'host');
  await refuses(/has not taken up the next key yet.*Reload/, 'switch', 'host');
  await reload();
  const { host_key, next_host_key } = await eventually(ada.access, ({ ready }) => ready === true);
  assert.ok(next_host_key !== undefined && next_host_key !== host_key);
  await logIn(...learning);
  assert.equal(knownKeys(), 2);
  const { body } = await service.business('/operator/gateway', { as: 'root' });
  assert.deepEqual(body.other_host_keys, [next_host_key]);
  assert.equal(body.other_public_keys.length, 1);

  await does('switch', 'host');
  await does('switch', 'client');
  await refuses(/The service still uses SHA256:.*Reload it/, 'retire', 'client');
  await reload();
  await eventually(ada.access, ({ ready }) => ready === true);
  assert.equal((await ada.access()).host_key, next_host_key);
  await logIn();
  await does('retire', 'host');
  await does('retire', 'client');
  await reload();
  await eventually(ada.access, ({ ready }) => ready === true);
  await logIn(...learning);
  assert.equal(knownKeys(), 1);
  assert.match(
    readFileSync(known, 'utf8'),
    new RegExp(String(next_host_key).split(' ')[1]?.replace(/[+]/g, '\\+') ?? ''),
  );

  await t.test('the client key is not switched to one that a login node does not take', async () => {
    await does('announce', 'client');
    // As if the service had taken it up, and its login node had not.
    const noted = join(dataDir, 'keys/in-use.json');
    const inUse = JSON.parse(readFileSync(noted, 'utf8'));
    const [, next] = /next +(SHA256:\S+)/.exec(await does('list')) ?? [];
    inUse.client.next = { id: next, since: new Date().toISOString() };
    writeFileSync(noted, JSON.stringify(inUse));
    await refuses(
      /alpha, login-1 \(127\.0\.0\.1:\d+\): it does not take the key[\s\S]*ssh-ed25519 AAAA/,
      'switch',
      'client',
    );
    await does('switch', 'client', '--force');
    await does('back', 'client');
    await does('withdraw', 'client');
    await reload();
    await eventually(ada.access, ({ ready }) => ready === true);
    await logIn();
  });

  await t.test('each step is in the audit trail', async () => {
    const { body } = await service.business('/operator/audit?limit=500', { as: 'root' });
    const steps = (body.entries as { operation: string; target: string; details: string }[])
      .filter(({ operation }) => /Key$/.test(operation) && operation !== 'registerSshKey')
      .map(({ operation, target }) => `${operation} ${target}`);
    assert.deepEqual(steps.slice(0, 6), [
      ...['announceKey host', 'announceKey client', 'switchKey host', 'switchKey client'],
      ...['retireKey host', 'retireKey client'],
    ]);
  });
  child.kill('SIGTERM');
  assert.equal(await exited, 0, log);
});
