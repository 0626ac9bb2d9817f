/** Sessions on an embedded login node; what clients do there through the gateway is in test/gateway/clients. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, type TestContext, test } from 'node:test';
import * as pty from '@lydell/node-pty';
import { becomes } from '../../support/app.ts';
import {
  alive,
  type Bench,
  bench,
  echo,
  firstLine,
  missing,
  outside,
  run,
  runs,
  serving,
  ssh,
  sshArguments,
} from './helpers.ts';

const skip = missing('ssh');
// Most of these tests need no login node of their own.
const cleanups: (() => Promise<void>)[] = [];
let started: Promise<Bench> | undefined;
process.env['LEAK_OF_THE_SERVER'] = 'secret';
const shared = () => {
  started ??= bench({ after: (cleanup) => cleanups.push(cleanup) });
  return started;
};
after(() => Promise.all(cleanups.map((cleanup) => cleanup())));

/** Arguments that run a command on a connection that stays open. */
async function startMaster(t: TestContext, at: Bench, name: string): Promise<string[]> {
  const way = ['-S', join(at.dir, name)];
  const master = spawn('ssh', ['-M', '-N', ...way, ...sshArguments(at)], { stdio: 'ignore' });
  t.after(() => master.kill());
  await becomes(async () => (await run('ssh', [...way, '-O', 'check', 'x'])).code === 0, true);
  return [...way, 'x'];
}

test('a reader that goes away ends the writer', { skip }, async () => {
  const at = await shared();
  const client = spawn('sh', [
    '-c',
    'ssh "$@" | head -1',
    'sh',
    ...sshArguments(at, 'echo $$; exec -a writer yes'),
  ]);
  await once(client.stdout, 'data');
  await becomes(() => runs(at.node, 'writer'), false);
});

test('a client that goes away ends what it ran', { skip }, async () => {
  const at = await shared();
  const client = spawn('ssh', sshArguments(at, 'echo $$; sleep 100; true'));
  const [line] = await once(client.stdout, 'data');
  const pid = outside(at.node, line);
  client.kill('SIGKILL');
  await becomes(() => alive(pid), false);
});

test('nothing stays open of commands whose input never ended', { skip }, async (t) => {
  const at = await shared();
  const master = await startMaster(t, at, 'mux-open');
  const opened = () => readdirSync(`/proc/${serving(at.node)}/fd`).length;
  const commands = async (count: number) => {
    for (let n = 0; n < count; n++) {
      const client = spawn('ssh', [...master, n % 4 ? 'true' : 'sleep 9 >&- 2>&- & echo']);
      const [code] = await once(client, 'exit');
      client.stdin.destroy();
      assert.equal(code, 0);
    }
  };
  await commands(8);
  const before = opened();
  await commands(20);
  await becomes(() => opened() <= before + 2, true);
});

test('a stalled reader holds the command back and costs no memory', { skip }, async (t) => {
  const at = await shared();
  const resident = () =>
    Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${serving(at.node)}/status`, 'utf8'))?.[1]);
  const client = spawn('ssh', sshArguments(at, 'yes'));
  client.stdout.pause();
  t.after(() => client.kill());
  await new Promise((resolve) => setTimeout(resolve, 500));
  const before = resident();
  await new Promise((resolve) => setTimeout(resolve, 1000));
  assert.ok(resident() - before < 20_000, `grew from ${before} to ${resident()} KiB`);
});

test('a file read in one session is not open in the next one', { skip }, async (t) => {
  const at = await shared();
  const terminals = ['1', '2'].map(() => {
    const local = pty.spawn('ssh', ['-tt', ...sshArguments(at)], {});
    t.after(() => local.kill());
    return new Promise<void>((resolve) => local.onData(() => resolve()));
  });
  await Promise.all(terminals);
  const { stdout } = await ssh(at, 'readlink /proc/self/fd/*');
  assert.doesNotMatch(stdout, /ptmx|pts/);
});

test('the gateway key opens accounts, and nothing else does', { skip }, async () => {
  const at = await shared();
  const other = join(at.dir, 'other');
  await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', other]);
  const refused = await run('ssh', sshArguments({ key: other, node: at.node }, 'true'));
  assert.match(refused.stderr, /Permission denied \(publickey\)/);
  const unknown = await run('ssh', ['-l', 'eve', ...sshArguments(at, 'true')]);
  assert.match(unknown.stderr, /Permission denied/);
  writeFileSync(join(at.dir, 'known'), `[127.0.0.1]:${at.node.port} ${at.node.hostKey}\n`);
  const strict = ['-o', 'StrictHostKeyChecking=yes', '-o', `UserKnownHostsFile=${join(at.dir, 'known')}`];
  assert.equal((await run('ssh', [...strict, ...sshArguments(at, 'true')])).code, 0);
});

test('the environment is clean and the client cannot add to it', { skip }, async () => {
  const at = await shared();
  const { stdout } = await run('ssh', ['-o', 'SetEnv=LEAK_OF_THE_CLIENT=1', ...sshArguments(at, 'env')]);
  const names = stdout
    .trim()
    .split('\n')
    .map((line) => line.split('=')[0]);
  const expected = 'HOME LANG LOGNAME PATH PWD SHELL SHLVL SSH_CLIENT SSH_CONNECTION USER _';
  assert.equal(names.sort().join(' '), expected);
});

test('local forwarding reaches the loopback, and nothing else is forwarded', {
  skip: skip || missing('python3'),
}, async (t) => {
  const at = await shared();
  const server = spawn('ssh', sshArguments(at, 'exec python3 -u -c "$(cat)"'));
  t.after(() => server.kill());
  server.stdin.end(echo);
  const port = await firstLine(server);
  for (const host of ['localhost', '127.0.0.1']) {
    const forwarded = await run('ssh', ['-W', `${host}:${port}`, ...sshArguments(at)], 'there and back');
    assert.equal(forwarded.stdout, 'there and back');
  }
  for (const host of ['10.0.0.1', 'example.org', '0.0.0.0']) {
    const refused = await run('ssh', ['-W', `${host}:${port}`, ...sshArguments(at)]);
    assert.match(refused.stderr, /forwarding failed/);
  }
  const remote = ['-o', 'ExitOnForwardFailure=yes', '-R', '0:127.0.0.1:9', ...sshArguments(at, 'true')];
  assert.match((await run('ssh', remote)).stderr, /remote port forwarding failed/);
  const agent = await run('ssh', ['-A', ...sshArguments(at, 'echo "[$SSH_AUTH_SOCK]"')]);
  assert.equal(agent.stdout, '[]\n');
});
