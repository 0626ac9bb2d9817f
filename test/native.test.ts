import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasNativeCiphers } from '../src/gateway/ssh2.ts';

test('the tests run on Node 24, the one that is pinned', () => {
  assert.match(process.version, /^v24\./);
});

test('ssh2 has its native ciphers; without them the gateway is three to nine times slower', () => {
  assert.equal(hasNativeCiphers, true);
});
