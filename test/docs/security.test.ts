/** Every claim of docs/security.md has tests that show it, and every test that is named for one exists. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readPage } from './pages.ts';
import { claims } from './security-claims.ts';

const root = join(import.meta.dirname, '../..');
const bullets = [...readPage('security.md', 'What each can and cannot do').text.matchAll(/^- (.*)$/gm)].map(
  ([, bullet = '']) => bullet,
);

test('every claim of docs/security.md has tests, and every one that has is on the page once', () => {
  const begins = [...claims.keys()];
  assert.ok(begins.length > 40, `${begins.length} claims`);
  const matches = (bullet: string) => begins.filter((begin) => bullet.startsWith(begin));
  assert.deepEqual(
    bullets.filter((bullet) => matches(bullet).length !== 1),
    [],
    'claims without tests',
  );
  const onPage = bullets.flatMap(matches);
  assert.deepEqual(onPage.toSorted(), begins.toSorted());
});

test('every test that shows a claim of docs/security.md exists', () => {
  for (const [claim, tests] of claims) assert.notEqual(tests.length, 0, claim);
  const missing = [...claims.values()].flat().filter(({ file, title }) => {
    const path = join(root, 'test', `${file}.test.ts`);
    return !existsSync(path) || !isTestOf(readFileSync(path, 'utf8'), title);
  });
  assert.deepEqual(missing, []);
});

/** Whether a file has a test of that name, in which … is for a variable. */
function isTestOf(source: string, name: string): boolean {
  const text = name.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&').replaceAll('…', '\\$\\{[^}]+\\}');
  return new RegExp(`test\\(\\s*(?:'${text.replaceAll("'", "\\\\?'")}'|["\`]${text}["\`])`).test(source);
}
