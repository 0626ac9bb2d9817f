/** When a certificate is renewed, and how long failures wait. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { renewalAt, retryAfter } from '../../src/service/certificates/renewal.ts';

test('renewed at two thirds of the life, spread over a hundredth', () => {
  const life = { beginsAt: 0, endsAt: 90 };
  assert.equal(renewalAt(life, 0), 60);
  assert.equal(renewalAt(life, 1), 60.9);
});

test('failures wait a minute, then twice as long each, six hours at most; and as long as the authority asks, a week at most', () => {
  assert.equal(retryAfter(1, 1), 64_000);
  assert.equal(retryAfter(2, 1), 128_000);
  assert.equal(retryAfter(1, 0), 32_000);
  assert.equal(retryAfter(1000, 1), 6 * 3_600_000);
  assert.equal(retryAfter(1, 1, 3_600_000), 3_600_000);
  assert.equal(retryAfter(1, 1, Number.MAX_VALUE), 7 * 24 * 3_600_000);
});
