import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type JobTarget, longestLoginName, parseLoginName } from '../../src/domain/access/ssh-session.ts';
import { mulberry } from '../support/random.ts';

const clusterId = '7b6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50';

const names: [string, { clusterId: string; username: string; job?: JobTarget } | undefined][] = [
  [`${clusterId}.ada`, { clusterId, username: 'ada' }],
  [`${clusterId.toUpperCase()}.ada`, { clusterId, username: 'ada' }],
  [`${clusterId}.a_b-9`, { clusterId, username: 'a_b-9' }],
  [`${clusterId}.a${'b'.repeat(31)}`, { clusterId, username: `a${'b'.repeat(31)}` }],
  [`${clusterId}.a${'b'.repeat(32)}`, undefined],
  ['ada', undefined],
  ['', undefined],
  [clusterId, undefined],
  [`${clusterId}.`, undefined],
  [`${clusterId}-ada`, undefined],
  [`${clusterId}.Ada`, undefined],
  [`${clusterId}.a.b`, undefined],
  [`${clusterId}.ada\n`, undefined],
  [`alpha.ada`, undefined],
  [`${clusterId}.ada+job`, { clusterId, username: 'ada', job: {} }],
  [`${clusterId}.ada+4711`, { clusterId, username: 'ada', job: { id: '4711' } }],
  [`${clusterId}.ada+4711_3`, { clusterId, username: 'ada', job: { id: '4711_3' } }],
  [`${clusterId}.ada+4711+1`, { clusterId, username: 'ada', job: { id: '4711+1' } }],
  [`${clusterId}.ada+4711.n-1.x`, { clusterId, username: 'ada', job: { id: '4711', node: 'n-1.x' } }],
  ...[
    ...['+', '+jobs', '+job.a1', '+x', '+47a', '+47_', '+47.', '+47.-a', "+47.a'", '+47.$a', '+47 ', '+-1'],
    ...['+47\n', '+47_1_2', '+12345678901', `+47.${'n'.repeat(65)}`],
  ].map((suffix): [string, undefined] => [`${clusterId}.ada${suffix}`, undefined]),
];
for (const [name, expected] of names) {
  test(`login name ${JSON.stringify(name)} ${expected ? 'is taken apart' : 'is none'}`, () => {
    assert.deepEqual(parseLoginName(name), expected);
  });
}

const names32 = (random: () => number) => {
  const letters = 'abcdef0123456789-._ABZ\n\0é\u202e';
  const pick = () => letters[Math.floor(random() * letters.length)] ?? '';
  const base = random() < 0.5 ? `${clusterId}.` : '';
  return base + Array.from({ length: Math.floor(random() * 60) }, pick).join('');
};

test('the longest login name is as long as it says', () => {
  const id = '4294967295_4294967295';
  const name = `${clusterId}.a${'b'.repeat(31)}+${id}.${'n'.repeat(64)}`;
  assert.equal(name.length, longestLoginName);
  assert.deepEqual(parseLoginName(name)?.job, { id, node: 'n'.repeat(64) });
});

test('fuzz: a login name is taken apart only when it is exactly <cluster-id>.<username>', (t) => {
  const seed = Number(process.env['FUZZ_SEED'] ?? Date.now() % 1_000_000_007);
  t.diagnostic(`FUZZ_SEED=${seed}`);
  const random = mulberry(seed);
  const until = Date.now() + Number(process.env['FUZZ_SECONDS'] ?? 1) * 1000;
  for (let round = 0; round % 1000 !== 0 || Date.now() < until; round += 1) {
    const name = names32(random);
    const parsed = parseLoginName(name);
    const context = `FUZZ_SEED=${seed} ${JSON.stringify(name)}`;
    if (parsed) assert.equal(`${parsed.clusterId}.${parsed.username}`, name.toLowerCase(), context);
    if (parsed) assert.match(parsed.username, /^[a-z][a-z0-9_-]{0,31}$/, context);
    const isName = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.[a-z][a-z0-9_-]{0,31}$/.test(
      name.slice(0, 36).toLowerCase() + name.slice(36),
    );
    assert.equal(parsed !== undefined, isName && !name.endsWith('\n'), context);
  }
});
