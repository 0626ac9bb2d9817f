import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { parse } from 'yaml';
import manifest from '../../package.json' with { type: 'json' };
import { run as runProgram } from '../../src/cli/program.ts';
import { hostCommands } from '../../src/host-commands.ts';
import { processIo } from '../../src/lib/command-io.ts';
import { isSafeUrl } from '../../src/lib/source-address.ts';
import { createMachine, says } from './harness.ts';

test('version prints the versions of the program and of what it runs on, and whether the ciphers are fast', async (t) => {
  const { run } = await createMachine(t);
  const { node, openssl } = process.versions;
  for (const args of [['version'], ['--version']]) {
    const { status, stdout, stderr } = await run(args);
    assert.deepEqual([status, stderr], [0, '']);
    const own = `andromeda ${manifest.version}\nbuilt no, it runs from a checkout\nnode ${node}\nopenssl ${openssl}\n`;
    assert.ok(stdout.startsWith(own), stdout);
    assert.match(stdout.slice(own.length), /^sqlite \d+\.\d+\.\d+\nfast SSH ciphers .+\n$/);
  }
});

test('version -o json and yaml say the same', async (t) => {
  const { run } = await createMachine(t);
  const [plain, json, yaml] = await Promise.all(
    [[], ['-o', 'json'], ['-o', 'yaml']].map((args) => run(['version', ...args])),
  );
  const said = JSON.parse(json?.stdout ?? '');
  assert.deepEqual([said.andromeda, said.node], [manifest.version, process.versions.node]);
  const lines = Object.entries(said).map(([name, value]) => `${name} ${value}\n`);
  assert.equal(plain?.stdout, lines.join(''));
  assert.deepEqual(parse(yaml?.stdout ?? ''), said);
});

test('help and the words of a command is its --help', async (t) => {
  const { run } = await createMachine(t);
  for (const words of [[], ['call'], ['keys'], ['keys', 'add'], ['admin', 'person', 'add']]) {
    const [help, flag] = await Promise.all([run(['help', ...words]), run([...words, '--help'])]);
    assert.deepEqual([help.status, help.stderr, help.stdout], [0, '', flag.stdout]);
    assert.ok(help.stdout.startsWith(`Usage: ${['andromeda', ...words].join(' ')} `), help.stdout);
  }
});

test('a command line that is wrong is one sentence on stderr and status 2', async (t) => {
  const { run } = await createMachine(t);
  const rows: [string, string][] = [
    ['frobnicate', "Unknown command 'frobnicate'; see `andromeda --help`."],
    ['versoin', "Unknown command 'versoin'; did you mean version?"],
    ['auth frob', "Unknown command 'frob'; see `andromeda --help`."],
    ['--frob', "Unknown option '--frob'; see `andromeda --help`."],
    ['auth login --ulr x', "Unknown option '--ulr'; did you mean --url?"],
    [
      'version x',
      "Too many arguments for 'version': expected 0 arguments but got 1: x; see `andromeda --help`.",
    ],
    ['auth login --url', "Option '--url <platform_url>' argument missing; see `andromeda --help`."],
    ['serve', 'Say what to serve: `andromeda serve --config FILE`, or `andromeda serve --demo` to try it.'],
    ['serve --demo --config x', 'Give either --config or --demo, not both.'],
    ['serve --config x --data y', '--data goes with --demo; with --config, the file names dataDir.'],
    ['restore', 'Say what to restore: a file, or newest.'],
    ['backup f --list', 'Give either <file> or --list, not both.'],
    ['backup f --config x --data y', 'Give either --config or --data, not both.'],
    ['restore f --config x --data y', 'Give either --config or --data, not both.'],
    ['help frobnicate', "Unknown command 'frobnicate'; see `andromeda --help`."],
    ['help keys frob', "Unknown command 'frob'; see `andromeda --help`."],
    ['backup ', '<file> is empty; name a file or a directory.'],
    ['backup f --data ', '--data <dir> is empty; name a file or a directory.'],
    ['restore f --data ', '--data <dir> is empty; name a file or a directory.'],
    ['serve --demo --data ', '--data <dir> is empty; name a file or a directory.'],
    ['service install --root ', '--root <dir> is empty; name a file or a directory.'],
    ['service start', "Unknown command 'start'; see `andromeda --help`."],
  ];
  for (const [args, sentence] of rows) {
    await says(run(args.split(' ')), 2, `${sentence}\n`, '');
  }
});

test('a group of commands without one of them shows its help on stderr, status 2', async (t) => {
  const { run } = await createMachine(t);
  for (const args of [[], ['auth'], ['service']]) {
    const { status, stdout, stderr } = await run(args);
    assert.deepEqual([status, stdout], [2, '']);
    assert.match(stderr, /^Usage: andromeda/);
  }
});

test('commands of the host hand their options over and end with the status they are given', async () => {
  const given: unknown[] = [];
  const take = async (...options: unknown[]) => given.push(options.length === 1 ? options[0] : options) + 6;
  const server = {
    ...hostCommands(),
    serve: take,
    bootstrap: (options: unknown) => take(options),
    backup: (file: string | undefined, options: unknown) => take(file, options),
    restore: (file: string | undefined, options: unknown) => take(file, options),
    installService: take,
    printUnit: take,
  };
  assert.equal(await runProgram(['serve', '--demo', '--data', 'd'], processIo, server), 7);
  assert.equal(await runProgram(['serve', '--config', 'c'], processIo, server), 8);
  const bootstrap = ['admin', 'bootstrap', '--config', 'c', '--email', 'ada@physics.example'];
  assert.equal(await runProgram(bootstrap, processIo, server), 9);
  assert.equal(await runProgram(['backup', 'f', '--config', 'c'], processIo, server), 10);
  assert.equal(await runProgram(['restore', 'f', '--data', 'd'], processIo, server), 11);
  assert.equal(await runProgram(['service', 'install', '--root', '/r', '--dry-run'], processIo, server), 12);
  assert.equal(await runProgram(['service', 'print', '--user', 'u'], processIo, server), 13);
  const config = '/etc/andromeda/andromeda.yaml';
  assert.deepEqual(given, [
    { demo: true, data: 'd' },
    { demo: false, config: 'c' },
    { config: 'c', email: 'ada@physics.example' },
    ['f', { config: 'c' }],
    ['f', { data: 'd' }],
    { config, user: 'andromeda', root: '/r', dryRun: true, enable: true },
    { config, user: 'u', root: '/', dryRun: true, enable: false },
  ]);
});

test('a token goes in the clear to this machine alone', () => {
  const isSafe = (host: string) => isSafeUrl(new URL(`http://${host}/`));
  for (const host of ['localhost', '127.0.0.1', '127.255.0.9', '[::1]']) assert.ok(isSafe(host), host);
  for (const host of ['127.0.0.1.example', 'localhost.example', '128.0.0.1', '[::2]', '0.0.0.0'])
    assert.ok(!isSafe(host), host);
});

test('output that cannot be written is one sentence, without a stack trace', {
  skip: !existsSync('/dev/full') && 'there is no /dev/full here',
}, () => {
  const { status, stderr } = spawnSync('sh', ['-c', 'scripts/andromeda version > /dev/full'], {
    encoding: 'utf8',
  });
  assert.equal(status, 1);
  assert.equal(stderr, 'The output could not be written: there is no space left.\n');
});
