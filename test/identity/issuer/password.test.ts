import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hashPassword, verifyPassword } from '../../../src/api/identity/password.ts';
import { DomainError } from '../../../src/domain/error.ts';

const stranger = { source: '192.0.2.1', isKnown: false };

// By Python's hashlib.scrypt: what others made verifies, and so do old costs.
const known = '$scrypt$ln=10,r=8,p=1$c2FsdHNhbHRzYWx0c2FsdA$DudPhYUu1iibCTyYvEPNHMftQlCeDPhGS7OT5rCvpzk';
const composed = '$scrypt$ln=10,r=8,p=1$c2FsdHNhbHRzYWx0c2FsdA$wlOjGsxodSUee7Wnh3l1zRkSa6/4Ch8b6kvpbNd/xZ8';

test('a hash carries its parameters and a salt of its own', async () => {
  const [one, two] = await Promise.all([hashPassword('pass'), hashPassword('pass')]);
  assert.match(one, /^\$scrypt\$ln=15,r=8,p=3\$[\w+/]{22}\$[\w+/]{43}$/);
  assert.notEqual(one, two);
});

test('only the password of a hash verifies', async () => {
  const own = await hashPassword('pw');
  const table: [password: string, hash: string | undefined, verifies: boolean][] = [
    ['pw', own, true],
    ['pW', own, false],
    ['pw', known, true],
    ['pw ', known, false],
    ['', known, false],
    ['x'.repeat(1025), known, false],
    // Composed and decomposed, as different keyboards send it.
    ['Äpfel 🍏', composed, true],
    ['A\u0308pfel 🍏', composed, true],
    ['pw', known.replace('p=1', 'p=2'), false],
    ['pw', undefined, false],
    ['pw', 'pw', false],
    ['pw', known.replace('ln=10', 'ln=31'), false],
    ['pw', known.replace('r=8', 'r=0'), false],
    ['pw', known.slice(0, -1), false],
  ];
  for (const [password, encoded, verifies] of table) {
    assert.equal(await verifyPassword(password, encoded, stranger), verifies, `${password} ${encoded}`);
  }
});

test('an empty and an endless password are refused', async () => {
  for (const password of ['', 'x'.repeat(1025)]) {
    await assert.rejects(hashPassword(password), (error) => {
      return error instanceof DomainError && error.code === 'invalid_parameter';
    });
  }
});

test('a flood of sign-ins is refused beyond a bound, and the rest is answered', async () => {
  const results = await Promise.allSettled(
    Array.from({ length: 80 }, () => verifyPassword('pw', known, stranger)),
  );
  const refused = results.filter(({ status }) => status === 'rejected');
  assert.equal(refused.length, 80 - 2 - 64);
  for (const result of results) {
    if (result.status === 'fulfilled') assert.equal(result.value, true);
    else assert.equal(result.reason.code, 'service_unavailable');
  }
  assert.equal(await verifyPassword('pw', known, stranger), true);
});

test('what waits for its turn is refused early enough for an answer within five seconds', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const answers = Array.from({ length: 12 }, () => verifyPassword('pw', known, stranger));
  t.mock.timers.tick(4_500);
  const refused = (await Promise.allSettled(answers)).filter(({ status }) => status === 'rejected');
  assert.equal(refused.length, 12 - 2, 'all but those whose turn it was');
});
