import assert from 'node:assert/strict';
import { test } from 'node:test';
import { present, snakeCased } from '../../src/domain/present.ts';

test('what is null or undefined is left out; what is empty, zero or false is a value', () => {
  assert.deepEqual(present({ a: null, b: undefined, c: '', d: 0, e: false }), { c: '', d: 0, e: false });
});

test('the fields that are named, and no others, by their names in snake_case', () => {
  const record = { id: 'x', createdByUserId: 'y', secret: 'z', endedAt: null };
  const shown = snakeCased(record, ['id', 'createdByUserId', 'endedAt']);
  assert.deepEqual(shown, { id: 'x', created_by_user_id: 'y', ended_at: null });
});
