import assert from 'node:assert/strict';
import type { Reply } from './app.ts';

/** A refusal has the three fields of the contract and no other. `said`: its code, and a pattern of its message. */
export function refused({ status, body }: Reply, expected: number, ...said: (string | RegExp)[]): void {
  const { code, retryable, message, error = message, ...more } = body;
  const whole = JSON.stringify(body);
  assert.deepEqual(
    [status, typeof retryable, typeof error, more],
    [expected, 'boolean', 'string', {}],
    whole,
  );
  for (const one of said) {
    if (typeof one === 'string') assert.equal(code, one, whole);
    else assert.match(error, one);
  }
}
