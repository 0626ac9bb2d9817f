/** What people are called and sign in with: usernames, addresses and passwords. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { checkNewPassword } from '../../src/domain/people/password.ts';
import { homeOf, isUsername, readEmails, usernamesFromEmail } from '../../src/domain/people/person.ts';
import { limit } from '../support/limit.ts';

const names: [string, boolean, string][] = [
  ['a', true, 'one character is enough'],
  [`a${'b'.repeat(31)}`, true, '32 characters are allowed'],
  [`a${'b'.repeat(32)}`, false, '33 characters are too many'],
  ['', false, 'an empty name is none'],
  ['ada-l_2', true, 'lowercase letters, digits, _ and - may follow'],
  ['1ada', false, 'a digit cannot come first'],
  ['_ada', false, 'an underscore cannot come first'],
  ['-ada', false, 'a hyphen cannot come first'],
  ['Ada', false, 'no uppercase letter first'],
  ['aDa', false, 'no uppercase letter later'],
  ['ada.l', false, 'no dot'],
  ['ada l', false, 'no space'],
  ['ada\n', false, 'no line end'],
  ['adä', false, 'no letter beyond a to z'],
  ['root', false, 'no account that systems have for themselves'],
  ['sshd', false, 'no account of a service'],
  ...['docker', 'admin', 'sudo', 'wheel', 'lxd', 'disk', 'shadow', 'adm'].map(
    (name): [string, boolean, string] => [name, false, 'no group that makes its members root'],
  ),
];

for (const [name, allowed, why] of names) {
  test(`username ${JSON.stringify(name)}: ${why}`, () => assert.equal(isUsername(name), allowed));
}

test('the home directory is /home/<username>', () => assert.equal(homeOf('ada'), '/home/ada'));

const emails: [string, string[], string][] = [
  ['ada@physics.example', [], 'ada'],
  ['Ada.Lovelace+x@physics.example', [], 'adalovelacex'],
  ['42ada@physics.example', [], 'ada'],
  ['42@physics.example', [], 'user'],
  ['ada@physics.example', ['ada'], 'ada2'],
  ['ada@physics.example', ['ada', 'ada2'], 'ada3'],
  ['root@physics.example', [], 'root2'],
  [`${'a'.repeat(64)}@physics.example`, [], 'a'.repeat(28)],
  [`${'a'.repeat(64)}@physics.example`, ['a'.repeat(28)], `${'a'.repeat(28)}2`],
];

for (const [email, taken, expected] of emails) {
  test(`${email} becomes ${expected}${taken.length > 0 ? ` where ${taken.join(', ')} is taken` : ''}`, () => {
    const name = usernamesFromEmail(email).find((one) => !taken.includes(one));
    assert.equal(name, expected);
    assert.ok(isUsername(expected));
  });
}

const rows: [string, string[], string[]][] = [
  ['a@x.example', ['a@x.example'], []],
  [
    'a@x.example, b@x.example;c@x.example\nd@x.example\te@x.example f@x.example',
    'abcdef'.split('').map((one) => `${one}@x.example`),
    [],
  ],
  ['Ada Lovelace <ada@x.example>, "Doe, Jane" <jane@x.example>', ['ada@x.example', 'jane@x.example'], []],
  ['a@x.example\nA@X.example\n <a@x.example>', ['a@x.example'], []],
  ['mailto:a@x.example. (b@x.example)', ['a@x.example', 'b@x.example'], []],
  ['Jane Doe jane@x.example', ['jane@x.example'], []],
  ['<img src=x onerror=1> x@y@z <nobody>', [], ['x@y@z']],
  ['', [], []],
];
for (const [text, found, unread] of rows) {
  test(`${JSON.stringify(text)} is read`, () => {
    assert.deepEqual(readEmails(text), { found, unread });
  });
}

test('a long text without an end costs no more than its length', () => {
  const { found } = readEmails(`${'a'.repeat(50_000)}${'"'.repeat(50_000)}`);
  assert.deepEqual(found, []);
});

const ada = { email: 'ada.lovelace@physics.example', displayName: 'Ada Lovelace' };
const check = (password: string) => () => checkNewPassword(password, ada);

test('a password has at least twelve characters, as people count them', () => {
  for (const short of ['', 'x', 'k7#Vq2!mZp9', '🍏🍎🍐🍊🍋🍌🍉🍇🍓🫐🍈', 'x'.repeat(1025)]) {
    assert.throws(check(short), { code: 'invalid_parameter', message: /between 12 and 1024 characters/ });
  }
});

test('what others try first is refused, however it is dressed up', () => {
  const common = [
    ...['123456789012', '1234567890123456', 'aaaaaaaaaaaa', 'passwordpassword', 'Password1234'],
    ...['P@ssw0rd2024!!!', 'p-a-s-s-w-o-r-d-1-2-3', 'qwertyuiop123', 'qwertz123456', '1q2w3e4r5t6y'],
    ...['1qaz2wsx3edc', 'iloveyou1234', 'iloveyouforever', 'Summer2025!!!', 'letmeinletmein'],
    ...['trustno1trustno1', 'administrator1', 'xk7xk7xk7xk7xk7', 'thisismypassword', 'welcome the system'],
    ...['andromeda2026', 'Andromeda-andromeda', 'changeme-changeme', 'ada.lovelace@physics.example'],
    ...['AdaLovelace1815', 'lovelace_physics'],
  ];
  for (const password of common)
    assert.throws(check(password), { message: /first that others would try/ }, password);
});

test('a few words of one’s own, and what a machine makes up, will do', () => {
  const good = [
    'correct horse battery',
    'bobs own secret',
    'another secret',
    'a newer secret',
    'tundra violin 42 ladle',
    'k7#Vq2!mZp9w',
    'Äpfel und Birnen 🍏',
  ];
  for (const password of good) assert.doesNotThrow(check(password), password);
  for (let i = 0; i < 200; i++) {
    const made = randomBytes(9).toString('base64url');
    assert.doesNotThrow(check(made), made);
  }
});

test('the check takes little time, whatever is typed', () => {
  const started = performance.now();
  for (const evil of ['a'.repeat(1024), 'ab'.repeat(512), 'password'.repeat(128)]) {
    assert.throws(check(evil));
  }
  for (const fine of [
    randomBytes(700).toString('base64url'),
    `${'ab'.repeat(40)}${randomBytes(20).toString('hex')}`,
  ]) {
    assert.doesNotThrow(check(fine));
  }
  assert.ok(performance.now() - started < limit(2_000));
});
