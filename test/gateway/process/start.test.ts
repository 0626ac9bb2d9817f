/** A start of the service with its gateway process: what fails, what is said of it, and how little the process may do. */
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  closeSync,
  constants,
  existsSync,
  globSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { parse, stringify } from 'yaml';
import { becomes, eventually } from '../../support/app.ts';
import { startDemo } from '../../support/demo.ts';
import { temporaryDirectory } from '../../support/directory.ts';
import { freePorts } from '../../support/ports.ts';
import { program } from '../../support/program.ts';
import { within } from '../../support/within.ts';
import { canConnect, finished, firstOutput, whyNot } from '../lab.ts';
import { isAlive, openProcessLab, type ProcessLab } from './lab.ts';

const noTmpfs = process.getuid?.() !== 0 && 'only root can mount a disk that is full';

/** Changes the settings of the lab's service. */
function configure(lab: ProcessLab, change: object): void {
  const file = join(lab.dir, 'andromeda.yaml');
  writeFileSync(file, stringify({ ...parse(readFileSync(file, 'utf8')), ...change }));
}

/** Another program that listens on the port. */
async function taken(port: number) {
  const other = createServer().listen(port, '127.0.0.1');
  await new Promise((resolve) => other.once('listening', resolve));
  return { [Symbol.dispose]: () => void other.close() };
}

describe('a start', { skip: whyNot }, () => {
  test('a start that fails for an API ends at once although its log is not read, and leaves no gateway', async () => {
    await using lab = await openProcessLab();
    const file = join(lab.dir, 'andromeda.yaml');
    const { platform } = parse(readFileSync(file, 'utf8'));
    using _other = await taken(Number(platform.listen.split(':')[1]));
    const fifo = join(lab.dir, 'log');
    execFileSync('mkfifo', [fifo]);
    const pipe = openSync(fifo, constants.O_RDWR | constants.O_NONBLOCK);
    assert.throws(() => {
      for (;;) writeSync(pipe, Buffer.alloc(4096));
    }, /EAGAIN/);
    const serve = spawn(program, ['serve', '--config', file], { stdio: ['ignore', 'ignore', pipe] });
    closeSync(pipe);
    using _killed = { [Symbol.dispose]: () => void serve.kill('SIGKILL') };
    const [status] = await within('the service to end', once(serve, 'exit'));
    assert.equal(status, 69);
    assert.deepEqual(lab.gateways(), []);
  });

  test('a new address that cannot be had: sessions and the rest go on, the fault is said, and it is tried again', async () => {
    await using lab = await openProcessLab();
    const first = await lab.serve();
    const open = await lab.open();
    await first.kill('SIGHUP');
    const [port = 0] = await freePorts(1);
    const other = await taken(port);
    configure(lab, { gateway: { listen: `127.0.0.1:${port}`, port } });
    const second = await lab.serve();
    assert.match((await second.ask<string | null>('fault')) ?? '', /EADDRINUSE/);
    assert.equal(await second.ask('count'), 1);
    other[Symbol.dispose]();
    await becomes(() => second.ask<string | null>('fault'), null);
    open.child.stdin?.end('still here');
    const { out } = await within('the session to end', open.ended);
    assert.equal(out, 'still here');
    await second.kill('SIGTERM');
  });

  test('a new address that cannot be had fails the start where there is no session', async () => {
    await using lab = await openProcessLab();
    await (await lab.serve()).kill('SIGHUP');
    const [port = 0] = await freePorts(1);
    using _other = await taken(port);
    configure(lab, { gateway: { listen: `127.0.0.1:${port}`, port } });
    await assert.rejects(lab.serve(), /SSH gateway cannot start: 127\.0\.0\.1:\d+ is in use/);
    await becomes(() => lab.gateways().filter(isAlive).length, 0);
  });

  test('on a full disk a gateway process that ends is replaced, and the service stops as ever', {
    skip: noTmpfs,
  }, async () => {
    await using lab = await openProcessLab();
    const disk = join(lab.dir, 'data');
    mkdirSync(disk);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=6m', 'tmpfs', disk]);
    try {
      const service = await lab.serve();
      const [gateway = 0] = lab.gateways();
      const filler = openSync(join(disk, 'filler'), 'w');
      assert.throws(() => {
        for (;;) writeSync(filler, Buffer.alloc(4096));
      }, /ENOSPC/);
      closeSync(filler);
      process.kill(gateway, 'SIGKILL');
      await becomes(() => service.events('gateway.started').length, 2);
      assert.equal((await lab.ssh(['echo in'])).out, 'in\n');
      assert.equal(service.events('gateway.process.fault').length, 1, 'it is said once');
      rmSync(join(disk, 'filler'));
      await lab.untilGateways((pids) => pids.length === 1 && pids[0] !== gateway);
      await service.kill('SIGTERM');
    } finally {
      execFileSync('umount', ['-l', disk]);
    }
  });

  test('a process from before that ends while the service starts is replaced', async () => {
    await using lab = await openProcessLab();
    const first = await lab.serve();
    const [gateway = 0] = lab.gateways();
    await first.kill('SIGKILL');
    // The service ends one that is silent, and learns of the end only when it waits for somebody to listen.
    process.kill(gateway, 'SIGSTOP');
    const second = await lab.serve();
    assert.notDeepEqual(lab.gateways(), [gateway]);
    assert.equal((await lab.ssh(['echo in'])).out, 'in\n');
    await second.kill('SIGTERM');
  });

  test('a process from before that gets no processor while the service starts keeps its sessions', async () => {
    await using lab = await openProcessLab();
    const first = await lab.serve();
    const open = await lab.open();
    const gateways = lab.gateways();
    await first.kill('SIGKILL');
    for (const pid of gateways) process.kill(pid, 'SIGSTOP');
    const starting = lab.serve();
    // From then on it waits for them.
    await becomes(() => canConnect(join(lab.dir, 'data/run/gateway.sock')), true);
    await sleep(3_000);
    for (const pid of gateways) process.kill(pid, 'SIGCONT');
    const second = await starting;
    assert.deepEqual(lab.gateways(), gateways);
    open.child.stdin?.end('still here');
    assert.equal((await within('the session to end', open.ended)).out, 'still here');
    await second.kill('SIGTERM');
  });

  test('the service is ready only when its gateway listens, and never where that cannot', async () => {
    await using lab = await openProcessLab();
    const file = join(lab.dir, 'andromeda.yaml');
    const { platform } = parse(readFileSync(file, 'utf8'));
    const readiness = async () => {
      const signal = AbortSignal.timeout(7_000);
      const answer = await fetch(`http://${platform.listen}/readyz`, { signal }).catch(() => undefined);
      const text = await answer?.text().catch(() => '');
      return answer && { status: answer.status, text };
    };
    using other = await taken(lab.port);
    const failing = lab.start(program, ['serve', '--config', file]);
    let isOver = false;
    // Its output is read meanwhile: a program may wait for the reader of its log.
    const failed = finished(failing).finally(() => {
      isOver = true;
    });
    const seen: unknown[] = [];
    const watching = (async () => {
      while (!isOver) {
        seen.push((await readiness())?.status);
        await sleep(50);
      }
    })();
    const { status, signal, err } = await within('the start to fail', failed).finally(() => {
      isOver = true;
    });
    await watching;
    assert.deepEqual([status, signal], [69, null], err);
    assert.match(err, /"event":"serve\.failed"/);
    assert.equal(seen.includes(200), false);
    const told = err.split('\n').filter((line) => line.includes('"http.unready"'));
    assert.ok(told.length <= 3, `the reason is logged once in a while, not ${told.length} times`);
    assert.doesNotMatch(told.join(), /"stack"/);
    other[Symbol.dispose]();
    const serving = lab.start(program, ['serve', '--config', file]);
    const ended = finished(serving);
    await eventually(readiness, (answer) => answer?.status === 200);
    const [gateway = 0] = lab.gateways();
    assert.equal(await canConnect(lab.port), true);
    process.kill(gateway, 'SIGSTOP');
    const halted = await eventually(readiness, (answer) => answer?.status === 503);
    assert.match(
      halted?.text ?? '',
      new RegExp(`The SSH gateway does not serve: process ${gateway} does not answer`),
    );
    process.kill(gateway, 'SIGCONT');
    await eventually(readiness, (answer) => answer?.status === 200);
    process.kill(gateway, 'SIGKILL');
    const unready = await eventually(readiness, (answer) => answer?.status === 503);
    assert.match(unready?.text ?? '', /The SSH gateway does not serve: /);
    await eventually(readiness, (answer) => answer?.status === 200);
    serving.kill('SIGTERM');
    assert.equal((await within('the service to stop', ended)).status, 0);
  });
});

const account = 'nobody';
const drop = ['--reuid=65534', '--regid=65534', '--clear-groups', '--'];
const readable =
  whyNot === false &&
  spawnSync('setpriv', [...drop, process.execPath, 'src/main.ts', '--version']).status === 0;

test('as another account: it holds no rights and no key where others see it, and sessions survive the service all the same', {
  skip: whyNot,
}, async (t) => {
  if (!readable) return t.skip('nobody cannot read this checkout');
  // The lab's directory is 0700 and root's: the way to the socket does not lead through it.
  await using lab = await openProcessLab({ account });
  const first = await lab.serve();
  const [pid = 0] = lab.gateways();
  const field = statusOf(pid);
  assert.deepEqual(['Uid', 'Gid'].map(field), Array(2).fill('65534\t65534\t65534\t65534'));
  assert.deepEqual([field('Groups'), field('NoNewPrivs')], ['', '1']);
  for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'])
    assert.match(field(set) ?? '', /^0+$/);
  const key = readFileSync(join(lab.dir, 'host'), 'utf8').split('\n')[1] ?? '';
  const shown = ['cmdline', 'environ'].map((name) => readFileSync(`/proc/${pid}/${name}`, 'utf8'));
  assert.ok(shown.every((text) => !text.includes(key)));
  assert.equal((await lab.ssh(['echo in'])).out, 'in\n');
  await first.kill('SIGKILL');
  const second = await lab.serve();
  assert.deepEqual(lab.gateways(), [pid]);
  assert.equal((await lab.ssh(['echo in'])).out, 'in\n');
  await second.kill('SIGTERM');
});

test('nothing of the service is open in it: no database, no output, and no code of either is loaded', {
  skip: whyNot,
}, async () => {
  await using lab = await openProcessLab();
  const service = await lab.serve();
  const [pid = 0] = lab.gateways();
  const open = readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/${pid}/fd/${fd}`)];
    } catch {
      return [];
    }
  });
  assert.deepEqual(
    open.filter((path) => path.startsWith(lab.dir)),
    [join(lab.dir, 'data/run')],
  );
  const output = readlinkSync(`/proc/${service.pid}/fd/2`);
  assert.ok(!open.includes(output), 'who waits for the end of the service does not wait for it');
  const maps = readFileSync(`/proc/${pid}/maps`, 'utf8');
  assert.match(maps, /sshcrypto\.node/);
  assert.doesNotMatch(maps, /better-sqlite3/);
  await service.kill('SIGTERM');
});

/** What a process says of itself in /proc/PID/status. */
function statusOf(pid: number) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return (name: string) => new RegExp(`^${name}:[\\t ]*(.*)$`, 'm').exec(status)?.[1]?.trim();
}

/** Which of the paths an account can open, tried in its name. */
function opens(uid: string, paths: readonly string[]): string[] {
  const script = 'for path; do head -c1 "$path" > /dev/null 2>&1 && echo "$path"; done; true';
  const as = [`--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', '--', 'sh', '-c', script, 'sh'];
  return spawnSync('setpriv', [...as, ...paths], { encoding: 'utf8' })
    .stdout.split('\n')
    .filter(Boolean);
}

test('started as root without an account for it, the demonstration’s gateway has a number of its own, which opens no key, no database and no memory of the service', {
  skip: whyNot,
}, async (t) => {
  if (!existsSync('/usr/bin/setpriv')) return t.skip('setpriv is not installed');
  using directory = temporaryDirectory();
  // Everyone may pass, so that it is the files themselves that are closed.
  chmodSync(directory.path, 0o755);
  const data = join(directory.path, 'data');
  await using _demo = await startDemo(data);
  const known = JSON.parse(readFileSync(join(data, 'run/gateways.json'), 'utf8'));
  const [{ pid }] = known.processes;
  const gateway = statusOf(pid);
  const [uid = ''] = gateway('Uid')?.split('\t') ?? [];
  assert.ok(Number(uid) >= 60_578 && Number(uid) < 61_184, uid);
  assert.deepEqual([gateway('Uid'), gateway('Gid')], Array(2).fill(Array(4).fill(uid).join('\t')));
  assert.deepEqual([gateway('NoNewPrivs'), gateway('CapBnd'), gateway('Groups')], ['1', '0'.repeat(16), '']);
  const service = Number(gateway('PPid'));
  assert.equal(statusOf(service)('Uid'), '0\t0\t0\t0');
  const files = globSync('{andromeda.db*,*.json,keys/*,run/gateways.json}', { cwd: data });
  assert.ok(files.includes('andromeda.db') && files.some((file) => file.startsWith('keys/')), files.join());
  const memory = ['mem', 'environ', 'maps'].map((name) => `/proc/${service}/${name}`);
  const [first = ''] = files;
  const paths = [...files.map((file) => join(data, file)), ...memory];
  assert.deepEqual(opens('0', [join(data, first)]), [join(data, first)]);
  assert.deepEqual(opens(uid, ['/etc/passwd', ...paths]), ['/etc/passwd']);
});

test('two installations of root without an account have different numbers, and each keeps its own with its processes', {
  skip: whyNot,
}, async () => {
  await using lab = await openProcessLab();
  await using other = await openProcessLab();
  const uidOf = ([pid = 0]: number[]) => Number(statusOf(pid)('Uid')?.split('\t')[0]);
  const socket = () => statSync(join(lab.dir, 'data/run/gateway.sock'));
  const [first, beside] = [await lab.serve(), await other.serve()];
  const [gateways, uid] = [lab.gateways(), uidOf(lab.gateways())];
  assert.notEqual(uidOf(other.gateways()), uid);
  assert.deepEqual([socket().uid, socket().mode & 0o777], [uid, 0o600]);
  await beside.kill('SIGTERM');
  await first.kill('SIGKILL');
  const second = await lab.serve();
  assert.deepEqual(lab.gateways(), gateways);
  assert.equal((await lab.ssh(['echo in'])).out, 'in\n');
  await second.kill('SIGTERM');
  const drop = [`--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', '--'];
  const taking = lab.start('setpriv', [...drop, 'sh', '-c', 'echo up; cat']);
  await firstOutput(taking);
  const third = await lab.serve();
  assert.notEqual(uidOf(lab.gateways()), uid, 'a process that is not ours has the number');
  assert.equal((await lab.ssh(['echo in'])).out, 'in\n');
  await third.kill('SIGTERM');
});

test('a program below a directory that is closed to others runs as the other account, hand-over included; one that is closed itself does not', {
  skip: whyNot,
}, async () => {
  using directory = temporaryDirectory();
  const closed = join(directory.path, 'closed');
  mkdirSync(closed, { mode: 0o700 });
  const root = join(import.meta.dirname, '../../..');
  const copy = join(closed, 'andromeda');
  mkdirSync(copy);
  for (const part of ['src', 'test', 'openapi', 'scripts', 'package.json'])
    assert.equal(spawnSync('cp', ['-a', join(root, part), copy]).status, 0);
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  const gateway = { processes: 2, account };
  await using lab = await openProcessLab(gateway, {
    service: join(copy, 'test/gateway/process/service.ts'),
  });
  const service = await lab.serve();
  await becomes(() => lab.gateways().length, 2);
  for (const pid of lab.gateways()) {
    assert.equal(statusOf(pid)('Uid'), '65534\t65534\t65534\t65534');
    assert.match(readFileSync(`/proc/${pid}/cmdline`, 'utf8'), /\/proc\/self\/fd\/5\/src\/main\.ts/);
  }
  assert.equal((await lab.ssh(['echo in'])).out, 'in\n');
  await service.kill('SIGTERM');
  chmodSync(copy, 0o700);
  await assert.rejects(lab.serve(), /runs as nobody, which may not read the program in .*umask 022/);
});

test('a service that is root and has no account for the gateway, or no setpriv, refuses to start in words', {
  skip: whyNot,
}, async () => {
  const hide = 'mount --bind /dev/null /usr/bin/setpriv; exec "$@"';
  const without = ['unshare', '--mount', 'sh', '-ec', hide, 'sh'];
  for (const [gateway, as, words] of [
    [{ account: 'root' }, [], /gateway\.account is root, which is root or in its group/],
    [
      { account: 'nobody-by-this-name' },
      [],
      /gateway\.account is nobody-.*, and this host has no such account/,
    ],
    [{}, without, /there is no setpriv here.*Install util-linux/],
  ] as const) {
    await using lab = await openProcessLab(gateway, { as: [...as] });
    await assert.rejects(lab.serve(), words);
    assert.deepEqual(lab.gateways(), []);
  }
});
