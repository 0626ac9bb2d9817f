/** The order in which a key takes the place of another. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type KeyRotationState,
  keySteps,
  prematureKeyStep,
  refusalOfKeyStep,
  takenUp,
} from '../../src/domain/key-rotation.ts';

const at = (seconds: number) => new Date(seconds * 1000).toISOString();
const state = (more: Partial<KeyRotationState>): KeyRotationState => ({
  current: 'one',
  inUse: undefined,
  signedMs: 0,
  ...more,
});

for (const [what, given, possible] of [
  ['one key', {}, ['announce']],
  ['a next key', { next: 'two' }, ['switch', 'withdraw']],
  ['a key from before', { previous: 'zero' }, ['back', 'retire']],
] as const)
  test(`with ${what}, the steps are ${possible.join(' and ')}`, () => {
    const steps = keySteps.filter((step) => refusalOfKeyStep(step, state(given)) === undefined);
    assert.deepEqual(steps, possible);
  });

test('a switch waits until the service has taken up the next key', () => {
  const next = { next: 'two' };
  const premature = (inUse: KeyRotationState['inUse']) =>
    prematureKeyStep('switch', state({ ...next, inUse }), 0);
  assert.match(premature(undefined) ?? '', /Reload the service/);
  assert.match(premature({ current: { id: 'one', since: at(0) } }) ?? '', /Reload the service/);
  const inUse = takenUp({ current: { id: 'one', since: at(0) } }, { current: 'one', next: 'two', at: at(5) });
  assert.deepEqual(inUse, { current: { id: 'one', since: at(0) }, next: { id: 'two', since: at(5) } });
  assert.equal(premature(inUse), undefined);
});

test('a key is retired when the service uses the other, and what it signed has ended', () => {
  const premature = (inUse: KeyRotationState['inUse'], seconds: number) =>
    prematureKeyStep(
      'retire',
      state({ current: 'two', previous: 'one', inUse, signedMs: 60_000 }),
      seconds * 1000,
    );
  assert.match(premature({ current: { id: 'one', since: at(0) } }, 1000) ?? '', /still uses one\. Reload/);
  const inUse = takenUp({ current: { id: 'one', since: at(0) } }, { current: 'two', at: at(100) });
  assert.match(premature(inUse, 159) ?? '', /is good until 1970-01-01T00:02:40\.000Z/);
  assert.equal(premature(inUse, 160), undefined);
});
