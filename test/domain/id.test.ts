import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type IdPrefix, isId, isUuid, newId, newUuid } from '../../src/domain/id.ts';

const prefixes: IdPrefix[] = ['org', 'user', 'ssh_key', 'org_username', 'reservation'];
const now = Date.parse('2026-03-01T12:00:00Z');

for (const prefix of prefixes) {
  test(`an ID of ${prefix} is the prefix and a ULID`, () => {
    const id = newId(prefix, now);
    assert.match(id, new RegExp(`^${prefix}_[0-7][0-9A-HJKMNP-TV-Z]{25}$`));
    assert.ok(isId(prefix, id));
  });
}

test('an ID begins with the time at which it was made, so later ones sort behind', () => {
  const later = Date.now() + 60_000;
  const ids = [0, 1, 2, 1_000_000].map((offset) => newId('user', later + offset));
  assert.deepEqual([...ids].sort(), ids);
});

test('IDs made in the same millisecond differ and sort as they were made', () => {
  const at = Date.now() + 120_000;
  const ids = Array.from({ length: 1_000 }, () => newId('user', at));
  assert.equal(new Set(ids).size, ids.length);
  assert.deepEqual([...ids].sort(), ids);
});

const ulid = '01JD0000000000000000000000';
const notIds = [
  ...['', 'ssh_key_', ulid, `ssh_key-${ulid}`, `user_${ulid}`, `ssh_key_${ulid}0`, `ssh_key_${ulid}\n`],
  ...[`ssh_key_${ulid.slice(1)}`, `ssh_key_8${ulid.slice(1)}`, `ssh_key_${ulid.toLowerCase()}`],
  ...['I', 'L', 'O', 'U'].map((letter) => `ssh_key_${ulid.slice(0, 25)}${letter}`),
];

test('an SSH key ID is ssh_key_ and a ULID, and nothing else is', () => {
  assert.ok(isId('ssh_key', `ssh_key_${ulid}`));
  for (const id of notIds) assert.equal(isId('ssh_key', id), false, JSON.stringify(id));
});

test('a cluster ID is a UUID, in either case', () => {
  const uuid = newUuid();
  assert.ok(isUuid(uuid));
  assert.ok(isUuid(uuid.toUpperCase()));
  const texts = ['', uuid.slice(1), `${uuid}0`, `{${uuid}}`, uuid.replaceAll('-', ''), `${uuid}\n`];
  for (const id of [...texts, `org_${ulid}`]) {
    assert.equal(isUuid(id), false, JSON.stringify(id));
  }
});
