import assert from 'node:assert/strict';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { createLocalJWKSet } from 'jose';
import { createIssuer } from '../../../src/api/identity/issuer/index.ts';
import { parseIssuerKeys } from '../../../src/api/identity/issuer/keys.ts';
import { verifyToken } from '../../../src/api/identity/token.ts';
import { createLogger } from '../../../src/lib/log.ts';
import { deleteExpiredIssuerRecords } from '../../../src/store/people/issuer-records.ts';
import {
  ada,
  audience,
  cli,
  createBrowser,
  kubernetes,
  poll,
  post,
  refresh,
  signIn,
  startDevice,
  startHarness,
} from './harness.ts';

test('a refresh token is good for one use; a second use ends the session', async () => {
  await using harness = await startHarness();
  const { url } = harness;
  const first = await signIn(url);
  const second = await refresh(url, first.refresh_token);
  assert.equal(second.status, 200);
  assert.notEqual(second.body.refresh_token, first.refresh_token);
  const third = await refresh(url, second.body.refresh_token);
  assert.equal(third.status, 200);
  // Its successor was used, so that its answer was not lost.
  assert.equal((await refresh(url, first.refresh_token)).body.error, 'invalid_grant');
  assert.equal((await refresh(url, third.body.refresh_token)).body.error, 'invalid_grant');
  assert.ok(harness.log.some((line) => line.includes('issuer.token.reused')));
});

test('a session survives a restart, and so does a device that waits', async () => {
  await using harness = await startHarness();
  const tokens = await signIn(harness.url);
  const device = await startDevice(harness.url);
  const { jwks } = harness.issuer;
  await harness.restart();
  assert.deepEqual(harness.issuer.jwks, jwks);
  const refreshed = await refresh(harness.url, tokens.refresh_token);
  assert.equal(refreshed.status, 200, JSON.stringify(refreshed.body));
  assert.equal((await poll(harness.url, device)).body.error, 'authorization_pending');
});

test('a session ends after 30 days without use, and after 180 days however used', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() });
  await using harness = await startHarness();
  const idle = await signIn(harness.url);
  let used: unknown = (await signIn(harness.url)).refresh_token;
  const day = 24 * 3_600_000;
  for (let days = 29; days < 180; days += 29) {
    t.mock.timers.tick(29 * day);
    const { status, body } = await refresh(harness.url, used);
    assert.equal(status, 200, `${days} days: ${JSON.stringify(body)}`);
    used = body.refresh_token;
  }
  assert.equal((await refresh(harness.url, idle.refresh_token)).body.error, 'invalid_grant');
  t.mock.timers.tick(7 * day);
  assert.equal((await refresh(harness.url, used)).body.error, 'invalid_grant');
});

test('a revoked refresh token is refused; another client cannot revoke it', async () => {
  await using harness = await startHarness();
  const { refresh_token } = await signIn(harness.url);
  const token = String(refresh_token);
  await post(harness.url, '/token/revocation', { token, client_id: kubernetes });
  const { body } = await refresh(harness.url, token);
  assert.ok(body.access_token);
  const next = String(body.refresh_token);
  const revoked = await post(harness.url, '/token/revocation', { token: next, client_id: cli });
  assert.equal(revoked.status, 200);
  assert.equal((await refresh(harness.url, next)).body.error, 'invalid_grant');
});

test('userinfo answers both kinds of access token, and no other', async () => {
  await using harness = await startHarness();
  const me = (token: unknown) =>
    fetch(`${harness.url}/me`, { headers: { authorization: `Bearer ${token}` } });
  for (const [client, scope] of [
    [cli, 'openid'],
    [kubernetes, 'openid email'],
  ] as const) {
    const { access_token } = await signIn(harness.url, client, scope);
    const response = await me(access_token);
    const claims = (await response.json()) as Record<string, unknown>;
    assert.equal(response.status, 200, JSON.stringify(claims));
    assert.deepEqual([claims.sub, claims.email, claims.email_verified], [ada.id, ada.email, true]);
    const { id_token } = await signIn(harness.url, client, scope);
    for (const wrong of [id_token, `${access_token}x`, 'x', 'a.b.c']) {
      const refused = await me(wrong);
      assert.equal(refused.status, 401, String(wrong));
      assert.match(refused.headers.get('www-authenticate') ?? '', /^Bearer/);
    }
  }
});

test('nothing in the database is a token, a code or a session', async () => {
  await using harness = await startHarness();
  const device = await startDevice(harness.url);
  const { refresh_token } = await signIn(harness.url);
  const { access_token } = await signIn(harness.url, kubernetes, 'openid');
  const rows = await harness.store.read.selectFrom('issuer_records').selectAll().execute();
  const all = JSON.stringify(rows);
  const { device_code, user_code } = device;
  for (const secret of [device_code, user_code, user_code.replace('-', ''), refresh_token, access_token])
    assert.ok(!all.includes(String(secret)), String(secret));
});

test('records that expired are not found, and are removed a few at a time', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() });
  await using harness = await startHarness();
  for (let i = 0; i < 3; i++) await startDevice(harness.url);
  const remove = (limit: number) =>
    harness.store.write((tx) => deleteExpiredIssuerRecords(tx, Math.floor(Date.now() / 1000), limit));
  assert.equal(await remove(10), 0);
  t.mock.timers.tick(21 * 60_000);
  assert.equal(await remove(2), 2);
  assert.equal(await remove(2), 1);
});

test('the keys are a file that only its owner reads; a broken one is reported, not replaced', async () => {
  await using harness = await startHarness();
  const file = join(harness.dataDir, 'issuer-keys.json');
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  for (const key of harness.issuer.jwks.keys) {
    assert.deepEqual(Object.keys(key).sort(), ['alg', 'e', 'kid', 'kty', 'n', 'use']);
  }
  const text = await readFile(file, 'utf8');
  assert.throws(
    () => parseIssuerKeys(text.slice(0, 100), file),
    /is not a file of the embedded issuer's keys/,
  );
  const { store } = harness;
  const keys = parseIssuerKeys(text, file);
  const log = createLogger('silent');
  const options = { url: 'http://host/path', store, keys, audience, cliClientId: cli, log };
  await assert.rejects(createIssuer(options), /without a path/);
});

test('discovery names the endpoints under the issuer URL, whatever host was asked for', async () => {
  await using harness = await startHarness();
  const { url } = harness;
  const host = 'evil.example';
  const elsewhere = { host, 'x-forwarded-host': host, 'x-forwarded-proto': 'https' };
  const path = '/.well-known/openid-configuration';
  const document = JSON.parse((await createBrowser(url).visit(path, undefined, elsewhere)).text);
  for (const [field, value] of Object.entries({
    ...{ issuer: url, jwks_uri: `${url}/jwks`, token_endpoint: `${url}/token` },
    ...{ userinfo_endpoint: `${url}/me`, device_authorization_endpoint: `${url}/device/auth` },
    ...{ revocation_endpoint: `${url}/token/revocation`, registration_endpoint: undefined },
    ...{ introspection_endpoint: undefined, id_token_signing_alg_values_supported: ['RS256'] },
  })) {
    assert.deepEqual(document[field], value, field);
  }
});

test('behind a proxy that does TLS, addresses and cookies are those of https', async () => {
  const publicUrl = 'https://login.example.org';
  await using harness = await startHarness({ publicUrl });
  const device = await startDevice(harness.url);
  assert.equal(device.verification_uri, `${publicUrl}/device`);
  const document = await fetch(`${harness.url}/.well-known/openid-configuration`);
  const { issuer, token_endpoint } = (await document.json()) as Record<string, unknown>;
  assert.deepEqual([issuer, token_endpoint], [publicUrl, `${publicUrl}/token`]);
  const page = await createBrowser(harness.url).visit(`/device?user_code=${device.user_code}`);
  const [cookie = ''] = page.headers.getSetCookie();
  assert.match(cookie, /^__Host-[\w-]+=.*; Path=\/; HttpOnly; SameSite=Lax; Secure$/);
});

test('of what the embedded issuer signs only a token whose header says at+jwt is an access token', async () => {
  await using harness = await startHarness();
  const { access_token, id_token } = await signIn(harness.url);
  const keys = createLocalJWKSet(harness.issuer.jwks);
  const rules = { issuer: harness.url, audiences: [audience], type: 'at+jwt' };
  assert.equal((await verifyToken(String(access_token), rules, keys, Date.now())).subject, ada.id);
  // Whatever an ID token's audience is: here the client's ID.
  const wrong = { ...rules, audiences: [cli] };
  await assert.rejects(verifyToken(String(id_token), wrong, keys, Date.now()), { code: 'unauthorized' });
  const { type: _, ...elsewhere } = wrong;
  assert.equal((await verifyToken(String(id_token), elsewhere, keys, Date.now())).subject, ada.id);
});
