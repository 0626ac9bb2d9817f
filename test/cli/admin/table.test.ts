import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatTable } from '../../../src/cli/output.ts';

test('columns are as wide as their widest cell on a terminal, and lines end without blanks', () => {
  const rows = [
    ['a', 1, true],
    ['日本語', null, false],
    ['Zoe\u0308', undefined, ''],
    ['long name\nof two lines', 10_000, 'x\u001b[31m'],
  ];
  assert.equal(
    formatTable(['NAME', 'N', 'LAST'], rows),
    [
      'NAME                    N      LAST',
      'a                       1      yes',
      '日本語                  -      no',
      'Zoe\u0308                     -      -',
      'long name of two lines  10000  x\\u001b[31m',
    ].join('\n'),
  );
});

test('a table without rows is its heading', () => {
  assert.equal(formatTable(['A', 'B'], []), 'A  B');
});
