/** From an empty home to a shell on a cluster, with the client that the service hands out, in each way that it offers. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { startConsoleApp } from '../console/harness.ts';
import { answerDevice } from '../identity/issuer/harness.ts';
import { eventually } from '../support/app.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { fails, finished, heard } from '../support/heard.ts';
import { limit } from '../support/limit.ts';
import { freePorts, listening } from '../support/ports.ts';
import { offerRelease } from './release.ts';

const [port = 0] = await freePorts(1);
const url = `http://127.0.0.1:${port}`;
const service = await startConsoleApp({ config: { platform: { listen: `127.0.0.1:${port}` } } });
after(() => service[Symbol.asyncDispose]());

const systemNode = existsSync('/usr/bin/node') ? '/usr/bin/node' : undefined;
const withoutSsh = existsSync('/usr/bin/ssh') ? false : 'the OpenSSH client is not installed';
const withoutNpm = existsSync('/usr/bin/npm') ? false : 'npm is not installed';

interface Said {
  status: number | null;
  stdout: string;
  stderr: string;
}

/** Somebody's machine: a home with a space in its name, and nothing in it. */
function createHome(node: string | undefined, name = 'Ada Lovelace') {
  const directory = temporaryDirectory();
  const home = join(directory.path, name);
  const tools = join(directory.path, 'tools');
  for (const path of [home, tools]) mkdirSync(path);
  if (node) symlinkSync(node, join(tools, 'node'));
  const names = 'sh env curl wget uname grep cut mkdir mktemp mv rm ln find chmod sha256sum sleep cat';
  for (const name of [...names.split(' '), 'ssh', 'ssh-add', 'ssh-keygen', 'ssh-keyscan'])
    for (const folder of ['/usr/bin', '/bin'])
      if (existsSync(join(folder, name)) && !existsSync(join(tools, name)))
        symlinkSync(join(folder, name), join(tools, name));
  const env: Record<string, string> = {
    HOME: home,
    PATH: tools,
    ANDROMEDA_CREDENTIAL_STORE: 'file',
    npm_config_cache: join(home, '.npm'),
    npm_config_prefix: join(home, 'npm'),
    npm_config_update_notifier: 'false',
    npm_config_fund: 'false',
    npm_config_audit: 'false',
  };
  const start = (command: string, args: string[], more: Record<string, string> = {}) =>
    spawn(command, args, { env: { ...env, ...more }, cwd: home, timeout: limit(120_000) });
  const run = async (command: string, args: string[], more: Record<string, string> = {}): Promise<Said> => {
    const child = start(command, args, more);
    child.stdin.end();
    const { status, out: stdout, err: stderr } = await finished(child);
    return { status, stdout, stderr };
  };
  const install = (script: string, more?: Record<string, string>) =>
    run('sh', ['-c', script.replaceAll('URL', url)], more);
  return { home, env, tools, start, run, install, [Symbol.dispose]: () => directory[Symbol.dispose]() };
}

type Home = ReturnType<typeof createHome>;

/** Runs the client by the given command, and checks what it says before a sign-in. */
async function begin({ run }: Home, [program = '', ...args]: string[]): Promise<void> {
  const version = await run(program, [...args, 'version']);
  assert.match(version.stdout, /^andromeda /, version.stderr);
  const before = await run(program, [...args, 'doctor']);
  assert.equal(before.status, 1);
  assert.match(before.stdout, /\nDo this first: `andromeda auth login --url/);
}

/** Signs in, registers a key, and logs in. */
async function walk(home: Home, [program = '', ...args]: string[]): Promise<void> {
  const { start, run } = home;
  const client = async (...more: string[]) => {
    const said = await run(program, [...args, ...more]);
    assert.equal(said.status, 0, `${more.join(' ')}: ${said.stdout}${said.stderr}`);
    return said.stdout;
  };
  await begin(home, [program, ...args]);
  const login = start(program, [...args, 'auth', 'login', '--url', url]);
  login.stdin.end();
  const text = heard(login.stdout);
  const ended = new Promise<number | null>((resolve) => login.on('close', resolve));
  const shown = async () => /^ {4}(http\S+)$[\s\S]*^ {4}(\S+)$/m.exec(text());
  const found = await eventually(shown, (both) => both !== null || login.exitCode !== null);
  const [, address = assert.fail(text()), code = ''] = found ?? [];
  await answerDevice(service.issuerUrl, {
    verification_uri_complete: address,
    user_code: code,
  } as Parameters<typeof answerDevice>[1]);
  assert.equal(await ended, 0, text());
  assert.match(text(), /Signed in as Ada/i);

  mkdirSync(join(home.home, '.ssh'), { mode: 0o700 });
  const keygen = ['-q', '-t', 'ed25519', '-N', '', '-f', join(home.home, '.ssh/id_ed25519')];
  assert.equal((await run('ssh-keygen', keygen)).status, 0);
  await client('keys', 'add');
  await client('wait', 'key', '--timeout', '90s');
  assert.equal(await client('ssh', 'alpha', 'echo in'), 'in\n');
  const { stdout } = await eventually(
    () => run(program, [...args, 'doctor', 'alpha', '--json']),
    ({ status }) => status === 0,
  );
  const well = JSON.parse(stdout);
  const about = well.findings.map((one: { verdict: string; about: string }) => `${one.verdict} ${one.about}`);
  for (const part of ['address', 'clock', 'sign-in', 'ssh', 'key', 'access'])
    assert.ok(about.includes(`ok ${part}`), `${part}: ${JSON.stringify(well.findings)}`);
  assert.equal(well.findings.at(-1).text, 'A login to alpha works.');
}

const ways: [name: string, skip: string | false, way: () => Promise<void>][] = [
  [
    'install.sh, with curl and the Node of the system',
    systemNode ? false : 'the system has no Node',
    async () => {
      using home = createHome(systemNode);
      const said = await home.install('curl -fsSL URL/install.sh | sh');
      assert.equal(said.status, 0, said.stderr);
      assert.match(said.stdout, /^Installed: .*To undo it: rm /s);
      await walk(home, [join(home.home, '.local/bin/andromeda')]);
    },
  ],
  [
    'andromeda.mjs, on the Node of the service',
    false,
    async () => {
      using home = createHome(process.execPath);
      assert.equal((await home.install('curl -fsSO URL/andromeda.mjs')).status, 0);
      await begin(home, ['node', 'andromeda.mjs']);
    },
  ],
  [
    'npx',
    withoutNpm,
    async () => {
      using home = createHome(systemNode);
      await begin(home, ['/usr/bin/npx', '--yes', `${url}/andromeda.tgz`]);
    },
  ],
  [
    'npm install --global',
    withoutNpm,
    async () => {
      using home = createHome(systemNode);
      const said = await home.run('/usr/bin/npm', ['install', '--global', `${url}/andromeda.tgz`]);
      assert.equal(said.status, 0, said.stderr);
      await begin(home, [join(home.home, 'npm/bin/andromeda')]);
    },
  ],
];

test('each way has the client begin, the first from an empty home to a shell', {
  skip: withoutSsh,
  concurrency: true,
}, async (t) => {
  await Promise.all(ways.map(([name, skip, way]) => t.test(name, { skip }, way)));
});

/** What lies in a directory, with what it holds. */
function contentsOf(directory: string): string[] {
  if (!existsSync(directory)) return [];
  return readdirSync(directory, { recursive: true, encoding: 'utf8' }).sort();
}

test('without Node the script says what to do, and takes the program that needs none where there is one', async () => {
  using home = createHome(undefined);
  const bin = join(home.home, '.local/bin');
  fails(
    await home.install('curl -fsSL URL/install.sh | sh'),
    1,
    /^install: This machine has no Node 20 or later, and .*Nothing was changed\.\n$/,
  );
  assert.deepEqual(contentsOf(home.home), []);

  const machine = `linux-${process.arch}`;
  const content = Buffer.from('#!/bin/sh\necho "andromeda of the release"\n');
  offerRelease(join(service.test.dataDir, 'data'), '9.9.9', [
    { platform: machine, name: 'andromeda-linux', content },
  ]);
  const said = await home.install('wget -qO- URL/install.sh | sh');
  assert.equal(said.status, 0, said.stderr);
  assert.deepEqual(readdirSync(bin), ['andromeda']);
  assert.equal((await home.run(join(bin, 'andromeda'), [])).stdout, 'andromeda of the release\n');

  symlinkSync(process.execPath, join(home.tools, 'node'));
  assert.equal((await home.install('curl -fsSL URL/install.sh | sh')).status, 0);
  assert.ok(lstatSync(join(bin, 'andromeda')).isSymbolicLink(), 'with Node it takes the portable one again');
  assert.match((await home.run(join(bin, 'andromeda'), ['version'])).stdout, /\nservice |^andromeda /);
  const back = await home.install('curl -fsSL URL/install.sh | sh -s -- --executable');
  assert.match(back.stdout, /andromeda\.mjs was removed\.\n/, back.stderr);
  assert.deepEqual(readdirSync(bin), ['andromeda']);
  const undo =
    /To undo it: (.*)/.exec((await home.install('curl -fsSL URL/install.sh | sh')).stdout)?.[1] ?? '';
  assert.equal((await home.install(undo)).status, 0);
  assert.deepEqual(readdirSync(bin), []);
});

test('the lines that it prints work in a home of any name', async () => {
  const name = `it's "$x" \`touch y\``;
  using home = createHome(process.execPath, name);
  const bin = join(home.home, '.local/bin');
  const { stdout, stderr } = await home.install('curl -fsSL URL/install.sh | sh');
  const [undo, path, signIn] = [
    /^To undo it: (.*)$/m,
    /^ {4}(export PATH=.*)$/m,
    /^ {4}(.*) auth login/m,
  ].map((line) => line.exec(stdout)?.[1] ?? assert.fail(stdout + stderr));
  const found = await home.install(`${path}; command -v andromeda`);
  assert.equal(found.stdout, `${join(bin, 'andromeda')}\n`);
  assert.equal((await home.install(`${signIn} --help`)).status, 0);
  assert.equal((await home.install(undo ?? '')).status, 0);
  assert.deepEqual(readdirSync(bin), []);
  assert.deepEqual(readdirSync(home.home), ['.local'], 'and nothing in its name was run');
  const powershell = await home.install('curl -fsSL URL/install.ps1');
  assert.match(powershell.stdout, /\$quoted = \[.*\]::EscapeSingleQuotedStringContent\(\$dir\)/);
  assert.match(powershell.stdout, /Remove-Item -Recurse -LiteralPath '\$quoted'/);
});

test('a directory in its place, and a place from which nothing may be started, are said before anything is changed', async () => {
  using home = createHome(process.execPath);
  const bin = join(home.home, '.local/bin');
  mkdirSync(join(bin, 'andromeda.mjs'), { recursive: true });
  const inTheWay = await home.install('curl -fsSL URL/install.sh | sh');
  assert.deepEqual([inTheWay.status, inTheWay.stdout], [1, '']);
  assert.match(inTheWay.stderr, /andromeda\.mjs is a directory\. Move it away.*Nothing was changed\.\n$/);
  assert.deepEqual(contentsOf(bin), ['andromeda.mjs']);

  // As where the disk is mounted noexec: no file there can be started.
  const without = join(dirname(home.tools), 'without');
  mkdirSync(without);
  writeFileSync(join(without, 'chmod'), '#!/bin/sh\n', { mode: 0o755 });
  const elsewhere = join(home.home, 'bin');
  const noexec = await home.install('curl -fsSL URL/install.sh | sh', {
    ANDROMEDA_INSTALL_DIR: elsewhere,
    PATH: `${without}:${home.tools}`,
  });
  assert.deepEqual([noexec.status, noexec.stdout], [1, '']);
  assert.match(
    noexec.stderr,
    /Programs cannot be started from .*bin \(.*noexec\?\)\. .*Nothing was changed\.\n$/,
  );
  assert.deepEqual(contentsOf(elsewhere), []);
});

test('a home that cannot be written, another sum and an option that there is not change nothing', async () => {
  using home = createHome(process.execPath);
  writeFileSync(join(home.home, '.local'), 'a file, so that nobody can make a directory of it');
  const readOnly = await home.install('curl -fsSL URL/install.sh | sh');
  assert.equal(readOnly.status, 1);
  assert.match(readOnly.stderr, /cannot be made\. Name a directory of yours: ANDROMEDA_INSTALL_DIR=DIR\./);
  const elsewhere = { ANDROMEDA_INSTALL_DIR: join(home.home, 'else where') };
  fails(
    await home.install(
      'curl -fsSL URL/install.sh | sed "s/^mjs_sum=\'./mjs_sum=\'x/" | sh'.replace('sed', '/bin/sed'),
      elsewhere,
    ),
    1,
    /has the SHA-256 [0-9a-f]{64}, and should have x[0-9a-f]{63}\. Try again/,
  );
  assert.deepEqual(contentsOf(elsewhere.ANDROMEDA_INSTALL_DIR), []);
  const option = await home.install('curl -fsSL URL/install.sh | sh -s -- --frob', elsewhere);
  assert.equal(option.status, 1);
  const half = await home.install('curl -fsSL URL/install.sh | /usr/bin/head -c 3500 | sh', elsewhere);
  assert.deepEqual([half.stdout, contentsOf(elsewhere.ANDROMEDA_INSTALL_DIR)], ['', []]);
});

test('a service that is busy is asked again, and what it says otherwise is said', async () => {
  const script = await fetch(`${url}/install.sh`).then((answer) => answer.text());
  const client = await fetch(`${url}/andromeda.mjs`).then((answer) => answer.text());
  let asked = 0;
  let status = 503;
  await using server = createServer((_request, response) => {
    asked++;
    if (status === 503 && asked === 2) return response.end(client);
    response.writeHead(status, { 'Content-Type': 'application/json' });
    return response.end('{"code":"x","message":"It is full today.","retryable":true}');
  });
  const other = await listening(server);
  for (const program of ['curl', 'wget']) {
    using home = createHome(process.execPath);
    rmSync(join(home.tools, program === 'curl' ? 'wget' : 'curl'), { force: true });
    const file = join(home.home, 'install.sh');
    writeFileSync(file, script.replace(`url='${url}'`, `url='http://127.0.0.1:${other}'`));
    [asked, status] = [0, 403];
    const refused = await home.run('sh', [file]);
    assert.deepEqual([refused.status, asked], [1, 1], refused.stderr);
    const why =
      program === 'curl' ? /\(403: It is full today\.\)\. Nothing was/ : /\(.*403.*\)\. Nothing was/;
    assert.match(refused.stderr, why);
    [asked, status] = [0, 503];
    const said = await home.run('sh', [file]);
    assert.deepEqual([said.status, asked], [0, 2], said.stderr);
  }
});

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  test(`${signal} in the middle leaves nothing half, and what was there stays`, async () => {
    using home = createHome(process.execPath);
    const bin = join(home.home, '.local/bin');
    mkdirSync(bin, { recursive: true });
    writeFileSync(join(bin, 'andromeda'), '#!/bin/sh\necho before\n', { mode: 0o755 });
    // A download that does not end.
    const slow = join(dirname(home.tools), 'slow');
    mkdirSync(slow);
    writeFileSync(
      join(slow, 'curl'),
      `#!/bin/sh\ncase "$*" in *andromeda.mjs*) echo > '${slow}/begun'; exec sleep 300;; esac\nexec '${home.tools}/curl' "$@"\n`,
    );
    chmodSync(join(slow, 'curl'), 0o755);
    const script = join(dirname(home.tools), 'install.sh');
    assert.equal((await home.install(`curl -fsSL -o '${script}' URL/install.sh`)).status, 0);
    const child = spawn('sh', [script], {
      env: { ...home.env, PATH: `${slow}:${home.tools}` },
      detached: true,
      stdio: 'ignore',
    });
    const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
    while (!existsSync(join(slow, 'begun'))) await new Promise((resolve) => setTimeout(resolve, 20));
    // To all of it, as a terminal does.
    process.kill(-(child.pid ?? 0), signal);
    assert.notEqual(await ended, 0);
    assert.deepEqual(readdirSync(bin), ['andromeda']);
    assert.equal(readFileSync(join(bin, 'andromeda'), 'utf8'), '#!/bin/sh\necho before\n');
  });
}
