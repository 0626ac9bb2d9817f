/** Keys that take one another's place, on disk: whole after each step, and after a step that was cut off anywhere. */
import assert from 'node:assert/strict';
import { linkSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  announceSshKey,
  heldKeys,
  loadSshKeySet,
  retireSshKey,
  switchSshKey,
  switchSshKeyBack,
  withdrawSshKey,
  writePublicPart,
} from '../../src/lib/ssh/key-set.ts';
import { temporaryDirectory } from '../support/directory.ts';

test('announced, switched, switched back, switched again, retired', () => {
  using directory = temporaryDirectory();
  const file = join(directory.path, 'key');
  const ids = () => {
    const { fingerprint, next, previous } = loadSshKeySet(file);
    for (const name of readdirSync(directory.path))
      assert.equal(statSync(join(directory.path, name)).mode & 0o777, 0o600, name);
    assert.equal(readFileSync(`${file}.pub`, 'utf8'), `${loadSshKeySet(file).publicKey} andromeda\n`);
    return [fingerprint, next?.fingerprint, previous?.fingerprint];
  };
  const [one] = ids();
  announceSshKey(file);
  const [, two] = ids();
  assert.deepEqual(ids(), [one, two, undefined]);
  switchSshKey(file);
  assert.deepEqual(ids(), [two, undefined, one]);
  switchSshKeyBack(file);
  assert.deepEqual(ids(), [one, two, undefined]);
  switchSshKey(file);
  assert.equal(heldKeys(loadSshKeySet(file)).length, 2);
  retireSshKey(file);
  assert.deepEqual(ids(), [two, undefined, undefined]);
  announceSshKey(file);
  withdrawSshKey(file);
  assert.deepEqual(ids(), [two, undefined, undefined]);
});

test('a switch that was cut off leaves the key in use, and can be repeated', () => {
  using directory = temporaryDirectory();
  const file = join(directory.path, 'key');
  const one = loadSshKeySet(file).fingerprint;
  announceSshKey(file);
  const two = loadSshKeySet(file).next?.fingerprint;
  linkSync(file, `${file}.previous`);
  const cut = loadSshKeySet(file);
  assert.deepEqual([cut.fingerprint, cut.next?.fingerprint, cut.previous], [one, two, undefined]);
  switchSshKey(file);
  const { fingerprint, previous } = loadSshKeySet(file);
  assert.deepEqual([fingerprint, previous?.fingerprint], [two, one]);

  // Cut off before the public part was written.
  renameSync(`${file}.previous`, file);
  const stale = readFileSync(`${file}.pub`, 'utf8');
  writePublicPart(file, loadSshKeySet(file));
  assert.notEqual(readFileSync(`${file}.pub`, 'utf8'), stale);
  // Half of a next key has another name.
  writeFileSync(`${file}.next.new`, '-----BEGIN');
  assert.equal(loadSshKeySet(file).next, undefined);
});
