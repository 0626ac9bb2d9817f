import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createLogger } from '../../../src/lib/log.ts';
import { type LoginNode, openLoginNode } from '../../../src/sync/simulated/login-node/index.ts';
import type { Account } from '../../../src/sync/simulated/login-node/messages.ts';
import { becomes } from '../../support/app.ts';
import { ada, alive, bob, missing, run, sshArguments } from './helpers.ts';
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
