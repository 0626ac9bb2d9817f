/** That the executable of a commit has the same bytes, whenever it is built. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { missingForBundle } from '../../scripts/build/bundle.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { buildExecutable } from '../support/executable.ts';

const missing = missingForBundle(join(import.meta.dirname, '../..'));
const skip = missing.length > 0 ? `the build needs ${missing.join(', ')}` : false;

test('two builds have the same bytes', { skip }, async () => {
  using directory = temporaryDirectory();
  const files = ['one', 'in/another/directory/two'].map((name) => join(directory.path, name));
  // At the same time, so that neither has the machine to itself.
  await Promise.all(files.map((file) => buildExecutable(file)));
  const [one = Buffer.of(), two = Buffer.of()] = files.map((file) => readFileSync(file));
  if (one.equals(two)) return;
  const at = one.findIndex((byte, index) => byte !== two[index]);
  const around = (bytes: Buffer) => bytes.subarray(at - 40, at + 40).toString('latin1');
  assert.fail(`byte ${at} of ${one.length} and ${two.length}: ${around(one)} and ${around(two)}`);
});
