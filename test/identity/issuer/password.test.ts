/** Passwords and passkeys as the issuer takes them, and what a new password ends, however close in time. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { isoCBOR } from '@simplewebauthn/server/helpers';
import { createLocalJWKSet } from 'jose';
import { createAuthenticator } from '../../../src/api/identity/index.ts';
import { verifyNew } from '../../../src/api/identity/issuer/account/second-factor.ts';
import { hashPassword, verifyPassword } from '../../../src/api/identity/password.ts';
import { DomainError } from '../../../src/domain/error.ts';
import { createIdentity, setPassword } from '../../../src/store/people/identities.ts';
import { startAnswers } from '../../support/answers.ts';
import { temporaryDirectory } from '../../support/directory.ts';
import { ada, adaHash, audience, type Harness, refresh, signIn, startHarness } from './harness.ts';

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

function authenticatorOf({ store, issuer, url }: Harness) {
  const authenticate = createAuthenticator({
    markIdentity: () => '',
    store,
    rules: { issuer: url, audiences: [audience], type: 'at+jwt' },
    keys: createLocalJWKSet(issuer.jwks),
    userinfo: async () => ({}),
    isSignInOver: issuer.isSignInOver,
    now: Date.now,
  });
  return (token: unknown) => authenticate(`Bearer ${token}`, 'unauthorized');
}

test('of one moment: what was signed in to before a new password is over, and what came after is not', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() });
  await using harness = await startHarness();
  const { store, url } = harness;
  const authenticate = authenticatorOf(harness);
  await store.write((tx) => createIdentity(tx, { issuer: url, subject: ada.id, userId: ada.id }));
  const [used, unused] = [await signIn(url), await signIn(url)];
  assert.equal(await authenticate(used.access_token), ada.id);
  await store.write((tx) => setPassword(tx, { userId: ada.id, hash: adaHash }));
  for (const { access_token, refresh_token } of [used, unused]) {
    await assert.rejects(authenticate(access_token), /The password was changed since; sign in again/);
    assert.equal((await refresh(url, refresh_token)).body.error, 'invalid_grant');
    const me = await fetch(`${url}/me`, { headers: { authorization: `Bearer ${access_token}` } });
    assert.equal(me.status, 401);
  }
  const after = await signIn(url);
  assert.equal(await authenticate(after.access_token), ada.id);
  const refreshed = await refresh(url, after.refresh_token);
  assert.equal(await authenticate(refreshed.body.access_token), ada.id);
  // A clock that was set back makes no new sign-in one of before the password.
  t.mock.timers.setTime(Date.now() - 3_600_000);
  assert.equal(await authenticate((await signIn(url)).access_token), ada.id);
});

const party = { id: 'login.example', origin: 'https://login.example' };

/** A certificate that says where to ask whether it was revoked. */
function certificate(crl: string): Buffer {
  using directory = temporaryDirectory();
  const file = join(directory.path, 'cert.der');
  const more = ['-subj', '/CN=any', '-days', '2', '-addext', `crlDistributionPoints=URI:${crl}`];
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', '/dev/null'];
  execFileSync('openssl', ['req', '-x509', ...key, ...more, '-outform', 'DER', '-out', file], {
    stdio: 'ignore',
  });
  return readFileSync(file);
}

/** What a browser would answer with such an attestation, in Apple's format. */
function answer(challenge: string, x5c: readonly Buffer[]): string {
  const id = randomBytes(16);
  const point = () => randomBytes(32);
  const key = isoCBOR.encode(
    new Map<number, number | Buffer>([
      [1, 2],
      [3, -7],
      [-1, 1],
      [-2, point()],
      [-3, point()],
    ]),
  );
  const host = createHash('sha256').update(party.id).digest();
  const [flags, zeros, length] = [Buffer.from([0x45, 0, 0, 0, 1]), Buffer.alloc(16), Buffer.from([0, 16])];
  const data = Buffer.concat([host, flags, zeros, length, id, key]);
  const statement = new Map([['x5c', [...x5c]]]);
  const object = isoCBOR.encode(
    new Map<string, string | Buffer | typeof statement>([
      ['fmt', 'apple'],
      ['attStmt', statement],
      ['authData', data],
    ]),
  );
  const client = JSON.stringify({ type: 'webauthn.create', challenge, origin: party.origin });
  const response = {
    clientDataJSON: Buffer.from(client).toString('base64url'),
    attestationObject: Buffer.from(object).toString('base64url'),
  };
  const credential = id.toString('base64url');
  const ids = { id: credential, rawId: credential, type: 'public-key' };
  return JSON.stringify({ ...ids, response, clientExtensionResults: {} });
}

test('nothing is fetched that a certificate in an attestation names', async () => {
  const asked: (string | undefined)[] = [];
  await using server = await startAnswers(({ url }) => {
    asked.push(url);
    return [200, ''];
  });
  const challenge = randomBytes(32).toString('base64url');
  const passkey = answer(challenge, [certificate(`${server.url}/revoked`)]);
  assert.equal(await verifyNew(party, { passkey, challenge }, '2030-01-01T00:00:00Z'), undefined);
  assert.deepEqual(asked, []);
});
