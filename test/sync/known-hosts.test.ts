/** The keys that hosts showed first, known to every server of a shared database. */
import assert from 'node:assert/strict';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { createKnownHosts, type SharedKnownHosts } from '../../src/sync/slurm/known-hosts.ts';
import { temporaryDirectory } from '../support/directory.ts';

test('a host is taken at its word once, by one server; every other one expects that key', async () => {
  using one = temporaryDirectory();
  using two = temporaryDirectory();
  let text = '';
  const shared: SharedKnownHosts = {
    read: async () => text,
    async add(_alias, lines) {
      text += lines;
    },
  };
  const first = createKnownHosts(one.path, shared);
  const met = await first.prepare('login', undefined);
  assert.equal(met.takesNew, true);
  // Where ssh was refused it wrote nothing, and the host is as unknown as before.
  await first.keep('login', met);
  assert.equal((await first.prepare('login', undefined)).takesNew, true);
  const line = 'login ssh-ed25519 AAAA\n';
  writeFileSync(met.file, line, { mode: 0o600 });
  await first.keep('login', met);

  for (const server of [first, createKnownHosts(two.path, shared)]) {
    const known = await server.prepare('login', undefined);
    assert.deepEqual([known.takesNew, readFileSync(known.file, 'utf8')], [false, line]);
    assert.equal(statSync(known.file).mode & 0o777, 0o600);
    // What somebody puts into the file is not taken up.
    writeFileSync(known.file, 'login ssh-ed25519 BBBB\n');
    await server.keep('login', known);
    assert.equal(text, line);
  }
  const pinned = await first.prepare('login', 'ssh-ed25519 CCCC');
  assert.deepEqual([pinned.takesNew, readFileSync(pinned.file, 'utf8')], [false, 'login ssh-ed25519 CCCC\n']);
});

test('without a shared database it is one file of this server, to which ssh adds', async () => {
  using directory = temporaryDirectory();
  const known = createKnownHosts(directory.path, undefined);
  const { file, takesNew } = await known.prepare('login', undefined);
  assert.deepEqual([file, takesNew], [`${directory.path}/known_hosts.met`, true]);
});
