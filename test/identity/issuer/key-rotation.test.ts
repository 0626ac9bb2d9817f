/** The key that signs tokens takes the place of another; tokens of both are good while both are published. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRemoteJWKSet, decodeProtectedHeader, jwtVerify } from 'jose';
import { loadKeys, signingKeyIds, stepSigningKeyFile } from '../../../src/api/identity/issuer/keys.ts';
import { refresh, signIn, startHarness } from './harness.ts';

test('announced, then signing, then retired; sign-ins go on', async () => {
  await using harness = await startHarness();
  const { url, dataDir } = harness;
  const ids = async () => signingKeyIds(await loadKeys(dataDir));
  const published = async () => {
    const { keys } = (await (await fetch(`${url}/jwks`)).json()) as { keys: { kid: string; d?: string }[] };
    for (const key of keys) assert.equal(key.d, undefined);
    return keys.map(({ kid }) => kid);
  };
  const { current: one } = await ids();
  let { refresh_token, access_token: first } = await signIn(url);
  const again = async () => {
    const { status, body } = await refresh(url, refresh_token);
    assert.equal(status, 200, JSON.stringify(body));
    refresh_token = body.refresh_token;
    for (const token of [body.access_token, body.id_token])
      assert.equal(decodeProtectedHeader(String(token)).kid, (await ids()).current);
    return String(body.access_token);
  };
  const isGood = (token: unknown) =>
    jwtVerify(String(token), createRemoteJWKSet(new URL(`${url}/jwks`)), { issuer: url }).then(
      () => true,
      () => false,
    );

  await stepSigningKeyFile('announce', dataDir);
  const { next: two } = await ids();
  await harness.restart();
  assert.deepEqual(await published(), [one, two]);
  assert.deepEqual(harness.issuer.keyIds, { current: one, next: two, previous: undefined });
  first = await again();
  await stepSigningKeyFile('switch', dataDir);
  await harness.restart();
  assert.deepEqual(await published(), [two, one]);
  const second = await again();
  assert.deepEqual([await isGood(first), await isGood(second)], [true, true]);

  await stepSigningKeyFile('back', dataDir);
  assert.deepEqual(await ids(), { current: one, next: two, previous: undefined });
  await stepSigningKeyFile('switch', dataDir);
  await stepSigningKeyFile('retire', dataDir);
  await harness.restart();
  assert.deepEqual(await published(), [two]);
  assert.deepEqual([await isGood(first), await isGood(second)], [false, true]);
  await again();
});
