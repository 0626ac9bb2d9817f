import assert from 'node:assert/strict';
import { test } from 'node:test';
import { homeOf, isUsername, usernamesFromEmail } from '../../src/domain/people/person.ts';

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
