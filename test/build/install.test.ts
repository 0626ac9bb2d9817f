/** What follows `npm ci` on a machine without a compiler: copies are slower, everything else is as ever. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { slowCiphers } from '../../src/gateway/ssh/transport/fast-ciphers.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { withoutCompiler } from './no-compiler.ts';

const root = join(import.meta.dirname, '../..');

test('an install without a compiler, make and Python succeeds, and says what is slower and what to do', async () => {
  using directory = temporaryDirectory();
  const [checkout, bin] = ['checkout', 'bin'].map((name) => join(directory.path, name)) as [string, string];
  const modules = join(checkout, 'node_modules');
  for (const folder of [bin, join(modules, '.bin'), join(checkout, 'scripts')])
    mkdirSync(folder, { recursive: true });
  cpSync(join(root, 'scripts/install.mjs'), join(checkout, 'scripts/install.mjs'));
  for (const name of ['node', 'node-gyp', 'esbuild', '@esbuild'])
    symlinkSync(join(root, 'node_modules', name), join(modules, name));
  // Those that the script writes to are copies.
  for (const name of ['kysely', 'ssh2'])
    cpSync(join(root, 'node_modules', name), join(modules, name), { recursive: true });
  const build = join(modules, 'ssh2/lib/protocol/crypto/build');
  await promisify(execFile)('rm', ['-rf', build]);
  const env = withoutCompiler(bin, process.execPath);
  const { stderr } = await promisify(execFile)(process.execPath, [join(checkout, 'scripts/install.mjs')], {
    env,
  });
  assert.equal(stderr, `${slowCiphers}\n`);
  assert.ok(!existsSync(build));
});

test('nothing that npm installs compiles by itself and fails where it cannot', () => {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { hasInstallScript?: true; optional?: true }>;
  };
  const own = Object.entries(packages).filter(([, one]) => one.hasInstallScript && !one.optional);
  // Node's fetches itself, esbuild's takes what is there, ssh2's goes on without its addon.
  assert.deepEqual(
    own.map(([name]) => name),
    ['', 'node_modules/esbuild', 'node_modules/node', 'node_modules/ssh2'],
  );
});
