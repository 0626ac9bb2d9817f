/** The key that signs tokens takes the place of another; tokens of both are good while both are published. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRemoteJWKSet, decodeProtectedHeader, jwtVerify } from 'jose';
import { issuerKeysOf, makeIssuerKey, parseIssuerKeys } from '../../../src/api/identity/issuer/keys.ts';
import { loadIssuerKeys } from '../../support/service-keys.ts';
import { refresh, signIn, startHarness } from './harness.ts';

test('published before it signs, and after it has signed; sign-ins go on', async () => {
  await using harness = await startHarness();
  const { url, dataDir } = harness;
  const one = await loadIssuerKeys(dataDir);
  const two = parseIssuerKeys(await makeIssuerKey(one), 'the next');
  const [first, second] = [one, two].map(({ signing }) => signing[0]?.kid);
  const published = async () => {
    const { keys } = (await (await fetch(`${url}/jwks`)).json()) as { keys: { kid: string; d?: string }[] };
    for (const key of keys) assert.equal(key.d, undefined);
    return keys.map(({ kid }) => kid);
  };
  let { refresh_token } = await signIn(url);
  const again = async (kid: string | undefined) => {
    const { status, body } = await refresh(url, refresh_token);
    assert.equal(status, 200, JSON.stringify(body));
    refresh_token = body.refresh_token;
    for (const token of [body.access_token, body.id_token])
      assert.equal(decodeProtectedHeader(String(token)).kid, kid);
    return String(body.access_token);
  };
  const isGood = (token: unknown) =>
    jwtVerify(String(token), createRemoteJWKSet(new URL(`${url}/jwks`)), { issuer: url }).then(
      () => true,
      () => false,
    );

  harness.issuer.useKeys(issuerKeysOf({ used: one, next: two }));
  assert.deepEqual(await published(), [first, second]);
  const before = await again(first);
  harness.issuer.useKeys(issuerKeysOf({ used: two, former: one }));
  assert.deepEqual(await published(), [second, first]);
  const after = await again(second);
  assert.deepEqual([await isGood(before), await isGood(after)], [true, true]);
  harness.issuer.useKeys(issuerKeysOf({ used: two }));
  assert.deepEqual(await published(), [second]);
  assert.deepEqual([await isGood(before), await isGood(after)], [false, true]);
  await again(second);
});
