/** A gateway process may do next to nothing: an account of its own, no capabilities, no new privileges. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { join } from 'node:path';
import { becomes } from '../../support/app.ts';
import { startDemo } from '../../support/demo.ts';
import { temporaryDirectory } from '../../support/directory.ts';
import { firstOutput, test, whyNot } from '../lab.ts';
import { openProcessLab } from './lab.ts';

const account = 'nobody';
const drop = ['--reuid=65534', '--regid=65534', '--clear-groups', '--'];
const readable =
  whyNot === false &&
  spawnSync('setpriv', [...drop, process.execPath, 'src/main.ts', '--version']).status === 0;

test('as another account: it holds no rights and no key where others see it, and sessions survive the service all the same', async (t) => {
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

test('nothing of the service is open in it: no database, no output, and no code of either is loaded', async () => {
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

test('started as root without an account for it, the demonstration’s gateway has a number of its own, which opens no key, no database and no memory of the service', async (t) => {
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

test('two installations of root without an account have different numbers, and each keeps its own with its processes', async () => {
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

test('a program below a directory that is closed to others runs as the other account, hand-over included; one that is closed itself does not', async () => {
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

test('a service that is root and has no account for the gateway, or no setpriv, refuses to start in words', async () => {
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
