/** An SSH key and the one that takes its place, as one text: the same steps as with files. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { announceSshKey, loadSshKeySet, switchSshKey } from '../../src/lib/ssh/key-set.ts';
import {
  makeSshKeySet,
  parseSshKeySet,
  readKeySetFiles,
  stepSshKeySet,
} from '../../src/lib/ssh/key-set-text.ts';
import { temporaryDirectory } from '../support/directory.ts';

const ids = (text: string) => {
  const { fingerprint, next, previous } = parseSshKeySet(text, 'it');
  return [fingerprint, next?.fingerprint, previous?.fingerprint];
};

test('announced, in use, back, retired; a step that has nothing to do changes nothing', () => {
  const made = makeSshKeySet();
  const [one] = ids(made);
  assert.equal(stepSshKeySet('switch', made, 'it'), made);
  assert.equal(stepSshKeySet('back', made, 'it'), made);
  const announced = stepSshKeySet('announce', made, 'it');
  const [, two] = ids(announced);
  assert.ok(two !== undefined && two !== one);
  const switched = stepSshKeySet('switch', announced, 'it');
  assert.deepEqual(ids(switched), [two, undefined, one]);
  assert.deepEqual(ids(stepSshKeySet('back', switched, 'it')), [one, two, undefined]);
  assert.deepEqual(ids(stepSshKeySet('retire', switched, 'it')), [two, undefined, undefined]);
  assert.deepEqual(ids(stepSshKeySet('withdraw', announced, 'it')), [one, undefined, undefined]);
});

test('files make the same text, and what is no text of keys is refused without being quoted', () => {
  using directory = temporaryDirectory();
  const file = join(directory.path, 'key');
  const { fingerprint: one } = loadSshKeySet(file);
  announceSshKey(file);
  const two = loadSshKeySet(file).next?.fingerprint;
  assert.deepEqual(ids(readKeySetFiles(file)), [one, two, undefined]);
  switchSshKey(file);
  assert.deepEqual(ids(readKeySetFiles(file)), [two, undefined, one]);
  for (const text of ['', '{', '{}', '{"current":"hush"}', '{"current":1}'])
    assert.throws(() => parseSshKeySet(text, 'it'), {
      code: 'invalid_state',
      message: /^it holds no SSH key that can be used\. Restore it from a backup\.$/,
    });
});
