/** Every claim of docs/security.md names the test that shows it. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readPage } from './pages.ts';

const root = join(import.meta.dirname, '../..');
const citations = [...readPage('security.md').text.matchAll(/`(test\/[^`]+\.test\.ts)`, "([^"]+)"/g)];

test('docs/security.md cites tests, and every one that it cites is there', () => {
  assert.ok(citations.length > 40, `${citations.length} citations`);
  const missing = citations
    .map(([, file = '', name = '']) => ({ file, name }))
    .filter(({ file, name }) => {
      const path = join(root, file);
      return !existsSync(path) || !isTestOf(readFileSync(path, 'utf8'), name);
    });
  assert.deepEqual(missing, []);
});

test('no citation of docs/security.md is written so that nobody checks it', () => {
  const mentions = readPage('security.md').text.match(/test\/[\w/.-]+\.test\.ts/g) ?? [];
  assert.equal(mentions.length, citations.length);
});

/** Whether a file has a test of that name; variables stand in it as they do in the file. */
function isTestOf(source: string, name: string): boolean {
  const text = name.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return new RegExp(`test\\(\\s*['"\`]${text}['"\`]`).test(source);
}
