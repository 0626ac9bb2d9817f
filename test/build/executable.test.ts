/** The executable that `npm run build` makes, where nothing of the checkout and no Node is. */
import assert from 'node:assert/strict';
import { execFile, spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { missingForBundle } from '../../scripts/build/bundle.ts';
import { startEnvironment } from '../cli/issuer.ts';
import { noKeyring, startKeyring } from '../cli/keyring.ts';
import { alpha } from '../support/app.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { placeExecutable } from '../support/executable.ts';
import { finished } from '../support/heard.ts';
import { limit } from '../support/limit.ts';
import { createCleanRoot, noCleanRoot } from './clean-root.ts';
import { requireLicences } from './licences.ts';
import { serveFrom } from './served-root.ts';

const root = join(import.meta.dirname, '../..');
const missing = missingForBundle(root);
const skip = missing.length > 0 ? `the build needs ${missing.join(', ')}` : false;
const inCleanRoot = skip || noCleanRoot;
const directory = temporaryDirectory();
after(() => directory[Symbol.dispose]());
const executable = join(directory.path, 'andromeda');

before(async () => {
  if (!skip) await placeExecutable(executable);
});

function fresh(name: string): string {
  const path = join(directory.path, name);
  mkdirSync(path, { recursive: true, mode: 0o700 });
  return path;
}

const version = (cache: string) =>
  spawnSync(executable, ['version'], {
    env: { XDG_CACHE_HOME: cache, ANDROMEDA_DEBUG: '1', NODE_OPTIONS: '--require /nowhere.js' },
    encoding: 'utf8',
  });
const good =
  /^andromeda \S+\ncommit [0-9a-f]{12}(?:-modified)?\nbuilt \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\nnode 24\.\S+\nopenssl \S+\nsqlite 3\.\S+\nfast SSH ciphers loaded\n$/;

test('version prints program, Node, SQLite and OpenSSL versions and whether the fast ciphers are loaded', {
  skip,
}, () => {
  const { stdout, stderr } = version(fresh('version'));
  assert.match(stdout, good);
  assert.equal(stderr, '', 'V8 takes what was compiled for it, and NODE_OPTIONS do not concern it');
  const checkout = spawnSync(join(root, 'scripts/andromeda'), ['version'], { encoding: 'utf8' });
  const parts = (text: string) => text.split('\n').filter((line) => !/^(?:commit|built) /.test(line));
  assert.deepEqual(parts(stdout), parts(checkout.stdout));
  const commit = spawnSync('git', ['rev-parse', 'HEAD'], { cwd: root, encoding: 'utf8' }).stdout.trim();
  assert.ok(commit.startsWith(/^commit ([0-9a-f]+)/m.exec(stdout)?.[1] ?? 'none'));
});

test('it carries the licences of all that it is made of', { skip }, () => {
  const run = spawnSync(executable, ['version', '--licences'], {
    encoding: 'utf8',
    env: { HOME: '/nowhere' },
    maxBuffer: 2 ** 22,
  });
  requireLicences(run.stdout, '{api,cli,domain,gateway,lib,service,store,sync}');
  requireLicences(run.stdout, 'console/app');
  for (const part of [/^Node\.js, which runs the program$/m, /^@napi-rs\/keyring-linux-/m, /^pgpass 1/m])
    assert.match(run.stdout, part);
});

test('native addons are unpacked once, privately, and never loaded unverified', { skip }, async () => {
  const cache = fresh('cache');
  const addons = join(cache, 'andromeda/addons');

  // Several processes may start at once.
  const run = promisify(execFile);
  const runs = Array.from({ length: 6 }, () =>
    run(executable, ['version'], { env: { XDG_CACHE_HOME: cache } }),
  );
  for (const { stdout } of await Promise.all(runs)) assert.match(stdout, good);
  assert.equal(readdirSync(addons).length, 2, 'nothing is left behind');
  assert.equal(statSync(addons).mode & 0o777, 0o700);

  const [sqlite = ''] = readdirSync(addons).filter((name) => name.includes('sqlite'));
  const file = join(addons, sqlite);
  // A second start writes nothing.
  const { ino, mtimeMs } = statSync(file);
  assert.match(version(cache).stdout, good);
  assert.deepEqual({ ino, mtimeMs }, { ino: statSync(file).ino, mtimeMs: statSync(file).mtimeMs });
  // A changed file is replaced.
  const content = readFileSync(file);
  const changed = Buffer.from(content);
  changed.writeUInt8(changed.readUInt8(content.length - 1) ^ 1, content.length - 1);
  writeFileSync(file, changed);
  assert.match(version(cache).stdout, good);
  assert.ok(readFileSync(file).equals(content));
  // One that others may write to is replaced.
  chmodSync(file, 0o666);
  assert.match(version(cache).stdout, good);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  // A directory that others may write to is not used.
  const open = fresh('open');
  mkdirSync(join(open, 'andromeda'));
  chmodSync(join(open, 'andromeda'), 0o777);
  assert.match(version(open).stdout, good);
  assert.deepEqual(readdirSync(join(open, 'andromeda')), []);
  // Nor one that is a link to another.
  const linked = fresh('linked');
  symlinkSync(fresh('elsewhere'), join(linked, 'andromeda'));
  assert.match(version(linked).stdout, good);
  assert.deepEqual(readdirSync(fresh('elsewhere')), []);
});

test('it runs on a clean system with no Node installed', { skip: inCleanRoot }, async () => {
  const clean = (name: string) => createCleanRoot(fresh(name), executable);
  const noexec = 'mode=1777,noexec';
  const ways = {
    'as root': { uid: 0 },
    'as an ordinary user': { uid: 1000 },
    'with a read-only home': { uid: 1000, home: 'read-only' },
    'with a read-only home and /tmp mounted noexec': { uid: 1000, home: 'read-only', tmp: noexec },
    'with all but /tmp read-only or noexec': { uid: 1000, disk: 'ro', shm: noexec },
  } as const;
  for (const [name, how] of Object.entries(ways)) {
    const { stdout, stderr } = await clean(name.replaceAll('/', '')).run(how, 'version');
    assert.match(stdout, good, name);
    assert.equal(stderr, '', name);
  }
  // And says what to do where no directory can hold its native code.
  const { run } = clean('nowhere');
  const nowhere = { uid: 1000, disk: 'ro', tmp: noexec, shm: noexec } as const;
  const sentence =
    /No directory can hold this program's native code\. Set XDG_CACHE_HOME .*\/tmp\/andromeda-1000\/addons: it is mounted noexec/;
  assert.match((await run(nowhere, 'version')).stdout, sentence);
  const served = await run(nowhere, 'serve', '--demo', '--data', '/tmp/data');
  assert.match(served.stderr, sentence);
  assert.equal(served.status, 1);
});

test('the session goes to the operating system’s credential store from it, too', {
  skip: skip || noKeyring,
}, async (t) => {
  const keyring = await startKeyring(t);
  const { url } = await startEnvironment(t);
  const home = fresh('home');
  const env = { HOME: home, ...keyring.env };
  const run = async (...args: string[]) => {
    const { stdout, stderr } = await promisify(execFile)(executable, args, { env, timeout: limit(30_000) });
    assert.equal(stderr, '');
    return stdout;
  };
  assert.match(await run('auth', 'login', '--url', url), /Signed in as Ada <ada@physics\.example>\n$/);
  assert.deepEqual(Object.keys(keyring.secrets()), [`default ${url}`]);
  const cached = readdirSync(join(home, '.cache/andromeda/addons'));
  assert.deepEqual(
    cached.map((name) => name.replace(/^[0-9a-f]{64}-/, '')),
    ['keyring.node'],
    'unpacked when it is needed, and nothing else is',
  );
  assert.match(await run('call', 'business', 'GET', '/me'), /ada@physics\.example/);

  // A store that does not answer leaves a thread behind, which must not hold up the end of this program either.
  const silent = createServer((socket) => t.after(() => socket.destroy()));
  await new Promise<void>((done) => silent.listen(join(home, 'bus'), done));
  t.after(() => silent.close());
  const hung = { ...env, DBUS_SESSION_BUS_ADDRESS: `unix:path=${home}/bus` };
  const child = spawn(executable, ['call', 'business', 'GET', '/me'], { env: hung, timeout: limit(30_000) });
  const { status, err } = await finished(child);
  assert.equal(status, 1);
  assert.match(err, /The credential store cannot be used: it did not answer within 4 seconds\. .*\n$/);
});

test('serve, call, auth and admin work from it, and people log in and copy files', {
  skip: inCleanRoot,
}, async () => {
  const path = fresh('service');
  // Below /home, which the login node's sessions see another of.
  const clean = createCleanRoot(path, executable, 'home/bin');
  await using service = await serveFrom(clean, path, { uid: 0 });
  const { cli, person, target, gateway } = service;
  assert.match(service.log(), /fastCiphers\W+true/);
  const page = await (await fetch(`${service.platformUrl}/download`)).text();
  assert.match(page, /<title>Download · Andromeda<\/title>/, 'letters beyond ASCII are whole');
  const me = JSON.parse(await cli('call', 'business', 'GET', '/me'));
  assert.equal(me.user.primary_email, 'ada@physics.example');
  assert.match(await cli('auth', 'status'), /ada@physics\.example/);
  assert.match(await cli('admin', 'cluster', 'list'), new RegExp(alpha));
  await service.registerKey();

  const ended = await person('ssh', ['-p', `${gateway}`, target, 'id -u; echo $HOME; exit 3']);
  assert.deepEqual(ended, { status: 3, out: '20000\n/home/ada\n', err: '' });
  // With a terminal.
  const show = 'stty size; cat < /dev/null';
  const { out, err } = await person('ssh', ['-tt', '-p', `${gateway}`, target, show]);
  assert.match(out, /^\d+ \d+/, err);
  // Files over ssh, and a word from scp where there is no sftp-server.
  const file = join(directory.path, 'file');
  writeFileSync(file, Buffer.alloc(3_000_000, 'andromeda'));
  const refused = await person('scp', ['-P', `${gateway}`, file, `${target}:copy`]);
  assert.match(refused.err, /There is no sftp-server here; try scp -O\./);
  const up = await person('ssh', ['-p', `${gateway}`, target, 'cat > copy'], readFileSync(file, 'utf8'));
  assert.equal(up.status, 0, up.err);
  const down = await person('ssh', ['-p', `${gateway}`, target, 'cat copy']);
  assert.ok(readFileSync(file, 'utf8') === down.out);
  // A backup while it serves, and the same installation from it.
  assert.match(await cli('backup', '/srv/backup', '--config', '/srv/andromeda.yaml'), /checked/);
  const running = await clean.run({ uid: 0 }, 'restore', '/srv/backup', '--config', '/srv/andromeda.yaml');
  assert.equal(running.status, 1);
  assert.match(running.stderr, /Andromeda serves from \/srv\/data\. Stop it first/);
  await cli('restore', '/srv/backup', '--data', '/srv/other');
  const key = 'keys/gateway_host_ed25519.pub';
  const [before, after] = ['data', 'other'].map((data) => readFileSync(join(path, 'srv', data, key), 'utf8'));
  assert.equal(after, before);
  assert.equal(await service.stop(), 0, service.log());
  assert.doesNotMatch(service.log(), /refused|unsafe|login_node_stderr|without_namespace/);
});

test('all of it works for an ordinary user, with a read-only home and /tmp mounted noexec', {
  skip: inCleanRoot,
}, async () => {
  const path = fresh('ordinary');
  const how = { uid: 1000, home: 'read-only', tmp: 'mode=1777,noexec' } as const;
  await using service = await serveFrom(createCleanRoot(path, executable), path, how);
  const { cli, person, target, gateway } = service;
  assert.match(await cli('auth', 'status'), /ada@physics\.example/);
  await service.registerKey();
  const ended = await person('ssh', ['-p', `${gateway}`, target, 'id -u; exit 3']);
  assert.deepEqual(ended, { status: 3, out: '1000\n', err: '' });
  const copied = await person('ssh', ['-p', `${gateway}`, target, 'cat > copy'], 'andromeda');
  assert.equal(copied.status, 0, copied.err);
  assert.match(await cli('backup', '/srv/backup', '--config', '/srv/andromeda.yaml'), /checked/);
  assert.equal(await service.stop(), 0, service.log());
});

test('in a plain chroot, sessions see what is in the chroot, and nothing of what is around it', {
  skip: inCleanRoot,
}, async () => {
  const path = fresh('chroot');
  const clean = createCleanRoot(path, executable);
  await using service = await serveFrom(clean, path, { uid: 0, plain: true });
  const { person, target, gateway } = service;
  await service.registerKey();
  const show = 'cd /; echo *; cd -P ..; echo *; cat /etc/passwd';
  const { out, err, status } = await person('ssh', ['-p', `${gateway}`, target, show]);
  assert.deepEqual([status, err], [0, '']);
  const [top, above, ...accounts] = out.split('\n');
  assert.equal(top, above);
  for (const name of readdirSync('/')) {
    if (!readdirSync(path).includes(name)) assert.ok(!top?.split(' ').includes(name), `${name} in ${top}`);
  }
  assert.ok(accounts.some((line) => line.startsWith('ada:x:20000:')));
  const copied = await person('ssh', ['-p', `${gateway}`, target, 'cat > copy'], 'andromeda');
  assert.equal(copied.status, 0, copied.err);
  assert.equal(await service.stop(), 0, service.log());
  assert.doesNotMatch(service.log(), /refused|login_node_stderr|without_namespace/);
});
