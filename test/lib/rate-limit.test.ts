import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRateLimit } from '../../src/lib/rate-limit.ts';

test('a rate limit: so many at once, then a rate, and bounded memory', () => {
  let at = 0;
  const limit = createRateLimit({ burst: 3, everyMs: 100 }, () => at);
  const waits = Array.from({ length: 5 }, () => {
    limit.use('key');
    return limit.waitMs('key');
  });
  assert.deepEqual(waits, [0, 0, 100, 200, 200]);
  at += 200;
  assert.equal(limit.waitMs('key'), 0);
  limit.use('key');
  assert.equal(limit.waitMs('key'), 100);
  limit.undo('key');
  assert.equal(limit.waitMs('key'), 0);
  assert.equal(limit.waitMs('other'), 0);
  for (let i = 0; i < 10_001; i++) limit.use(`other ${i}`);
  assert.equal(limit.waitMs('key'), 0);
});

test('places are reserved one after the other, and none that would wait too long', () => {
  let at = 0;
  const limit = createRateLimit({ burst: 3, everyMs: 100 }, () => at);
  const reserve = (time: number) => {
    at = time;
    return limit.reserve('a', 10_000);
  };
  assert.deepEqual([0, 0, 0, 0, 0, 1000].map(reserve), [0, 0, 0, 100, 200, 0]);
  assert.equal(limit.reserve('b', 10_000), 0);
  const slow = createRateLimit({ burst: 1, everyMs: 1000 }, () => 0);
  const waits = Array.from({ length: 12 }, () => slow.reserve('a', 10_000));
  assert.deepEqual(waits.slice(8), [8000, 9000, 10_000, 10_000]);
});
