/** How a key gives way to another, by the time alone. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { allKeys, keySetText, keysAt, readKeySet, settled, withNext } from '../../src/domain/key-rotation.ts';

const day = 86_400_000;
const start = Date.parse('2030-01-01T00:00:00.000Z');
const at = (days: number) => start + days * day;

test('both hold for the kept time: the former is used for its first half, the next for its second, and then alone', () => {
  const set = withNext({ key: 'old' }, 'new', 30, start);
  const [from, until] = ['2030-01-16T00:00:00.000Z', '2030-01-31T00:00:00.000Z'];
  assert.deepEqual(set, { key: 'old', next: { key: 'new', from, until } });
  const rows: [days: number, held: object, all: string[]][] = [
    [0, { used: 'old', next: 'new', from, until }, ['old', 'new']],
    [14.999, { used: 'old', next: 'new', from, until }, ['old', 'new']],
    [15, { used: 'new', former: 'old', until }, ['new', 'old']],
    [29.999, { used: 'new', former: 'old', until }, ['new', 'old']],
    [30, { used: 'new' }, ['new']],
    [3000, { used: 'new' }, ['new']],
  ];
  for (const [days, held, all] of rows) {
    assert.deepEqual(keysAt(set, at(days)), held, `${days} days`);
    assert.deepEqual(allKeys(keysAt(set, at(days))), all);
    assert.deepEqual(settled(set, at(days)), days < 30 ? set : { key: 'new' });
  }
  assert.deepEqual(keysAt({ key: 'old' }, start), { used: 'old' });
});

test('for no days, the next holds alone at once, also in the place of one that was to come', () => {
  const set = withNext(withNext({ key: 'old' }, 'between', 30, start), 'new', 0, at(1));
  assert.deepEqual(set, { key: 'new' }, 'whatever the clock says');
});

test('a set is one text, and what is none is refused without being quoted', () => {
  for (const set of [{ key: 'old' }, withNext({ key: 'old' }, 'new', 30, start)])
    assert.deepEqual(readKeySet(keySetText(set), 'it'), set);
  for (const text of ['', '{', '{}', '{"key":1}', '{"key":"hush","next":{"key":"hush"}}'])
    assert.throws(() => readKeySet(text, 'it'), {
      code: 'invalid_state',
      message: /^it holds no key that can be used\. Restore it from a backup\.$/,
    });
});
