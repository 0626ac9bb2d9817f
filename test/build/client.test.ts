/** The portable client: one file, the same each time, without the server, on each Node that it is for. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import manifest from '../../package.json' with { type: 'json' };
import { buildPortable } from '../../scripts/build/client.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { requireLicences } from './licences.ts';

const root = join(import.meta.dirname, '../..');

/** The Nodes of this machine: the one that runs the service, and one that the system may have. */
const nodes = [process.execPath, '/usr/bin/node'].filter((node) => existsSync(node));

test('the same source makes the same bytes, and nothing of the server is in them', async () => {
  const [one, two] = [await buildPortable(root, { anew: true }), await buildPortable(root)];
  assert.ok(one.mjs.equals(two.mjs) && one.tgz.equals(two.tgz));
  assert.ok(one.mjs.length < 700 * 1024, `${one.mjs.length} bytes`);
  const text = one.mjs.toString();
  for (const word of [
    'better-sqlite3',
    'oidc-provider',
    'ssh2',
    'x-powered-by',
    'CREATE TABLE',
    'node:http2',
  ])
    assert.ok(!text.includes(word), word);
  assert.ok(!text.includes(root), 'it does not say where it was made');
  const imported = [...text.matchAll(/(?:from|import\(|require\()\s*"([@a-z][\w:@/.-]*)"/g)].map(
    ([, name]) => name,
  );
  const others = imported.filter(
    (name) => !name?.startsWith('node:') && !['process', 'buffer'].includes(name ?? ''),
  );
  assert.deepEqual([...new Set(others)], ['@napi-rs/keyring'], 'which it does without where it is not there');
});

for (const node of nodes) {
  const version = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim();
  test(`Node ${version} runs it, from anywhere, and from the package`, async () => {
    using directory = temporaryDirectory();
    const { mjs, tgz } = await buildPortable(root);
    const place = join(directory.path, 'a place with spaces');
    mkdirSync(place);
    const file = join(place, 'client.mjs');
    writeFileSync(file, mjs);
    execFileSync('tar', ['xzf', '-', '-C', place], { input: tgz });
    for (const script of [file, join(place, 'package/andromeda.mjs')]) {
      const run = (...args: string[]) =>
        spawnSync(node, [script, ...args], {
          encoding: 'utf8',
          env: { HOME: place, PATH: process.env['PATH'] },
        });
      const said = run('version');
      assert.deepEqual([said.status, said.stderr], [0, '']);
      assert.ok(said.stdout.startsWith(`andromeda ${manifest.version}\ncommit `), said.stdout);
      const wrong = run('auth', 'status');
      assert.deepEqual([wrong.status, wrong.stdout], [1, '']);
      assert.match(wrong.stderr, /^You are not signed in/);
      const host = run('serve');
      assert.deepEqual([host.status, host.stdout], [2, '']);
      assert.match(host.stderr, /^This is the client alone; `andromeda serve` is for the host/);
      requireLicences(run('version', '--licences').stdout, 'cli');
      assert.match(run('completion', 'bash').stdout, /kubeconfig/);
      assert.doesNotMatch(run('--help').stdout, /\n {2}(serve|backup|restore|check|service) /);
      assert.doesNotMatch(run('admin', '--help').stdout, /bootstrap/);
    }
  });
}
