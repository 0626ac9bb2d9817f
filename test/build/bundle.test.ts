/** What the executable is made of; that the whole of it has the same bytes is in reproducible.full.test.ts. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { bundleProgram, missingForBundle } from '../../scripts/build/bundle.ts';

const root = join(import.meta.dirname, '../..');
const missing = missingForBundle(root);
const skip = missing.length > 0 ? `the build needs ${missing.join(', ')}` : false;

test('two bundles of the source are the same', { skip }, async () => {
  assert.deepEqual(await bundleProgram(root), await bundleProgram(root));
});
