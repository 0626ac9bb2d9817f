/** The client calls what the documents have: the compiler holds the types, these tests the paths. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fillPath } from '../../src/cli/net/api.ts';

const rows: [string, Parameters<typeof fillPath>[1], string][] = [
  ['/me', {}, '/me'],
  ['/a/{b}/c/{d}', { path: { b: 'x/y?', d: 'ü' } }, '/a/x%2Fy%3F/c/%C3%BC'],
  ['/a', { query: { after: undefined, limit: 200, name: 'a b&c' } }, '/a?limit=200&name=a+b%26c'],
  ['/a', { query: { after: undefined } }, '/a'],
];
for (const [path, given, expected] of rows)
  test(`${path} is called as ${expected}`, () => assert.equal(fillPath(path, given), expected));
