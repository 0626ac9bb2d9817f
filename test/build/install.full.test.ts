/** The README's two commands on a machine that has Node, npm and git, and nothing that compiles. */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { slowCiphers } from '../../src/gateway/ssh/transport/fast-ciphers.ts';
import { becomes } from '../support/app.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { heard } from '../support/heard.ts';
import { withoutCompiler } from './no-compiler.ts';

const root = join(import.meta.dirname, '../..');

test('npm ci succeeds without a warning, and npm start says that copies are slower', async () => {
  using directory = temporaryDirectory();
  const [checkout, bin] = ['checkout', 'bin'].map((name) => join(directory.path, name)) as [string, string];
  mkdirSync(bin);
  await promisify(execFile)('git', ['clone', '--quiet', root, checkout]);
  // That of the machine, which can be older than the one that is installed.
  const folders = (process.env['PATH'] ?? '').split(':').filter((one) => !one.includes('node_modules'));
  const own = folders.map((folder) => join(folder, 'node')).find((file) => existsSync(file));
  const env = withoutCompiler(bin, own ?? process.execPath);
  const install = promisify(execFile)('npm', ['ci', '--no-audit', '--no-fund'], { cwd: checkout, env });
  const { stdout, stderr } = await install;
  assert.ok(!/warn/i.test(stdout + stderr), stdout + stderr);
  assert.ok((stdout + stderr).includes(slowCiphers));
  const child = spawn('npm', ['start'], {
    cwd: checkout,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
  const said = heard(child.stdout);
  const closed = once(child, 'close');
  await becomes(() => said().includes('Try it') || child.exitCode !== null, true);
  if (child.pid !== undefined) process.kill(-child.pid, 'SIGTERM');
  await closed;
  assert.ok(said().includes(slowCiphers), said());
});
