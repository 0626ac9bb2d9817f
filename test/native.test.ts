import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { fastCiphersLoad } from '../src/gateway/ssh/transport/fast-ciphers.ts';

test('the tests run on Node 24, the one that is pinned', () => {
  assert.match(process.version, /^v24\./);
});

test('ssh2 has its native ciphers; without them the gateway is three to nine times slower', () => {
  assert.equal(fastCiphersLoad(), true);
});

test('ssh2’s ciphers may be collected at any moment: see scripts/native/object-wrap.h', () => {
  const addon = createRequire(import.meta.url).resolve(
    'ssh2/lib/protocol/crypto/build/Release/sshcrypto.node',
  );
  assert.ok(!readFileSync(addon).includes('RemoveEnvironmentCleanupHook'));
});
