import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '../src/log.ts';

test('what a stranger sends cannot drive the terminal that shows the log, and every event is one line', () => {
  const lines: string[] = [];
  const user = '\u001b[2J\u009b2J\u202eada\u2066\u200b\u2028\n\u007f';
  createLogger('info', (line) => lines.push(line)).info('login refused', { user });
  const [line = ''] = lines;
  assert.doesNotMatch(line.slice(0, -1), /[\p{Cc}\p{Cf}\p{Zl}]/u);
  assert.equal(JSON.parse(line).user, user);
});
