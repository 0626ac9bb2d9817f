/** What a new password ends, and what it does not, however close in time. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLocalJWKSet } from 'jose';
import { createAuthenticator } from '../../../src/api/identity/index.ts';
import { createIdentity, setPassword } from '../../../src/store/people/identities.ts';
import { ada, adaHash, audience, type Harness, refresh, signIn, startHarness } from './harness.ts';

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
