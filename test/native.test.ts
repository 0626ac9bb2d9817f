import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { fastCiphersLoad, slowCiphers } from '../src/gateway/ssh/transport/fast-ciphers.ts';

test('the tests run on Node 24, the one that is pinned', () => {
  assert.match(process.version, /^v24\./);
});

const skip = !fastCiphersLoad() && spawnSync('c++', ['--version']).status !== 0 && slowCiphers;

test('ssh2 has its native ciphers where there is a compiler; without them copies are several times slower', {
  skip,
}, () => {
  assert.equal(fastCiphersLoad(), true);
});

test('ssh2’s ciphers may be collected at any moment: see scripts/native/object-wrap.h', { skip }, () => {
  const addon = createRequire(import.meta.url).resolve(
    'ssh2/lib/protocol/crypto/build/Release/sshcrypto.node',
  );
  assert.ok(!readFileSync(addon).includes('RemoveEnvironmentCleanupHook'));
});
