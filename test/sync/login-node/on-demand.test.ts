/** Login nodes that start with their first connection, what they take of the protocol, and their copy of /etc. */
import assert from 'node:assert/strict';
import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import ssh2 from 'ssh2';
import { createLogger } from '../../../src/lib/log.ts';
import { message, SSH, WireReader } from '../../../src/lib/ssh/wire.ts';
import { Channel } from '../../../src/sync/simulated/login-node/channel.ts';
import { type LoginNode, openLoginNode } from '../../../src/sync/simulated/login-node/index.ts';
import type { Account } from '../../../src/sync/simulated/login-node/messages.ts';
import { sttyArguments } from '../../../src/sync/simulated/login-node/session.ts';
import { becomes } from '../../support/app.ts';
import { temporaryDirectory } from '../../support/directory.ts';
import { ada, alive, bench, bob, isRoot, missing, run, sshArguments } from './helpers.ts';
import { children } from './listening.ts';

const skip = missing('ssh');

/** Several login nodes side by side, each in a directory of its own. */
async function open(t: TestContext, count: number) {
  const dir = mkdtempSync(join(tmpdir(), 'login-node-demand-'));
  chmodSync(dir, 0o755);
  const key = join(dir, 'key');
  spawnSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key]);
  const known = { accounts: [ada, bob] as readonly Account[], reads: 0 };
  const nodes: LoginNode[] = [];
  t.after(async () => {
    await Promise.all(nodes.map((node) => node.stop()));
    rmSync(dir, { recursive: true, force: true });
  });
  for (let i = 0; i < count; i++) {
    const node = await openLoginNode({
      dataDir: join(dir, `data${i}`),
      authorizedKeys: () => [readFileSync(`${key}.pub`, 'utf8').trim()],
      async accounts() {
        known.reads++;
        return known.accounts;
      },
      log: createLogger('silent'),
    });
    nodes.push(node);
  }
  const ssh = (index: number, command: string) =>
    run('ssh', sshArguments({ key, node: nodes[index] as never }, command));
  return { dir, key, nodes, known, ssh };
}

test('a login node starts with its first connection', { skip }, async (t) => {
  const { dir, nodes, known, ssh } = await open(t, 2);
  const { stdout, stderr } = await ssh(1, 'echo $SSH_CONNECTION; id -un');
  assert.match(stdout, new RegExp(` 127\\.0\\.0\\.1 ${nodes[1]?.port}\\n`), stderr);
  assert.equal(known.reads, 1);
  assert.equal(existsSync(join(dir, 'data1/home')), true);
  assert.equal(existsSync(join(dir, 'data0/home')), false);
});

test('one that died is started again with the next connection, with the accounts of then', {
  skip,
}, async (t) => {
  const { ssh, known } = await open(t, 1);
  const before = new Set(children());
  await ssh(0, 'true');
  const [pid = assert.fail()] = children().filter((one) => !before.has(one));
  process.kill(pid, 'SIGKILL');
  await becomes(() => alive(pid), false);
  known.accounts = [{ ...ada, shell: '/bin/sh' }];
  await becomes(async () => (await ssh(0, 'echo $SHELL')).stdout === '/bin/sh\n', true);
});

test('its end closes what is open, and lets no one in', { skip }, async (t) => {
  const { key, nodes, ssh } = await open(t, 1);
  const [node] = nodes;
  const session = spawn('ssh', sshArguments({ key, node: node as never }, 'echo in; cat'));
  await once(session.stdout, 'data');
  const closed = once(session, 'close');
  await node?.stop();
  await closed;
  assert.equal(node?.running, false);
  assert.match((await ssh(0, 'true')).stderr, /refused/);
});

test('terminal modes become words for stty, and what is unknown is left out', () => {
  const mode = (opcode: number, value: number) => Buffer.from([opcode, 0, 0, 0, value]);
  const table: [Buffer[], string][] = [
    [[mode(3, 8), mode(53, 0), mode(36, 1)], 'erase ^H -echo icrnl'],
    [[mode(1, 255), mode(2, 127), mode(4, 120)], 'intr ^- quit ^? kill x'],
    [[mode(99, 1), mode(42, 1)], 'iutf8'],
    [[mode(53, 1), Buffer.from([0]), mode(50, 1)], 'echo'],
    [[mode(53, 1), mode(200, 1), mode(50, 1)], 'echo'],
    [[mode(53, 1), Buffer.from([50, 0])], 'echo'],
  ];
  for (const [modes, words] of table) assert.equal(sttyArguments(Buffer.concat(modes)).join(' '), words);
});

test('a signal reaches the command, and its end by a signal is reported as one', async (t) => {
  const at = await bench(t);
  const client = new ssh2.Client();
  t.after(() => client.end());
  await new Promise((resolve, reject) => {
    client.on('ready', () => resolve(undefined)).on('error', reject);
    client.connect({
      host: '127.0.0.1',
      port: at.node.port,
      username: 'ada',
      privateKey: readFileSync(at.key),
    });
  });
  const ended = await new Promise<unknown[]>((resolve, reject) => {
    client.exec('echo ready; exec sleep 100', (error, stream) => {
      if (error) return reject(error);
      stream.on('exit', (...how: unknown[]) => resolve(how));
      stream.once('data', () => stream.signal('USR1'));
    });
  });
  assert.deepEqual(ended.slice(0, 2), [null, 'SIGUSR1']);
});

test('a client gets no longer packets and no more bytes than it takes', async () => {
  const sent: Buffer[] = [];
  const opened = { local: 1, remote: { uint32: 7 }, window: 40_000, packet: 16_384 };
  const channel = new Channel(
    opened,
    (payload) => sent.push(payload),
    () => {},
  );
  const all = channel.send('stdout', Buffer.alloc(50_000, 'a'));
  await new Promise(setImmediate);
  const lengths = () => sent.filter(([type]) => type === SSH.CHANNEL_DATA).map(({ length }) => length - 9);
  assert.deepEqual(lengths(), [16_384, 16_384, 7_232]);
  channel.receive(SSH.CHANNEL_WINDOW_ADJUST, new WireReader(message(0, { uint32: 10_000 }), 1));
  await all;
  assert.deepEqual(lengths(), [16_384, 16_384, 7_232, 10_000]);
});

const homes = join(import.meta.dirname, '../../../src/sync/simulated/login-node/homes.ts');

/** An /etc and a /home that nothing outside sees; files of `lckpwdf` and `vipw` come and go in the first. */
const script = `set -e
mkdir "$1/etc" "$1/home"
cp /etc/passwd /etc/group "$1/etc"
mount --bind "$1/etc" /etc; mount --bind "$1/home" /home
for name in passwd.lock group.lock shadow.4711 group+; do
  while [ -d "$1/home" ]; do : > "$1/etc/$name"; rm -f "$1/etc/$name"; done & others="$others $!"
done
trap 'kill $others; wait' EXIT
"$2" --input-type=module -e "import { execFileSync } from 'node:child_process'; import { copyEtc } from '$3';
for (let time = 0; time < 8; time++) { copyEtc(); execFileSync('umount', ['-l', '/etc']); }"
`;

test('files that come and go meanwhile do not end the copy', {
  skip: !isRoot && 'only root may have an /etc of its own',
}, async () => {
  using directory = temporaryDirectory();
  const args = ['--mount', '--propagation', 'private', 'sh', '-c', script, 'sh', directory.path];
  const { stderr } = await promisify(execFile)('unshare', [...args, process.execPath, homes]);
  assert.equal(stderr, '');
});
