/** `systemctl reload`: the service takes up its settings in its own process; connections and the gateway's process go on. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { Agent, type IncomingMessage, request } from 'node:http';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { askForReload } from '../../src/service/host/ask-service.ts';
import { gatewaysOf, isAlive } from '../gateway/process/lab.ts';
import { becomes, physics, startTestApp } from '../support/app.ts';
import { createAuthority } from '../support/certificate.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { fails } from '../support/heard.ts';
import { freePorts, listening } from '../support/ports.ts';
import { runProgram } from '../support/program.ts';
import { type ServiceProcess, type Settings, serve, writeSettings } from '../support/service-process.ts';

const directory = temporaryDirectory();
/** The service that all of these reload, one after the other. */
let own: Settings;
let service: ServiceProcess;
let gateways: number[];

before(async () => {
  own = await writeSettings(directory.path);
  service = serve(own.file);
  await service.until('serve.ready');
  gateways = gatewaysOf(directory.path);
  assert.equal(gateways.length, 1);
});

after(async () => {
  await service[Symbol.asyncDispose]();
  directory[Symbol.dispose]();
});

const starts = () => service.events('serve.ready').length;

const isServed = (port: number, host = '127.0.0.1') =>
  fetch(`http://${host}:${port}/readyz`).then(
    ({ status }) => status === 200,
    () => false,
  );

/** By the command. */
async function reload() {
  const { status, out, err } = await runProgram('service', 'reload', '--config', own.file);
  return { status, said: out + err };
}

test('SIGHUP: new settings, the same gateway process; a wrong file changes nothing', async () => {
  const { settings, platform, business, write } = own;
  const [other = 0, metrics] = await freePorts(2);
  service.child.kill('SIGUSR1');
  writeFileSync(own.file, 'sink: {}');
  service.child.kill('SIGHUP');
  await service.until('serve.reload.refused', 1);
  const { cert } = createAuthority().issue('server');
  writeFileSync(join(directory.path, 'chain.pem'), cert);
  writeFileSync(join(directory.path, 'key.pem'), createAuthority().issue('server').key, { mode: 0o600 });
  write({ platform: { ...settings.platform, tls: { cert: 'chain.pem', key: 'key.pem' } } });
  service.child.kill('SIGHUP');
  await service.until('serve.reload.refused', 2);
  write({ dataDir: './other' });
  service.child.kill('SIGHUP');
  await service.until('serve.reload.refused', 3);
  const said = service.events('serve.reload.refused').map(({ message }) => String(message));
  for (const [index, why] of [
    /^Not reloaded: .*andromeda\.yaml:\d+: sink is not a setting/,
    /^Not reloaded: .*andromeda\.yaml:\d+: platform\.tls: The key in .*key\.pem is not that of the first certificate/,
    /^Not reloaded: dataDir is .*other now, and the service has .*data\. Another one takes a restart/,
  ].entries())
    assert.match(said[index] ?? '', why);
  assert.deepEqual([await isServed(platform), await isServed(business), starts()], [true, true, 1]);

  const backups = join(directory.path, 'backups');
  mkdirSync(backups);
  write({
    business: { listen: `127.0.0.1:${other}` },
    gateway: { ...settings.gateway, limits: { sessionsPerUser: 3 } },
    metrics: { listen: `127.0.0.1:${metrics}` },
    backup: { to: backups },
  });
  service.child.kill('SIGHUP');
  await service.until('serve.ready', 2);
  assert.deepEqual([await isServed(business), await isServed(other)], [false, true]);
  assert.deepEqual(gatewaysOf(directory.path), gateways, 'sessions would go on');
  assert.equal(service.events('gateway.started').length, 1);
  const scrape = await fetch(`http://127.0.0.1:${metrics}/metrics`);
  assert.match(await scrape.text(), /^andromeda_gateway_sessions 0$/m);
  assert.doesNotMatch(service.log(), /Debugger/);
  await service.until('backup.made', 1);
  assert.equal(readdirSync(backups).length, 1);
});

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

test('reloads under load refuse no connection, fail no request and end no kept connection', async (t) => {
  own.write();
  assert.equal((await reload()).status, 0);
  const [before, from] = [starts(), service.log().length];
  const asking = [own.platform, own.business].map((port) => startAsking(port));
  // Or a failure would not end.
  t.after(() => Promise.all(asking.map((one) => one.stop())));
  const counts = () => asking.flatMap((one) => [...one.counts]);
  const rounds = 8;
  for (let n = 1; n <= rounds; n += 1) {
    own.write({ http: { connections: 1000 + n } });
    const asked = counts();
    assert.equal(await askForReload(join(directory.path, 'data')), undefined, service.log());
    // What was asked as it began has its answer on each connection, and so has one more.
    await becomes(() => counts().every((count, index) => count >= (asked[index] ?? 0) + 2), true);
  }
  for (const one of asking) assert.deepEqual(await one.stop(), []);
  assert.equal(starts() - before, rounds);
  assert.deepEqual(gatewaysOf(directory.path), gateways);
  // Such as of listeners that each reload leaves behind.
  assert.doesNotMatch(service.log().slice(from), /process\.warning|"level":"error"/);
});

test('what is wrong with the settings is said by the command, and the service goes on as it was', async (t) => {
  const taken = createServer();
  const port = await listening(taken);
  t.after(() => taken.close());
  const before = starts();
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
    if (typeof settings === 'string') writeFileSync(own.file, settings);
    else own.write(settings);
    fails(await reload(), 1, why);
  }
  for (const at of [own.platform, own.business]) assert.ok(await isServed(at));
  assert.deepEqual(gatewaysOf(directory.path), gateways);
  assert.equal(starts(), before);
  own.write();
  assert.deepEqual(await reload(), { status: 0, said: `The service goes on with ${own.file}.\n` });
});

test('what only a start finds out brings the settings of before back', async (t) => {
  // `check` asks who is there, and takes a service of ours for this one.
  await using other = await startTestApp({ lab: { ...physics, clusters: [] } });
  const before = starts();
  const anyAddress = { behindProxy: true, url: 'http://business.example' };
  own.write({ business: { listen: `0.0.0.0:${new URL(other.businessUrl).port}`, ...anyAddress } });
  fails(await reload(), 1, /0\.0\.0\.0:\d+ is in use by another program/);
  assert.deepEqual([await isServed(own.business), starts()], [true, before], 'nothing has ended');

  own.write({ gateway: { listen: `127.0.0.1:${other.gatewayPort}` } });
  fails(await reload(), 1, /The SSH gateway cannot start: 127\.0\.0\.1:\d+ is in use by another program/);
  assert.ok(await isServed(own.business));
  const banner = connect(own.gateway, '127.0.0.1');
  t.after(() => banner.destroy());
  assert.match(String((await once(banner, 'data'))[0]), /^SSH-2\.0-\S+ Andromeda/);

  // The other address of the same port, in the place of the one that is held.
  own.write({ business: { listen: `0.0.0.0:${own.business}`, ...anyAddress } });
  assert.equal((await reload()).status, 0, service.log());
  assert.ok(await isServed(own.business, '127.0.0.2'));
});

test('SIGUSR2, as at `systemctl restart`, leaves the gateway to the service that follows; SIGTERM within reloads does not', async () => {
  const running = gatewaysOf(directory.path);
  assert.equal(await service.stop('SIGUSR2'), 0, service.log());
  assert.ok(running.length > 0 && running.every(isAlive));
  await using next = serve(own.file);
  await next.until('serve.ready');
  assert.deepEqual(gatewaysOf(directory.path), running);
  for (let n = 0; n < 20; n += 1) next.child.kill('SIGHUP');
  await next.until('serve.ready', 2);
  assert.equal(await next.stop(), 0, next.log());
  assert.deepEqual(running.filter(isAlive), []);
});
