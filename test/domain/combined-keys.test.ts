import assert from 'node:assert/strict';
import { test } from 'node:test';
import { combinedInUse } from '../../src/domain/key-rotation.ts';

const key = (id: string, since: string) => ({ id, since });

test('of several servers, the last one counts: a key is in use, or next, when all of them have it', () => {
  assert.equal(combinedInUse([], 'b'), undefined);
  const one = { current: key('b', '2'), next: key('c', '4') };
  assert.deepEqual(combinedInUse([one], 'b'), one);
  const late = { current: key('a', '1') };
  assert.deepEqual(combinedInUse([one, late], 'b'), { current: late.current });
  assert.deepEqual(combinedInUse([one, { current: key('b', '3'), next: key('c', '3') }], 'b'), {
    current: key('b', '3'),
    next: key('c', '4'),
  });
  assert.deepEqual(combinedInUse([one, { current: key('b', '1') }], 'b'), { current: key('b', '2') });
});
