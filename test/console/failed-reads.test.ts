import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { noBrowser } from '../support/browser.ts';
import { pages, useFailures } from './failed-reads.ts';

test('each page is looked at here', () => {
  const routes = readFileSync(new URL('../../src/console/app/routes.tsx', import.meta.url), 'utf8');
  const known = [...routes.matchAll(/\bpage\('(\/[^']*)'/g)].map(([, path]) => path);
  assert.deepEqual(known.toSorted(), [...Object.keys(pages), '/$'].toSorted());
});

const fail = useFailures();
test(
  'on each page a read that it counts from fails: it is said, and nothing is counted',
  { skip: noBrowser },
  () => fail('counted'),
);
