/** The server for 64-bit ARM of dist/release, run by QEMU: it serves, somebody signs in, and logs in by ssh. Part of `npm run release:test`. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { serveFrom } from '../../build/served-root.ts';
import { temporaryDirectory } from '../../support/directory.ts';
import { createForeignRoot } from './foreign-root.ts';
import { released } from './released.ts';

test('the server for 64-bit ARM serves, and people sign in and log in', async () => {
  using directory = temporaryDirectory();
  const root = join(directory.path, 'root');
  const foreign = createForeignRoot(root, released(/^andromeda-\d.*-linux-arm64$/));
  const version = await foreign.run({ uid: 0 }, 'version');
  assert.match(version.stdout, /^fast SSH ciphers loaded$/m, version.stderr);
  await using service = await serveFrom(foreign, root, { uid: 0 });
  assert.match(service.log(), /fastCiphers\W+true/);
  const me = JSON.parse(await service.cli('call', 'business', 'GET', '/me'));
  assert.equal(me.user.primary_email, 'ada@physics.example');
  await service.registerKey();
  const { person, target, gateway } = service;
  const ended = await person('ssh', ['-p', `${gateway}`, target, 'id -u; exit 3']);
  assert.deepEqual(ended, { status: 3, out: '20000\n', err: '' }, service.log());
  assert.equal(await service.stop(), 0, service.log());
});
