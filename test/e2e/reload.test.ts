/** `systemctl reload`: the service takes up its settings in its own process; connections and the gateway's process go on. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs';
import { Agent, type IncomingMessage, request } from 'node:http';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { stringify } from 'yaml';
import { askForReload } from '../../src/service/host/ask-service.ts';
import { gatewaysOf, isAlive } from '../gateway/process/lab.ts';
import { eventually } from '../support/app.ts';
import { createAuthority } from '../support/certificate.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { freePorts } from '../support/ports.ts';
import { program, runProgram } from '../support/program.ts';

test('SIGHUP: new settings, the same process number, the same gateway process; a wrong file changes nothing', async (t) => {
  using directory = temporaryDirectory();
  const [platform, business, gateway, issuer, other, metrics] = await freePorts(6);
  const file = join(directory.path, 'andromeda.yaml');
  const write = (businessPort: number | undefined, more: object = {}) =>
    writeFileSync(
      file,
      stringify({
        platform: { listen: `127.0.0.1:${platform}` },
        business: { listen: `127.0.0.1:${businessPort}` },
        gateway: { listen: `127.0.0.1:${gateway}` },
        identity: { embedded: { listen: `127.0.0.1:${issuer}` } },
        metrics: { listen: `127.0.0.1:${metrics}` },
        ...more,
      }),
    );
  write(business);
  const child = spawn(program, ['serve', '--config', file], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  t.after(() => child.kill('SIGKILL'));
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (part) => {
    log += part;
  });
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const count = (event: string) => log.split(`"event":"${event}"`).length - 1;
  const until = (event: string, times: number) =>
    eventually(
      async () => count(event),
      (found) => found === times,
    );
  const isServed = (port: number | undefined) =>
    fetch(`http://127.0.0.1:${port}/readyz`).then(
      ({ status }) => status === 200,
      () => false,
    );
  await until('serve.ready', 1);
  const gateways = gatewaysOf(directory.path);
  assert.equal(gateways.length, 1);
  const scrape = await fetch(`http://127.0.0.1:${metrics}/metrics`);
  assert.match(await scrape.text(), /^andromeda_gateway_sessions 0$/m);

  child.kill('SIGUSR1');
  writeFileSync(file, 'sink: {}');
  child.kill('SIGHUP');
  await until('serve.reload.refused', 1);
  assert.match(log, /Not reloaded: .*andromeda\.yaml:\d+: sink is not a setting/);
  assert.ok(await isServed(business));
  const { cert } = createAuthority().issue('server');
  writeFileSync(join(directory.path, 'chain.pem'), cert);
  writeFileSync(join(directory.path, 'key.pem'), createAuthority().issue('server').key, { mode: 0o600 });
  const tls = { cert: 'chain.pem', key: 'key.pem' };
  write(business, { platform: { listen: `127.0.0.1:${platform}`, tls } });
  child.kill('SIGHUP');
  await until('serve.reload.refused', 2);
  assert.match(
    log,
    /Not reloaded: .*andromeda\.yaml:\d+: platform\.tls: The key in .*key\.pem is not that of the first certificate/,
  );
  assert.ok(await isServed(business));

  const backups = join(directory.path, 'backups');
  mkdirSync(backups);
  write(other, {
    gateway: { listen: `127.0.0.1:${gateway}`, limits: { sessionsPerUser: 3 } },
    backup: { to: backups },
  });
  child.kill('SIGHUP');
  await until('serve.ready', 2);
  assert.deepEqual([await isServed(business), await isServed(other)], [false, true]);
  assert.deepEqual(gatewaysOf(directory.path), gateways, 'sessions would go on');
  assert.equal(count('gateway.started'), 1);
  assert.doesNotMatch(log, /Debugger/);

  await until('backup.made', 1);
  assert.equal(readdirSync(backups).length, 1);

  for (let n = 0; n < 20; n += 1) child.kill('SIGHUP');
  await eventually(
    async () => count('serve.ready'),
    (found) => found >= 3,
  );
  child.kill('SIGTERM');
  assert.equal(await exited, 0, log);
  assert.deepEqual(gateways.filter(isAlive), []);
});

/** A service on free ports, and how to write its settings with others. */
async function startService(t: TestContext, path: string) {
  const [platform = 0, business = 0, gateway = 0, issuer = 0] = await freePorts(4);
  const file = join(path, 'andromeda.yaml');
  const write = (more: object = {}) =>
    writeFileSync(
      file,
      stringify({
        platform: { listen: `127.0.0.1:${platform}` },
        business: { listen: `127.0.0.1:${business}` },
        gateway: { listen: `127.0.0.1:${gateway}` },
        identity: { embedded: { listen: `127.0.0.1:${issuer}` } },
        ...more,
      }),
    );
  write();
  const child = spawn(program, ['serve', '--config', file], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  t.after(() => child.kill('SIGKILL'));
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (part) => {
    log += part;
  });
  await eventually(
    async () => log,
    (text) => text.includes('serve.ready'),
  );
  const reload = async () => {
    const { status, out, err } = await runProgram('service', 'reload', '--config', file);
    return { code: status, said: out + err };
  };
  return { file, write, child, reload, platform, business, gateway, log: () => log };
}

/** Asks again and again, on a kept connection and on fresh ones, until stopped. Counts what was asked on each, and resolves to what failed. */
function startAsking(port: number) {
  const agents = [new Agent({ keepAlive: true, maxSockets: 1 }), undefined];
  const failures: string[] = [];
  let isStopped = false;
  const counts = agents.map(() => 0);
  const running = agents.map(async (agent, index) => {
    while (!isStopped) {
      counts[index] = (counts[index] ?? 0) + 1;
      try {
        const asking = request({ host: '127.0.0.1', port, path: '/healthz', agent: agent ?? false }).end();
        const [response] = (await once(asking, 'response')) as [IncomingMessage];
        await response.resume().toArray();
        if (response.statusCode !== 200) failures.push(`status ${response.statusCode}`);
      } catch (error) {
        failures.push(String(error));
      }
    }
  });
  return {
    counts,
    async stop() {
      isStopped = true;
      await Promise.all(running);
      return failures;
    },
  };
}

async function ended(child: ChildProcess): Promise<number | null> {
  const [status] = child.exitCode === null ? await once(child, 'exit') : [child.exitCode];
  return status;
}

test('twenty reloads under load refuse no connection, fail no request and end no kept connection', async (t) => {
  using directory = temporaryDirectory();
  const service = await startService(t, directory.path);
  const gateways = gatewaysOf(directory.path);
  const asking = [service.platform, service.business].map((port) => startAsking(port));
  // Or a failure would not end.
  t.after(() => Promise.all(asking.map((one) => one.stop())));
  const counts = () => asking.flatMap((one) => [...one.counts]);
  for (let n = 1; n <= 20; n += 1) {
    service.write({ http: { connections: 1000 + n } });
    const before = counts();
    assert.equal(await askForReload(join(directory.path, 'data')), undefined, service.log());
    // What was asked as it began has its answer on each connection, and so has one more.
    await eventually(
      async () => counts(),
      (now) => now.every((count, index) => count >= (before[index] ?? 0) + 2),
    );
  }
  for (const one of asking) assert.deepEqual(await one.stop(), []);
  assert.equal(service.log().split('"event":"serve.ready"').length - 1, 21);
  assert.deepEqual(gatewaysOf(directory.path), gateways);
  // Such as of listeners that each reload leaves behind.
  assert.doesNotMatch(service.log(), /process\.warning|"level":"error"/);
  service.child.kill('SIGTERM');
  assert.equal(await ended(service.child), 0);
});

test('what is wrong with the settings is said by the command, and the service goes on as it was', async (t) => {
  using directory = temporaryDirectory();
  const service = await startService(t, directory.path);
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  t.after(() => taken.close());
  const { port } = taken.address() as { port: number };
  const gateways = gatewaysOf(directory.path);
  const cases: [object | string, RegExp][] = [
    ['', /andromeda\.yaml has nothing in it/],
    ['# only a comment\n', /andromeda\.yaml has nothing in it/],
    ['sink: 1', /sink is not a setting/],
    [
      { business: { listen: `127.0.0.1:${port}` } },
      /business\.listen, 127\.0\.0\.1 port \d+: in use by another program/,
    ],
    [
      { gateway: { listen: '192.0.2.1:2222' } },
      /gateway\.listen, 192\.0\.2\.1 port 2222: this machine has no such address/,
    ],
    [{ backup: { to: '/nowhere' } }, /backup\.to: \/nowhere is not there/],
    [{ audit: { file: '/nowhere/trail.jsonl' } }, /audit\.file: \/nowhere\/trail\.jsonl cannot be made/],
    [{ dataDir: './other' }, /a service with another dataDir takes a restart/],
  ];
  for (const [settings, why] of cases) {
    if (typeof settings === 'string') writeFileSync(service.file, settings);
    else service.write(settings);
    const { code, said } = await service.reload();
    assert.equal(code, 1, said);
    assert.match(said, why);
  }
  service.child.kill('SIGHUP');
  await eventually(
    async () => service.log(),
    (text) =>
      /Not reloaded: dataDir is .*other now, and the service has .*data\. Another one takes a restart/.test(
        text,
      ),
  );
  for (const at of [service.platform, service.business])
    assert.equal((await fetch(`http://127.0.0.1:${at}/readyz`)).status, 200);
  assert.deepEqual(gatewaysOf(directory.path), gateways);
  assert.equal(service.log().split('"event":"serve.ready"').length - 1, 1);
  service.write();
  assert.deepEqual(await service.reload(), { code: 0, said: `The service goes on with ${service.file}.\n` });
});

test('what only a start finds out brings the settings of before back', async (t) => {
  using directory = temporaryDirectory();
  const service = await startService(t, directory.path);
  // `check` asks who is there, and takes a service of ours for this one.
  const other = await startService(t, mkdtempSync(join(directory.path, 'other-')));
  service.write({
    business: { listen: `0.0.0.0:${other.business}`, behindProxy: true, url: 'http://business.example' },
  });
  const { code, said } = await service.reload();
  assert.equal(code, 1);
  assert.match(said, /0\.0\.0\.0:\d+ is in use by another program/);
  assert.equal((await fetch(`http://127.0.0.1:${service.business}/readyz`)).status, 200);
  assert.equal(service.log().split('"event":"serve.ready"').length - 1, 1, 'nothing has ended');

  service.write({ gateway: { listen: `127.0.0.1:${other.gateway}` } });
  const ofGateway = await service.reload();
  assert.equal(ofGateway.code, 1);
  assert.match(ofGateway.said, /The SSH gateway cannot start: 127\.0\.0\.1:\d+ is in use by another program/);
  assert.equal((await fetch(`http://127.0.0.1:${service.business}/readyz`)).status, 200);
  const banner = connect(service.gateway, '127.0.0.1');
  t.after(() => banner.destroy());
  assert.match(String((await once(banner, 'data'))[0]), /^SSH-2\.0-\S+ Andromeda/);

  // The other address of the same port, in the place of the one that is held.
  service.write({
    business: { listen: `0.0.0.0:${service.business}`, behindProxy: true, url: 'http://business.example' },
  });
  assert.equal((await service.reload()).code, 0, service.log());
  assert.equal((await fetch(`http://127.0.0.2:${service.business}/readyz`)).status, 200);
});

test('SIGUSR2, as at `systemctl restart`, leaves the gateway to the service that follows; SIGTERM does not', async (t) => {
  using directory = temporaryDirectory();
  const first = await startService(t, directory.path);
  const gateways = gatewaysOf(directory.path);
  first.child.kill('SIGUSR2');
  assert.equal(await ended(first.child), 0, first.log());
  assert.ok(gateways.length > 0 && gateways.every(isAlive));
  for (const pid of gateways) process.kill(pid, 'SIGKILL');
});
