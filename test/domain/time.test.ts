import assert from 'node:assert/strict';
import { test } from 'node:test';
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
