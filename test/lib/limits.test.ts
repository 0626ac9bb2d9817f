import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  createBackOffLimiter,
  createRateLimiter,
  createRefusalTally,
  retryDelay,
} from '../../src/lib/limits.ts';

test('a back-off is never longer than the interval', () => {
  for (const failures of [5, 6, 1_000]) assert.equal(retryDelay(failures, 1, 15_000), 15_000);
});

const delays: [number, number, number][] = [
  [1, 0, 500],
  [1, 1, 1_000],
  [2, 1, 2_000],
  [3, 0.5, 3_000],
  [6, 1, 32_000],
  [7, 1, 60_000],
  [7, 0, 30_000],
  [1_000, 1, 60_000],
  [5_000, 0, 30_000],
];
for (const [failures, random, ms] of delays) {
  test(`after failure ${failures}, with ${random} of the jitter, it waits ${ms} ms`, () => {
    assert.equal(retryDelay(failures, random, 60_000), ms);
  });
}

test('back-off: free tries, doubling, a cap, forgetting, and bounded memory', () => {
  let at = 0;
  const backOff = createBackOffLimiter({ free: 2, firstMs: 100, mostMs: 1000, forgetMs: 5000 }, () => at);
  const waits = Array.from({ length: 8 }, () => {
    backOff.use('key');
    return backOff.waitMs('key');
  });
  assert.deepEqual(waits, [0, 100, 200, 400, 800, 1000, 1000, 1000]);
  backOff.undo('key');
  at += 999;
  assert.equal(backOff.waitMs('key'), 1);
  assert.equal(backOff.waitMs('other'), 0);
  at += 5000;
  assert.equal(backOff.waitMs('key'), 0);
  backOff.use('key');
  backOff.use('key');
  for (let i = 0; i < 10_000; i++) backOff.use(`other ${i}`);
  assert.equal(backOff.waitMs('key'), 0);
});

test('the whole delay doubles up to its most, whatever time has passed, until the key is forgotten', () => {
  let at = 0;
  const options = { free: 3, firstMs: 500, mostMs: 2000, forgetMs: 600_000 };
  const backOff = createBackOffLimiter(options, () => at);
  const delays = Array.from({ length: 7 }, () => {
    backOff.use('10.0.0.1');
    return backOff.delayMs('10.0.0.1');
  });
  assert.deepEqual(delays, [0, 0, 500, 1000, 2000, 2000, 2000]);
  assert.equal(backOff.delayMs('10.0.0.2'), 0);
  at += 599_999;
  assert.deepEqual([backOff.delayMs('10.0.0.1'), backOff.waitMs('10.0.0.1')], [2000, 0]);
  at += 1;
  assert.equal(backOff.delayMs('10.0.0.1'), 0);
});

test('a rate limit: so many at once, then a rate, and bounded memory', () => {
  let at = 0;
  const limit = createRateLimiter({ burst: 3, everyMs: 100 }, () => at);
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
  const limit = createRateLimiter({ burst: 3, everyMs: 100 }, () => at);
  const reserve = (time: number) => {
    at = time;
    return limit.take('a', 10_000);
  };
  assert.deepEqual([0, 0, 0, 0, 0, 1000].map(reserve), [0, 0, 0, 100, 200, 0]);
  assert.equal(limit.take('b', 10_000), 0);
  const slow = createRateLimiter({ burst: 1, everyMs: 1000 }, () => 0);
  const waits = Array.from({ length: 12 }, () => slow.take('a', 10_000));
  assert.deepEqual(waits.slice(8), [8000, 9000, 10_000, 10_000]);
});

test('the first refusals of a source and reason are logged, the others counted and summed up once', () => {
  const sums: unknown[] = [];
  const tally = createRefusalTally(2, (...sum) => sums.push(sum));
  const logged = Array.from({ length: 5 }, () => tally.count('192.0.2.1', 'full'));
  assert.deepEqual(logged, [true, true, false, false, false]);
  assert.equal(tally.count('192.0.2.1', 'stopping'), true);
  assert.equal(tally.count('192.0.2.2', 'full'), true);
  tally.flush();
  assert.deepEqual(sums, [['192.0.2.1', 'full', 3]]);
  tally.flush();
  assert.equal(sums.length, 1);
  assert.equal(tally.count('192.0.2.1', 'full'), true);
});

for (const [what, refuse] of [
  ['reasons', (n: number) => ['192.0.2.1', `413 POST /${n}`] as const],
  ['sources', (n: number) => [`source ${n % 3_000}`, 'full'] as const],
] as const)
  test(`however many ${what} there are, the lines are few and no refusal is lost`, () => {
    const sums: number[] = [];
    const tally = createRefusalTally(1, (_source, _reason, refusals) => sums.push(refusals));
    let logged = 0;
    for (let n = 0; n < 30_000; n += 1) {
      const [source, reason] = refuse(n);
      if (tally.count(source, reason)) logged += 1;
    }
    tally.flush();
    assert.ok(logged + sums.length <= 101, `${logged} lines and ${sums.length} sums`);
    assert.equal(logged + sums.reduce((sum, one) => sum + one, 0), 30_000);
  });
