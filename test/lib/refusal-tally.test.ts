import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRefusalTally } from '../../src/lib/limits.ts';

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
