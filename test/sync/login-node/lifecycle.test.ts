/** Sessions on an embedded login node, from start to end; what clients do through the gateway is in test/gateway/clients. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, type TestContext, test } from 'node:test';
import * as pty from '@lydell/node-pty';
import type { Account } from '../../../src/sync/simulated/login-node/messages.ts';
import { becomes } from '../../support/app.ts';
import {
  ada,
  alive,
  type Bench,
  bench,
  bob,
  echo,
  firstLine,
  isRoot,
  missing,
  outside,
  run,
  runs,
  serving,
  ssh,
  sshArguments,
  startParent,
} from './helpers.ts';
import { startListeningNode } from './listening.ts';

const skip = missing('ssh');

for (const namespace of [true, false])
  describe(namespace ? 'in namespaces of its own' : 'without namespaces', { skip }, () => {
    const cleanups: (() => Promise<void>)[] = [];
    let at: Bench;
    let elsewhere: Bench;
    before(async () => {
      const t = { after: (cleanup: () => Promise<void>) => cleanups.push(cleanup) };
      [at, elsewhere] = [await bench(t, { namespace }), await bench(t, { namespace })];
    });
    after(() => Promise.all(cleanups.map((cleanup) => cleanup())));

    test('removing an account ends its sessions and refuses new ones', async (t) => {
      const session = spawn('ssh', sshArguments(at, 'trap "" HUP; echo $$; sleep 100; true'));
      const other = spawn('ssh', ['-l', 'bob', ...sshArguments(at, 'echo $$; exec sleep 100')]);
      t.after(() => other.kill());
      const lines = await Promise.all([firstLine(session), firstLine(other)]);
      const [pid, bobs] = lines.map((line) => outside(at.node, line));
      await at.node.setAccounts([bob]);
      assert.ok(!alive(Number(pid)));
      assert.ok(alive(Number(bobs)));
      assert.match((await ssh(at, 'true')).stderr, /Permission denied/);
      await at.node.setAccounts([bob, ada]);
      assert.equal((await ssh(at, 'echo back')).stdout, 'back\n');
    });

    test('no one who hides in namespaces and environments of their own outlives their account', {
      skip: isRoot ? missing('unshare') : 'only root changes to another user',
    }, async (t) => {
      const hide =
        'env -i setsid unshare -Urm setsid sh -c \'trap "" HUP; echo $$; exec sleep 100\' < /dev/null & wait';
      const hidden = spawn('ssh', sshArguments(at, `(${hide}) & wait`));
      const bare = spawn('ssh', sshArguments(at, "env -i setsid sh -c 'echo $$; exec sleep 100'"));
      const other = spawn('ssh', sshArguments(elsewhere, 'echo $$; exec sleep 100'));
      const bobs = spawn('ssh', ['-l', 'bob', ...sshArguments(at, 'echo $$; exec sleep 100')]);
      for (const client of [hidden, bare, other, bobs]) t.after(() => client.kill());
      const gone = [await firstLine(hidden), await firstLine(bare)].map((line) => outside(at.node, line));
      const kept = [outside(at.node, await firstLine(bobs))];
      // Without namespaces, the person's number is all that tells what is theirs.
      if (namespace) kept.push(outside(elsewhere.node, await firstLine(other)));
      // Nobody is left who could be asked where they came from.
      hidden.kill('SIGKILL');
      assert.ok([...gone, ...kept].every(alive));
      await at.node.setAccounts([bob]);
      assert.deepEqual(gone.map(alive), [false, false]);
      assert.ok(kept.every(alive));
      await at.node.setAccounts([bob, ada]);
    });

    test('no one sees whose homes there are, here or on other clusters', {
      skip: isRoot ? false : 'only root changes to another user',
    }, async () => {
      const read = (path: string) => ssh(at, `ls -a ${path} || cat ${path}`);
      for (const dir of [
        ...(namespace ? ['/home'] : []),
        join(at.dir, 'data/home'),
        join(elsewhere.dir, 'data/home'),
      ]) {
        const refusal = namespace && dir !== '/home' ? /No such file/ : /Permission denied/;
        assert.match((await read(dir)).stderr, refusal, dir);
        for (const inside of ['bob', '.andromeda', '.andromeda/passwd'])
          assert.match((await read(join(dir, inside))).stderr, refusal);
      }
      assert.match((await ssh(at, 'cd; stat -c %a .; touch mine && ls')).stdout, /^700\nmine\n/);
    });

    test('sessions run as the account and no other, gain no rights and have bounds', {
      skip: isRoot ? false : 'only root can change to another user',
    }, async () => {
      assert.equal((await ssh(at, 'id -u; id -G; id -ru')).stdout, '20001\n20001\n20001\n');
      const others = `cat ${join(at.dir, 'data', 'host_key')}; ls ${join(at.dir, 'data/home/bob')}`;
      const denied = await ssh(at, others);
      assert.notEqual(denied.code, 0);
      assert.equal(denied.stdout, '');
      const home = namespace ? '/home/ada' : join(at.dir, 'data/home/ada');
      const own = await ssh(at, 'pwd; echo $HOME; stat -c "%a %u" ~');
      assert.equal(own.stdout, `${home}\n${home}\n700 20001\n`);
      const bounds = 'grep NoNewPrivs /proc/self/status; ulimit -Hu; ulimit -Hn; ulimit -Hd; ulimit -Hf';
      assert.equal((await ssh(at, bounds)).stdout, 'NoNewPrivs:\t1\n256\n4096\n2097152\n4194304\n');
      if (namespace) assert.equal((await ssh(at, 'whoami; echo ~bob')).stdout, 'ada\n/home/bob\n');
    });

    test('a changed shell is for new sessions; one that is missing gives bash, and the warning is the gateway’s', async () => {
      const open = spawn('ssh', sshArguments(at, 'echo $SHELL; cat; echo $SHELL'));
      assert.equal(await firstLine(open), '/bin/bash');
      for (const [shell, given] of [
        ['/bin/sh', '/bin/sh'],
        ['/no/such/shell', '/bin/bash'],
      ] as const) {
        await at.node.setAccounts([{ ...ada, shell }, bob]);
        const { stdout, stderr } = await ssh(at, 'echo $SHELL');
        assert.deepEqual([stdout, stderr], [`${given}\n`, '']);
      }
      const rest = firstLine(open);
      open.stdin.end();
      assert.equal(await rest, '/bin/bash');
      await at.node.setAccounts([ada, bob]);
    });

    test('nothing of its sessions is left behind when a login node crashes, which is logged', async (t) => {
      const session = spawn(
        'ssh',
        sshArguments(elsewhere, 'trap "" HUP; setsid sleep 100 & echo $! $$; sleep 100; true'),
      );
      t.after(() => session.kill('SIGKILL'));
      const pids = (await firstLine(session)).split(' ').map((inner) => outside(elsewhere.node, inner));
      assert.deepEqual(pids.map(alive), [true, true]);
      process.kill(elsewhere.node.pid, 'SIGKILL');
      await becomes(() => pids.some(alive), false);
      const isLogged = () =>
        elsewhere.events.some(({ event, level }) => event === 'login_node_exited' && level === 'error');
      await becomes(isLogged, true);
    });
  });

test('a person who starts processes faster than they are found is ended as well', {
  skip: skip || (isRoot ? false : 'only root changes to another user'),
}, async (t) => {
  const hopper: Account = { ...ada, username: 'hopper', uid: 20_777, gid: 20_777 };
  const at = await bench(t, { accounts: [hopper] });
  const hop = 'import os\nfor n in range(3000000):\n if os.fork(): os._exit(0)\n os.setsid()\n';
  const client = spawn('ssh', ['-l', 'hopper', ...sshArguments(at, 'echo up; exec python3 -c "$(cat)"')]);
  t.after(() => client.kill());
  await firstLine(client);
  client.stdin.end(hop);
  const processes = () => spawnSync('pgrep', ['-r', 'RSD', '-u', '20777']).stdout.toString().trim();
  await becomes(() => processes() !== '', true);
  await at.node.setAccounts([]);
  assert.equal(processes(), '');
});

test('homes and the host key outlive a restart, sessions do not', { skip }, async (t) => {
  const at = await bench(t);
  await ssh(at, 'echo kept > file');
  const session = spawn(
    'ssh',
    sshArguments(at, 'echo $$; (trap "" HUP; setsid sleep 100) > /dev/null & cat'),
  );
  const pid = outside(at.node, await firstLine(session));
  await at.node.stop();
  assert.equal(at.node.running, false);
  assert.ok(!alive(pid));
  assert.equal(statSync(join(at.dir, 'data/host_key')).mode & 0o777, 0o600);
  const again = await startListeningNode(at.options);
  t.after(() => again.stop());
  assert.equal(again.hostKey, at.node.hostKey);
  assert.equal((await ssh({ ...at, node: again }, 'cat file')).stdout, 'kept\n');
});

test('accounts that are root or no names are refused', async (t) => {
  await assert.rejects(bench(t, { accounts: [{ ...ada, uid: 0 }] }), /No session runs as uid or gid 0/);
  await assert.rejects(bench(t, { accounts: [{ ...ada, username: '../ada' }] }), /is not a username/);
});

test('homes that the account cannot reach are an error that says what to do', {
  skip: isRoot ? false : 'only root changes to another user',
}, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'login-node-closed-'));
  t.after(() => rmSync(dir, { recursive: true }));
  await assert.rejects(
    bench(t, { dataDir: join(dir, 'data'), namespace: false }),
    /cannot reach its home.*chmod o\+x/,
  );
});

test('nothing is left behind when the server is killed', { skip }, async (t) => {
  const { parent, pid, at } = await startParent(t);
  const piped = spawn('ssh', sshArguments(at, 'trap "" HUP; echo $$; setsid sleep 100 & sleep 100; true'));
  const pids = [pid, outside({ pid }, await firstLine(piped))];
  const tty = spawn('ssh', ['-tt', ...sshArguments(at, 'trap "" HUP; echo $$; sleep 100; true')]);
  pids.push(outside({ pid }, await firstLine(tty)));
  parent.kill('SIGKILL');
  for (const each of pids) await becomes(() => alive(each), false);
});

/** Runs a program as the unit's `NoNewPrivileges=` and `SystemCallFilter=~@privileged` do, as far as setpriv notices it. */
const inUnit = `import ctypes, os, platform, struct, sys
capset = {"x86_64": 126, "aarch64": 91}[platform.machine()]
code = [(0x20, 0, 0, 0), (0x15, 0, 1, capset), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7fff0000)]
filter = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in code))
prctl = ctypes.CDLL(None).prctl
assert prctl(38, 1, 0, 0, 0) == 0
assert prctl(22, 2, ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code), ctypes.addressof(filter)))) == 0
os.execv(sys.argv[1], sys.argv[1:])
`;
const python = '/usr/bin/python3';

for (const [where, wrapper] of [
  ['', []],
  [', under the systemd unit', [python, '-c', inUnit]],
] as const)
  test(
    `an ordinary user runs a login node, too${where}`,
    {
      skip:
        skip ||
        (isRoot ? missing('setpriv') : 'the other tests run as an ordinary user already') ||
        missing(python),
    },
    (t) => runAsUser(t, wrapper),
  );

async function runAsUser(t: TestContext, wrapper: readonly string[]): Promise<void> {
  // A uid without a name and without rights to anything.
  const drop = ['setpriv', '--reuid=30111', '--regid=30111', '--clear-groups', ...wrapper];
  const [program = '', ...args] = [...drop, process.execPath, '-e', '0'];
  if (spawnSync(program, args).status !== 0) return t.skip('an ordinary user cannot read this checkout');
  const { dir, at } = await startParent(t, drop, 0o777);
  const { stdout } = await run('ssh', sshArguments(at, 'id -u; pwd; grep NoNewPrivs /proc/self/status'));
  assert.equal(stdout, `30111\n${join(dir, 'data/home/ada')}\nNoNewPrivs:\t1\n`);
  const tty = await run('ssh', ['-tt', ...sshArguments(at, 'tty')]);
  assert.match(tty.stdout, /^\/dev\/pts\//);
  assert.equal((await run('ssh', sshArguments(at, 'cat > copy'), 'kept')).code, 0);
  assert.equal(readFileSync(join(dir, 'data/home/ada/copy'), 'utf8'), 'kept');
}

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
