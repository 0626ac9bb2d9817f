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
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { missingForBundle } from '../../scripts/build/bundle.ts';
import { alpha, eventually, physics } from '../support/app.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { startTestIssuer } from '../support/issuer.ts';
import { freePorts } from '../support/ports.ts';
import { keygen } from '../support/ssh-keys.ts';
import { createCleanRoot, noCleanRoot } from './clean-root.ts';

const root = join(import.meta.dirname, '../..');
const missing = missingForBundle(root);
const skip = missing.length > 0 ? `the build needs ${missing.join(', ')}` : false;
const inCleanRoot = skip || noCleanRoot;
const directory = temporaryDirectory();
after(() => directory[Symbol.dispose]());
const executable = join(directory.path, 'andromeda');

const build = (out: string) =>
  promisify(execFile)(process.execPath, [join(root, 'scripts/build/main.ts'), '--out', out]);
before(async () => {
  if (!skip) await build(executable);
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
const operator = { email: 'ada@physics.example', name: 'Ada', staff: ['staff.operate'] };
const good = /^andromeda \S+\nnode 24\.\S+\nopenssl \S+\nsqlite 3\.\S+\nfast SSH ciphers loaded\n$/;

test('version prints program, Node, SQLite and OpenSSL versions and whether the fast ciphers are loaded', {
  skip,
}, () => {
  const { stdout, stderr } = version(fresh('version'));
  assert.match(stdout, good);
  assert.equal(stderr, '', 'V8 takes what was compiled for it, and NODE_OPTIONS do not concern it');
  const checkout = spawnSync(join(root, 'scripts/andromeda'), ['version'], { encoding: 'utf8' });
  assert.equal(stdout, checkout.stdout);
});

test('two builds have the same bytes', { skip }, async () => {
  const second = join(directory.path, 'second');
  await build(second);
  assert.ok(readFileSync(executable).equals(readFileSync(second)));
});

test('native addons are unpacked once, privately, and never loaded unverified', { skip }, async (t) => {
  const cache = fresh('cache');
  const addons = join(cache, 'andromeda/addons');

  await t.test('several processes may start at once', async () => {
    const run = promisify(execFile);
    const runs = Array.from({ length: 6 }, () =>
      run(executable, ['version'], { env: { XDG_CACHE_HOME: cache } }),
    );
    for (const { stdout } of await Promise.all(runs)) assert.match(stdout, good);
    assert.equal(readdirSync(addons).length, 2, 'nothing is left behind');
    assert.equal(statSync(addons).mode & 0o777, 0o700);
  });

  const [sqlite = ''] = readdirSync(addons).filter((name) => name.includes('sqlite'));
  const file = join(addons, sqlite);
  await t.test('a second start writes nothing', () => {
    const { ino, mtimeMs } = statSync(file);
    assert.match(version(cache).stdout, good);
    assert.deepEqual({ ino, mtimeMs }, { ino: statSync(file).ino, mtimeMs: statSync(file).mtimeMs });
  });
  await t.test('a changed file is replaced', () => {
    const content = readFileSync(file);
    const changed = Buffer.from(content);
    changed.writeUInt8(changed.readUInt8(content.length - 1) ^ 1, content.length - 1);
    writeFileSync(file, changed);
    assert.match(version(cache).stdout, good);
    assert.ok(readFileSync(file).equals(content));
  });
  await t.test('one that others may write to is replaced', () => {
    chmodSync(file, 0o666);
    assert.match(version(cache).stdout, good);
    assert.equal(statSync(file).mode & 0o777, 0o600);
  });
  await t.test('a directory that others may write to is not used', () => {
    const open = fresh('open');
    mkdirSync(join(open, 'andromeda'));
    chmodSync(join(open, 'andromeda'), 0o777);
    assert.match(version(open).stdout, good);
    assert.deepEqual(readdirSync(join(open, 'andromeda')), []);
  });
  await t.test('nor one that is a link to another', () => {
    const linked = fresh('linked');
    symlinkSync(fresh('elsewhere'), join(linked, 'andromeda'));
    assert.match(version(linked).stdout, good);
    assert.deepEqual(readdirSync(fresh('elsewhere')), []);
  });
});

test('it runs on a clean system with no Node installed', { skip: inCleanRoot }, async (t) => {
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
    await t.test(name, async () => {
      const { stdout, stderr } = await clean(name.replaceAll('/', '')).run(how, 'version');
      assert.match(stdout, good);
      assert.equal(stderr, '');
    });
  }
  await t.test('and says what to do where no directory can hold its native code', async () => {
    const { run } = clean('nowhere');
    const nowhere = { uid: 1000, disk: 'ro', tmp: noexec, shm: noexec } as const;
    const sentence =
      /No directory can hold this program's native code\. Set XDG_CACHE_HOME .*\/tmp\/andromeda-1000\/addons: it is mounted noexec/;
    assert.match((await run(nowhere, 'version')).stdout, sentence);
    const served = await run(nowhere, 'serve', '--demo', '--data', '/tmp/data');
    assert.match(served.stderr, sentence);
    assert.equal(served.status, 1);
  });
});

test('serve, call, auth and admin work from it, and people log in and copy files', {
  skip: inCleanRoot,
}, async (t) => {
  const path = fresh('service');
  // Below /home, which the login node's sessions see another of.
  const clean = createCleanRoot(path, executable, 'home/bin');
  await using issuer = await startTestIssuer(Date.now);
  const [platform = 0, business = 0, gateway = 0] = await freePorts(3);
  const at = (port: number) => ({ listen: `127.0.0.1:${port}`, url: `http://127.0.0.1:${port}` });
  const config = {
    dataDir: './data',
    platform: at(platform),
    business: at(business),
    gateway: { listen: `127.0.0.1:${gateway}` },
    identity: { issuer: issuer.url },
    sync: { intervalSeconds: 1 },
    seed: './lab.yaml',
  };
  writeFileSync(join(path, 'srv/andromeda.yaml'), JSON.stringify(config));
  writeFileSync(
    join(path, 'srv/lab.yaml'),
    JSON.stringify({ ...physics, users: [...(physics.users ?? []), operator] }),
  );
  const served = clean.start({ uid: 0 }, 'serve', '--config', '/srv/andromeda.yaml');
  const exited = new Promise((done) => served.once('exit', done));
  t.after(() => served.kill('SIGKILL'));
  let log = '';
  for (const stream of [served.stdout, served.stderr])
    stream?.on('data', (part) => {
      log += part;
    });
  await eventually(
    async () => log,
    (text) => text.includes('serve.ready'),
    15_000,
  );
  assert.match(log, /fastCiphers\W+true/);

  const session = {
    platformUrl: `http://127.0.0.1:${platform}`,
    businessUrl: `http://127.0.0.1:${business}`,
    issuer: issuer.url,
    clientId: 'andromeda-cli',
    accessToken: await issuer.token('ada'),
    user: { id: 'ada', email: 'ada@physics.example', name: 'Ada' },
  };
  const state = join(path, 'root/.local/state/andromeda');
  mkdirSync(state, { recursive: true });
  const profile = { platformUrl: session.platformUrl, sessions: { [session.platformUrl]: session } };
  writeFileSync(join(state, 'default.json'), JSON.stringify(profile));
  const cli = async (...args: string[]) => {
    const { status, stdout, stderr } = await clean.run({ uid: 0 }, ...args);
    assert.equal(status, 0, `${args.join(' ')}: ${stderr}`);
    return stdout;
  };
  const me = JSON.parse(await cli('call', 'business', 'GET', '/me'));
  assert.equal(me.user.primary_email, 'ada@physics.example');
  assert.match(await cli('auth', 'status'), /ada@physics\.example/);
  assert.match(await cli('admin', 'cluster', 'list'), new RegExp(alpha));

  const key = keygen('-t', 'ed25519');
  const identity = join(directory.path, 'key');
  writeFileSync(identity, key.privateKey, { mode: 0o600 });
  const headers = ['-H', 'Idempotency-Key: 1', '-H', 'Audit-Reason: test'];
  await cli(
    'call',
    ...headers,
    '-d',
    JSON.stringify({ public_key: key.publicKey }),
    'business',
    'POST',
    '/me/ssh-keys',
  );
  const access = async () =>
    JSON.parse(
      await cli(
        'call',
        'platform',
        'GET',
        `/clusters/${alpha}/ssh-access?organizationId=${me.memberships[0].org_id}`,
      ),
    );
  await eventually(access, (body) => body.ready === true, 10_000);

  const options = ['IdentitiesOnly=yes', 'IdentityAgent=none', 'BatchMode=yes', 'LogLevel=ERROR']
    .concat('StrictHostKeyChecking=no', 'UserKnownHostsFile=/dev/null')
    .flatMap((option) => ['-o', option]);
  const person = (program: string, args: string[], input?: string) =>
    new Promise<{ status: number | null; out: string; err: string }>((done) => {
      const own = ['-F', 'none', '-i', identity, ...options];
      const child = spawn(program, [...own, ...args], { timeout: 15_000 });
      let [out, err] = ['', ''];
      child.stdout.on('data', (part) => {
        out += part;
      });
      child.stderr.on('data', (part) => {
        err += part;
      });
      child.once('close', (status) => done({ status, out, err }));
      child.stdin.end(input);
    });
  const target = `${alpha}.ada@127.0.0.1`;
  await t.test('ssh', async () => {
    const ended = await person('ssh', ['-p', `${gateway}`, target, 'id -u; echo $HOME; exit 3']);
    assert.deepEqual(ended, { status: 3, out: '20000\n/home/ada\n', err: '' });
  });
  await t.test('ssh with a terminal', async () => {
    const { out, err } = await person('ssh', [
      '-tt',
      '-p',
      `${gateway}`,
      target,
      'stty size; cat < /dev/null',
    ]);
    assert.match(out, /^\d+ \d+/, err);
  });
  await t.test('scp and sftp, by the sftp server that is inside', async () => {
    const file = join(directory.path, 'file');
    writeFileSync(file, Buffer.alloc(3_000_000, 'andromeda'));
    const up = await person('scp', ['-P', `${gateway}`, file, `${target}:copy`]);
    assert.equal(up.status, 0, up.err);
    const down = await person('sftp', ['-P', `${gateway}`, '-b', '-', target], `get copy ${file}.back\n`);
    assert.equal(down.status, 0, down.err);
    assert.ok(readFileSync(file).equals(readFileSync(`${file}.back`)));
  });
  served.kill('SIGTERM');
  assert.equal(await exited, 0, log);
  assert.doesNotMatch(log, /refused|login_node_stderr|without_namespace/);
});
