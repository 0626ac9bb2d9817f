import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readEmails } from '../../src/domain/people/person.ts';

const rows: [string, string[], string[]][] = [
  ['a@x.example', ['a@x.example'], []],
  [
    'a@x.example, b@x.example;c@x.example\nd@x.example\te@x.example f@x.example',
    'abcdef'.split('').map((one) => `${one}@x.example`),
    [],
  ],
  ['Ada Lovelace <ada@x.example>, "Doe, Jane" <jane@x.example>', ['ada@x.example', 'jane@x.example'], []],
  ['a@x.example\nA@X.example\n <a@x.example>', ['a@x.example'], []],
  ['mailto:a@x.example. (b@x.example)', ['a@x.example', 'b@x.example'], []],
  ['Jane Doe jane@x.example', ['jane@x.example'], []],
  ['<img src=x onerror=1> x@y@z <nobody>', [], ['x@y@z']],
  ['', [], []],
];
for (const [text, found, unread] of rows) {
  test(`${JSON.stringify(text)} is read`, () => {
    assert.deepEqual(readEmails(text), { found, unread });
  });
}

test('a long text without an end costs no more than its length', () => {
  const { found } = readEmails(`${'a'.repeat(50_000)}${'"'.repeat(50_000)}`);
  assert.deepEqual(found, []);
});
