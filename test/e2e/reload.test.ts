/** `andromeda serve`: faults at its start, without root too; and a reload, in which settings change and connections go on. */
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { Agent, type IncomingMessage, request } from 'node:http';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import Database from 'better-sqlite3';
import { stringify } from 'yaml';
import { askForReload } from '../../src/service/host/ask-service.ts';
import { gatewaysOf, isAlive } from '../gateway/process/lab.ts';
import { becomes, physics, startTestApp } from '../support/app.ts';
import { createAuthority } from '../support/certificate.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { fails } from '../support/heard.ts';
import { freePorts, listening } from '../support/ports.ts';
import { program, runProgram } from '../support/program.ts';
import { damageTable } from '../support/schemas.ts';
import { type ServiceProcess, type Settings, serve, writeSettings } from '../support/service-process.ts';
import { unless } from '../support/unless.ts';

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

/** It ends with that status, and the last line of its log says why. Every line is JSON. */
async function isRefused(file: string, sentence: RegExp, status = 78): Promise<void> {
  await using service = serve(file);
  assert.equal(await service.ended, status, service.log());
  for (const line of service.log().trimEnd().split('\n')) JSON.parse(line);
  const failed = service.events('serve.failed');
  assert.deepEqual([failed.length, failed[0]?.['level'], failed[0]?.['status']], [1, 'error', status]);
  assert.match(String(failed[0]?.['message']), sentence);
  assert.doesNotMatch(service.log(), /\bat .*:\d+:\d+|node_modules/, 'no stack trace');
}

test('a port in use is named, and which part wanted it', async () => {
  using directory = temporaryDirectory();
  const { file, gateway, platform } = await writeSettings(directory.path);
  for (const [port, sentence] of [
    [platform, /Platform API cannot start: 127\.0\.0\.1:\d+ is in use/],
    [gateway, /SSH gateway cannot start: 127\.0\.0\.1:\d+ is in use/],
  ] as const) {
    const other = createServer();
    await listening(other, port);
    try {
      await isRefused(file, sentence, 69);
    } finally {
      await new Promise((done) => other.close(done));
    }
  }
});

test('a configuration that is missing or wrong, its seed, and a data directory that cannot be made are named', async () => {
  using directory = temporaryDirectory();
  const at = (name: string) => join(directory.path, name);
  await isRefused(at('nothing.yaml'), /nothing\.yaml: there is no such file/);
  const { file, write } = await writeSettings(directory.path, { sink: {} });
  await isRefused(file, /andromeda\.yaml:\d+: sink is not a setting/);
  write({ seed: './lab.yaml' });
  writeFileSync(at('lab.yaml'), 'organizations: [{ slug: a, name: A, members: [] }]');
  await isRefused(file, /lab\.yaml:1: Organization a needs an owner/);
  assert.ok(!existsSync(at('data/andromeda.db')), 'nothing was made');
  write({ dataDir: './lab.yaml' });
  await isRefused(file, /data directory .* cannot be made/);
});

test('SIGTERM stops it although connections are open, and it says so; a data directory in use, of a newer version or damaged, is left alone', async () => {
  using directory = temporaryDirectory();
  const { file, business, gateway } = await writeSettings(directory.path);
  await using service = serve(file);
  await service.until('serve.ready');
  await isRefused((await writeSettings(directory.path)).file, /Another Andromeda serves from/);

  const [asking, silent] = [business, gateway].map((port) => connect(port, '127.0.0.1'));
  for (const socket of [asking, silent]) socket?.on('error', () => {});
  asking?.write('GET /me HTTP/1.1\r\nhost: x\r\n');
  await new Promise((done) => silent?.once('data', done));
  assert.equal(await service.stop(), 0, service.log());
  assert.match(service.log(), /"Stopping \(SIGTERM\)…"[\s\S]*"Stopped\."\}\n$/);
  for (const line of service.log().trimEnd().split('\n')) JSON.parse(line);
  for (const socket of [asking, silent]) socket?.destroy();

  const database = new Database(join(directory.path, 'data/andromeda.db'));
  database.exec("insert into kysely_migration values ('9999-from-the-future', '2030-01-01T00:00:00Z')");
  await isRefused(file, /written by a newer version/);
  database.exec("delete from kysely_migration where name like '9999%'");
  database.close();
  for (const table of ['counters', 'kysely_migration']) {
    damageTable(join(directory.path, 'data/andromeda.db'), table);
    await isRefused(file, /database .*is damaged.*(restore a backup|backup has to be restored)/);
  }
});

const skip = process.platform === 'linux' ? false : '/proc/locks is there on Linux only';

test('the service keeps its locks on the database, whatever it and other commands do', {
  skip,
}, async () => {
  using directory = temporaryDirectory();
  const { file, write } = await writeSettings(directory.path);
  const dataDir = join(directory.path, 'data');
  const database = join(dataDir, 'andromeda.db');
  const isLocked = ({ pid }: ChildProcess) =>
    new RegExp(` ${pid} \\S+:${statSync(database).ino} `).test(readFileSync('/proc/locks', 'utf8'));
  const beside = async (...args: string[]) => {
    const { status, err } = await runProgram(...args, '--config', file);
    assert.equal(status, 0, err);
  };

  await using first = serve(file);
  await first.until('serve.ready');
  assert.ok(isLocked(first.child), 'after a first start');
  await beside('service', 'reload');
  assert.ok(isLocked(first.child), 'after a reload');
  write({ audit: { file: directory.path } });
  assert.equal((await runProgram('service', 'reload', '--config', file)).status, 1);
  assert.ok(isLocked(first.child), 'after a reload that is refused');
  write();
  await beside('check');
  await beside('backup', join(directory.path, 'by-hand'));
  await beside('admin', 'key', 'new', 'host');
  assert.ok(isLocked(first.child), 'after commands beside it');
  await first.stop();

  await using second = serve(file);
  await second.until('serve.ready');
  assert.ok(isLocked(second.child), 'after a second start');
  // What an operator types who wants to see something: it must not end the service's log of writes.
  execFileSync(process.execPath, [
    ...['--input-type=module', '-e'],
    `import Database from 'better-sqlite3'; const d = new Database(${JSON.stringify(database)}); d.prepare('select 1').get(); d.close();`,
  ]);
  assert.ok(readdirSync(dataDir).includes('andromeda.db-wal'));
  await second.stop();
});

const ordinary = 30_113;
const isRoot = process.getuid?.() === 0;
const drop = isRoot ? ['setpriv', `--reuid=${ordinary}`, `--regid=${ordinary}`, '--clear-groups', '--'] : [];
const readable = !isRoot || spawnSync('setpriv', [...drop.slice(1), 'test', '-x', program]).status === 0;
const testReadable = unless(readable ? false : 'an ordinary user cannot read this checkout');

/** Serves a lab with a simulated Slurm cluster; resolves with the log when a line of it is as wanted. */
async function logUntil(t: TestContext, directory: string, wanted: RegExp, more: object = {}) {
  const { file } = await writeSettings(directory, { seed: 'lab.yaml', ...more });
  writeFileSync(join(directory, 'lab.yaml'), stringify(physics));
  chmodSync(directory, 0o755);
  if (isRoot) for (const path of [directory, file]) chownSync(path, ordinary, ordinary);
  const [command = '', ...args] = [...drop, program, 'serve', '--config', file];
  const child = spawn(command, args, {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, HOME: directory },
  });
  t.after(() => child.kill('SIGKILL'));
  const exited = once(child, 'exit');
  let log = '';
  for await (const part of child.stderr.setEncoding('utf8')) {
    log += part;
    if (wanted.test(log)) break;
  }
  child.kill('SIGTERM');
  // Its directory goes next, and what it still wrote would be left behind.
  await exited;
  assert.match(log, wanted);
  return log;
}

testReadable(
  'without root a simulated login node is not started, in words in the log and in the condition',
  async (t) => {
    using directory = temporaryDirectory();
    const log = await logUntil(t, directory.path, /"sync\.refused".*\n/);
    for (const event of ['simulated.login_node_refused', 'sync.refused']) {
      const line = log.split('\n').find((one) => one.includes(`"${event}"`));
      assert.match(line ?? '', /"alpha".*not root.*clusters\.unsafeSimulatedLogins: true/);
    }
    assert.doesNotMatch(log, /simulated\.applied.*"alpha"/);
  },
);

testReadable('clusters.unsafeSimulatedLogins has it all the same, with a warning', async (t) => {
  using directory = temporaryDirectory();
  const clusters = { unsafeSimulatedLogins: true };
  const log = await logUntil(t, directory.path, /"simulated\.applied","cluster":"alpha"/, { clusters });
  assert.match(log, /"warn".*"simulated\.unsafe","cluster":"alpha".*not root/);
  assert.doesNotMatch(log, /refused/);
});
