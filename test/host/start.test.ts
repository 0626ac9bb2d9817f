/** Faults that keep a service from starting or end it, missing keys, and the exit status that systemd sees. */
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { serviceSecrets } from '../../src/domain/key-rotation.ts';
import { createLogger } from '../../src/lib/log.ts';
import { startApp } from '../../src/service/compose/index.ts';
import { readConfig } from '../../src/service/config/index.ts';
import { feedWatchdog, startSupervision } from '../../src/service/host/unit/supervision.ts';
import { listMissingKeys, missingKeyText, noteKey } from '../../src/store/data-dir/key-files.ts';
import { becomes, eventually, startTestApp } from '../support/app.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { heard } from '../support/heard.ts';
import { limit } from '../support/limit.ts';
import { freePorts } from '../support/ports.ts';
import { runProgram } from '../support/program.ts';
import { serve, writeSettings } from '../support/service-process.ts';
import { openTestStore, testOnFile } from '../support/store.ts';

testOnFile('what check calls wrong is refused with 78, and a warning is none', async () => {
  using directory = temporaryDirectory();
  const { file, write } = await writeSettings(directory.path);
  const data = join(directory.path, 'data');
  const check = () => runProgram('check', '--quiet', '--config', file);
  async function starts() {
    await using service = serve(file);
    await service.until('serve.ready');
  }
  await starts();

  async function isRefused(sentence: string) {
    const { status, out } = await check();
    assert.deepEqual([status, out.includes(sentence)], [1, true], out);
    await using service = serve(file);
    await service.ended;
    const [failed] = service.events('serve.failed');
    assert.equal(failed?.['status'], 78, service.log());
    assert.ok(String(failed?.['message']).includes(sentence), service.log());
  }

  const kinds = {
    'reload.sock': 'is a directory',
    lock: 'is a directory',
    'andromeda.db-shm': 'is a directory',
    run: 'has to be a directory',
  };
  for (const [name, sentence] of Object.entries(kinds)) {
    const path = join(data, name);
    if (existsSync(path)) renameSync(path, `${path}.away`);
    if (name === 'run') writeFileSync(path, '');
    else mkdirSync(path);
    await isRefused(`${path} ${sentence}`);
    rmSync(path, { recursive: true });
    if (existsSync(`${path}.away`)) renameSync(`${path}.away`, path);
  }

  // A key of the gateway of another type.
  const key = join(data, 'keys/gateway_client_ed25519');
  renameSync(key, `${key}.away`);
  execFileSync('ssh-keygen', ['-q', '-t', 'rsa', '-N', '', '-f', key]);
  await isRefused(`The key in ${key} cannot be used: it holds no Ed25519`);
  renameSync(`${key}.away`, key);

  // A copy of the trail over the configuration.
  write({ audit: { file: './andromeda.yaml' } });
  await isRefused('audit.file is ');

  // A lock that a disk left with other content is used.
  write();
  writeFileSync(join(data, 'lock'), 'rubbish'.repeat(20));
  assert.equal((await check()).status, 0);
  await starts();

  // Directories that are not there for backups and for a copy of the trail.
  write({ backup: { to: './none' }, audit: { file: './none/audit.jsonl' } });
  const { status, out } = await check();
  assert.deepEqual([status, [...out.matchAll(/^warn {3}(audit|backup) /gm)].length], [0, 2], out);
  await starts();
});

test('what fails behind the start is a line of the log, and ends the service and its gateway', async () => {
  using directory = temporaryDirectory();
  const { file, gateway } = await writeSettings(directory.path);
  const script = `
    import { serve } from '${join(import.meta.dirname, '../../src/service/host/serve.ts')}';
    const stopping = new Promise(() => {});
    const next = async () => { throw new Error('no luck'); };
    process.exitCode = await serve({ config: ${JSON.stringify(file)} }, { next, reload() {}, stopping });
  `;
  const args = ['--input-type=module', '--eval', script];
  const timeout = limit(60_000);
  const ran = spawnSync(process.execPath, args, { encoding: 'utf8', timeout });
  assert.equal(ran.status, 1, ran.stderr);
  const lines = ran.stderr
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const failed = lines.find(({ event }) => event === 'serve.failed');
  assert.equal(failed?.message, 'no luck');
  assert.ok(lines.some(({ event }) => event === 'serve.ready'));
  const socket = connect(gateway, '127.0.0.1');
  const [error] = await once(socket, 'error');
  assert.equal(error.code, 'ECONNREFUSED');
});

const sentence = (file: string) => `The key ${file}, which the service used, is missing; with a new one, `;

testOnFile(
  'a service whose key is gone does not start, says what to do, and starts with a new one that was accepted',
  async () => {
    const [issuer] = await freePorts(1);
    const embedded = { listen: `127.0.0.1:${issuer}` };
    await using app = await startTestApp({ identity: { issuer: undefined, embedded } });
    await app.app[Symbol.asyncDispose]();
    const dataDir = join(app.dataDir, 'data');
    const config = join(app.dataDir, 'andromeda.yaml');

    async function run(...args: string[]) {
      const { status, out, err } = await runProgram(...args, '--config', config);
      return { status, said: out + err };
    }

    /** By the service, and by commands. */
    async function isRefused(sentence: string, commands = ['check']) {
      const started = startApp({ config: readConfig(config), log: createLogger('silent') });
      await assert.rejects(started, ({ message }: Error) => message.includes(sentence));
      for (const command of commands) {
        const { status, said } = await run(command, '--quiet');
        assert.deepEqual([status, said.includes(sentence)], [1, true], `${command}: ${said}`);
      }
    }

    async function endsWith78(sentence: string) {
      await using service = serve(config);
      assert.deepEqual([await service.ended, service.log().includes(sentence)], [78, true], service.log());
    }

    const listed = JSON.parse((await run('admin', 'key', 'list', '--json')).said).keys;
    const idOf = (one: { kind: string; in: string; used: { id: string } }) => [one.kind, one.in];
    assert.deepEqual(
      listed.map(idOf),
      Object.entries(serviceSecrets).map(([kind, { file }]) => [kind, join(dataDir, file)]),
    );
    assert.match(listed[0].used.id, /^SHA256:/);
    const checked = JSON.parse((await run('check', '--json')).said).findings;
    assert.ok(checked.some(({ about }: { about: string }) => about === 'key'));

    const spoilt: Record<string, (file: string) => void> = {
      empty: (file) => writeFileSync(file, ''),
      cut: (file) => writeFileSync(file, readFileSync(`${file}.away`, 'utf8').slice(0, 60)),
      // The gateway has Ed25519 keys, and nothing else of ours has those of RSA.
      'of another type': (file) => {
        execFileSync('ssh-keygen', ['-q', '-t', 'rsa', '-N', '', '-f', file]);
        rmSync(`${file}.pub`);
      },
      // As one that this account may not read.
      unreadable: (file) => mkdirSync(file),
    };
    for (const kind of ['host', 'client', 'issuer', 'audit'] as const) {
      const file = join(dataDir, serviceSecrets[kind].file);
      renameSync(file, `${file}.away`);
      await isRefused(sentence(file));
      assert.ok(!existsSync(file));
      for (const [how, spoil] of Object.entries(spoilt)) {
        spoil(file);
        await isRefused(`The key in ${file} cannot be ${how === 'unreadable' ? 'read' : 'used'}`);
        const { said } = await run('check', '--quiet');
        const advice =
          how === 'unreadable'
            ? 'Move that directory away'
            : `andromeda admin key new ${kind} --yes --config ${config}`;
        assert.ok(said.includes(advice), said);
        rmSync(file, { recursive: true });
      }
      // What it advises works.
      assert.equal((await run('admin', 'key', 'new', kind, '--yes')).status, 0);
      assert.equal((await run('check', '--quiet')).status, 0);
      renameSync(`${file}.away`, file);
    }

    const file = join(dataDir, serviceSecrets.host.file);
    // All of them at once.
    renameSync(join(dataDir, 'keys'), join(dataDir, 'keys.away'));
    await isRefused(sentence(file), ['check', 'doctor']);
    await endsWith78(sentence(file));
    renameSync(join(dataDir, 'keys.away'), join(dataDir, 'keys'));

    // A new host key is made where it is accepted, and that is in the audit trail.
    const before = readFileSync(file, 'utf8');
    renameSync(file, `${file}.away`);
    writeFileSync(file, '');
    await endsWith78(`The key in ${file} cannot be used`);
    rmSync(file);
    const asked = await run('admin', 'key', 'new', 'host');
    assert.equal(asked.status, 1);
    assert.ok(
      asked.said.includes(`To accept a new one: andromeda admin key new host --yes --config ${config}`),
      asked.said,
    );
    assert.ok(!existsSync(file));
    const made = await run('admin', 'key', 'new', 'host', '--yes');
    assert.deepEqual([made.status, made.said], [0, `${file} is made. Start the service.\n`]);
    assert.notEqual(readFileSync(file, 'utf8'), before);
    const database = new Database(join(dataDir, 'andromeda.db'), { readonly: true });
    const entry = database
      .prepare(
        "select target, details from audit_entries where operation = 'newKey' order by seq desc limit 1",
      )
      .all();
    database.close();
    assert.deepEqual(entry, [{ target: 'host', details: 'the one before was missing' }]);
    await using _ = await startApp({ config: readConfig(config), log: createLogger('silent') });
  },
);

testOnFile(
  'the key of the built-in sign-in is missed where it was used, and not where the issuer is another',
  async () => {
    await using opened = await openTestStore();
    const { store, dataDir } = opened;
    for (const kind of ['host', 'issuer', 'host'] as const) await noteKey(store, kind, 'an ID');
    await store.close();
    const missing = (kinds: Parameters<typeof listMissingKeys>[1]) =>
      listMissingKeys(dataDir, kinds, { unchanged: true }).map(missingKeyText);
    const [text = ''] = missing(['issuer', 'client']);
    assert.ok(
      text.startsWith(`${sentence(join(dataDir, 'issuer-keys.json'))}everybody would have to sign in`),
    );
    assert.match(text, /To accept a new one: andromeda admin key new issuer --yes$/);
    assert.deepEqual(missing(['client', 'audit']), []);
  },
);

const missing = ['/usr/bin/python3', '/usr/bin/systemd-notify'].filter((path) => !existsSync(path));
const skip = missing.length > 0 && `not installed: ${missing.join(', ')}`;

/** Stands for systemd: prints what it is sent, and closes the descriptors that come with it, for which a sender waits. */
const receiver = `
import os, socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
    s.bind(sys.argv[1])
    print("listening", flush=True)
    while True:
        data, fds, _, _ = socket.recv_fds(s, 4096, 4)
        for fd in fds: os.close(fd)
        print(data.decode(), flush=True)
`;

async function startReceiver(t: TestContext) {
  const directory = temporaryDirectory();
  t.after(() => directory[Symbol.dispose]());
  const socket = join(directory.path, 'notify');
  const child = spawn('/usr/bin/python3', ['-c', receiver, socket], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  const text = heard(child.stdout);
  const lines = () =>
    text()
      .split('\n')
      .filter((line) => /^[A-Z]+=/.test(line) && line !== 'BARRIER=1');
  await becomes(() => text().includes('listening'), true);
  return { socket, lines };
}

test('systemd is notified that the service is ready when it serves, that it is alive, and that it stops', {
  skip,
}, async (t) => {
  const { socket, lines } = await startReceiver(t);
  using directory = temporaryDirectory();
  const { file, platform, settings, write } = await writeSettings(directory.path);
  write({ gateway: { ...settings.gateway, processes: 0 } });
  const env = { ...process.env, NOTIFY_SOCKET: socket, WATCHDOG_USEC: '1500000' };
  await using service = serve(file, env);
  const heard = (count: number) =>
    eventually(
      async () => lines(),
      (now) => now.length >= count,
    );
  const [first, ...others] = await heard(3);
  assert.equal(first, 'READY=1');
  assert.deepEqual(new Set(others), new Set(['WATCHDOG=1']));
  assert.equal((await fetch(`http://127.0.0.1:${platform}/readyz`)).status, 200);

  // An event loop that does not turn is not said to be alive.
  service.child.kill('SIGSTOP');
  let before = 0;
  const isQuiet = async () => {
    before = lines().length;
    await sleep(2_000);
    return lines().length === before;
  };
  // What was on its way by then may come late.
  await eventually(isQuiet, Boolean);
  service.child.kill('SIGCONT');
  await heard(before + 1);

  assert.equal(await service.stop(), 0, service.log());
  await becomes(() => lines().includes('STOPPING=1'), true);
  for (const line of service.log().split('\n').filter(Boolean)) JSON.parse(line);
  assert.equal(service.events('serve.stopped').length, 1);
});

test('a check that hangs is not fed to the watchdog, and one that fails is', async () => {
  let fed = 0;
  let check = () => Promise.reject(new Error('the disk is full'));
  const timer = feedWatchdog(
    () => fed++,
    () => check(),
    10,
  );
  await becomes(() => fed > 2, true);
  const hanging = Promise.withResolvers<never>();
  check = () => hanging.promise;
  await sleep(50);
  const before = fed;
  await sleep(200);
  assert.equal(fed, before);
  hanging.reject(new Error('at last'));
  await becomes(() => fed > before, true);
  clearInterval(timer);
});

test('the first sign of life does not wait for the interval to pass', async () => {
  const fed = Promise.withResolvers<void>();
  const timer = feedWatchdog(fed.resolve, async () => {}, 3_600_000);
  await fed.promise;
  clearInterval(timer);
});

test('without a NOTIFY_SOCKET nothing is started; where it cannot be notified, the log says so once', async (t) => {
  await using opened = await openTestStore();
  const lines: string[] = [];
  const log = createLogger('info', (line) => lines.push(line));
  startSupervision(() => opened.store, log, {}).stopping();
  const env = { PATH: '/nowhere', NOTIFY_SOCKET: '/nowhere', WATCHDOG_USEC: '60000' };
  const supervision = startSupervision(() => opened.store, log, env);
  t.after(() => supervision.stopping());
  await becomes(() => lines.length > 0, true);
  await sleep(300);
  assert.equal(lines.length, 1);
  assert.match(
    lines[0] ?? '',
    /"event":"serve\.notify\.failed".*systemd cannot be told that the service is alive: systemd-notify ended with status/,
  );
});
