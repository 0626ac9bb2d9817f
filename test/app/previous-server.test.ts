/** What a server was called before: its own sessions are of that name, and a copy of its data directory has no part in them. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { takeOverFrom } from '../../src/service/compose/peers/sessions.ts';
import { temporaryDirectory } from '../support/directory.ts';

const gone = () => false;
const live = () => true;

test('a server knows what it was called before, unless another may have that name', () => {
  using first = temporaryDirectory();
  using copy = temporaryDirectory();
  const file = (directory: string) => join(directory, 'server.json');
  assert.equal(takeOverFrom(first.path, { server: 'one', isLive: gone }), undefined);
  // It was killed a moment ago, and is not known to be gone yet.
  assert.equal(takeOverFrom(first.path, { server: 'two', isLive: live }), 'one');
  writeFileSync(file(copy.path), readFileSync(file(first.path)));
  assert.equal(takeOverFrom(copy.path, { server: 'three', isLive: gone }), undefined);

  // As on another start of the host, which a copy of the machine is as well.
  const noted = JSON.parse(readFileSync(file(first.path), 'utf8'));
  const elsewhere = () => writeFileSync(file(first.path), JSON.stringify({ ...noted, boot: 'another' }));
  elsewhere();
  assert.equal(takeOverFrom(first.path, { server: 'four', isLive: live }), undefined);
  elsewhere();
  assert.equal(takeOverFrom(first.path, { server: 'five', isLive: gone }), 'two');

  writeFileSync(file(first.path), '{"server":');
  assert.equal(takeOverFrom(first.path, { server: 'six', isLive: gone }), undefined);
});
