import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type IdPrefix, isId, isUuid, newId, newUuid } from '../../src/domain/id.ts';
import { clockAhead } from '../../src/domain/server.ts';
import { isTime } from '../../src/domain/units.ts';

const times = [
  '2030-01-01T00:00:00Z',
  '2030-01-01T00:00:00.5Z',
  `2030-01-01T00:00:00.${'123456789'.repeat(20)}Z`,
  '2028-02-29T23:59:59+23:59',
  '2000-02-29T00:00:00-00:00',
  '9999-12-31T23:59:59.999Z',
  '9999-12-31T23:59:59+01:00',
  '0000-01-01T00:00:00Z',
  '2027-01-31t00:00:00z',
  '2027-01-31t00:00:00.5+01:00',
];
for (const text of times) test(`${text.slice(0, 40)} is a time`, () => assert.ok(isTime(text)));

const none = [
  ['a date alone', '2030-01-01'],
  ['a time without a zone', '2030-01-01T00:00:00'],
  ['a sentence', 'soon'],
  ['a blank before', ' 2030-01-01T00:00:00Z'],
  ['a line end behind', '2030-01-01T00:00:00Z\n'],
  ['a month 13 and hour 99', '2030-13-45T99:99:99Z'],
  ['30 February', '2030-02-30T00:00:00Z'],
  ['29 February of a year without', '2100-02-29T00:00:00Z'],
  ['31 April', '2030-04-31T00:00:00Z'],
  ['month 0', '2030-00-10T00:00:00Z'],
  ['day 0', '2030-01-00T00:00:00Z'],
  ['24 o’clock', '2030-01-01T24:00:00Z'],
  ['a leap second', '2016-12-31T23:59:60Z'],
  ['an offset of 24 hours', '2030-01-01T00:00:00+24:00'],
  ['an offset of 60 minutes', '2030-01-01T00:00:00+01:60'],
  ['the year 10000 in UTC', '9999-12-31T23:59:59-01:00'],
  ['the year before 0000 in UTC', '0000-01-01T00:00:00+01:00'],
  ['a year of six digits', '275760-09-13'],
  ['a year of six digits with a sign', '+275760-09-13T00:00:00Z'],
] as const;
for (const [what, text] of none) test(`${what} is no time`, () => assert.ok(!isTime(text), text));

test('a clock is off by what a slow answer does not explain', () => {
  for (const [there, ahead] of [
    [900, -100],
    [1_000, 0],
    [3_000, 0],
    [11_000, 0],
    [11_500, 500],
  ] as const)
    assert.equal(clockAhead(there, 1_000, 11_000), ahead, `${there}`);
});

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
