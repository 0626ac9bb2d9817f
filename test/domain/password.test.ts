import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { checkNewPassword } from '../../src/domain/people/password.ts';
import { limit } from '../support/limit.ts';

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
