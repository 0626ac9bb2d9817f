import assert from 'node:assert/strict';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { createLocalJWKSet, jwtVerify } from 'jose';
import { consoleClientId, issuerClients } from '../../../src/api/identity/issuer/clients.ts';
import { createIssuer } from '../../../src/api/identity/issuer/index.ts';
import { parseIssuerKeys } from '../../../src/api/identity/issuer/keys.ts';
import { verifyToken } from '../../../src/api/identity/token.ts';
import { createLogger } from '../../../src/lib/log.ts';
import { deleteExpiredIssuerRecords } from '../../../src/store/people/issuer-records.ts';
import { updateLifecycle } from '../../../src/store/people/people.ts';
import { createPasswordLink, findPasswordLink } from '../../../src/store/people/second-factors.ts';
import {
  ada,
  answerDevice,
  audience,
  cli,
  createBrowser,
  credentials,
  type Device,
  kubernetes,
  openDevice,
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

test('a terminal signs in by the device flow and gets a token that the keys verify', async () => {
  await using harness = await startHarness();
  const { url, issuer } = harness;
  const device = await startDevice(url);
  assert.deepEqual([device.interval, device.expires_in], [5, 600]);
  assert.match(device.user_code, /^[B-DF-HJ-NP-TV-XZ]{4}-[B-DF-HJ-NP-TV-XZ]{4}$/);
  assert.equal(device.verification_uri, `${url}/device`);
  assert.equal(device.verification_uri_complete, `${url}/device?user_code=${device.user_code}`);
  assert.equal((await poll(url, device)).body.error, 'authorization_pending');

  const done = await answerDevice(url, device);
  assert.match(done.text, /You can close this window/);

  const { status, body } = await poll(url, device);
  assert.equal(status, 200);
  const keys = createLocalJWKSet(issuer.jwks);
  const { payload, protectedHeader } = await jwtVerify(String(body.access_token), keys, {
    issuer: url,
    audience,
    typ: 'at+jwt',
  });
  assert.equal(protectedHeader.alg, 'RS256');
  const { sub, email, email_verified: isVerified, name, client_id } = payload;
  assert.deepEqual([sub, email, isVerified], [ada.id, ada.email, true]);
  assert.deepEqual([name, client_id], ['Ada <Lovelace>', cli]);
  assert.deepEqual([Number(payload.exp) - Number(payload.iat), body.expires_in], [600, 600]);
  assert.deepEqual(await (await fetch(`${url}/jwks`)).json(), issuer.jwks);
  assert.equal((await poll(url, device)).body.error, 'invalid_grant');
});

test('tokens are for the addresses that the metadata list, and for no other', async () => {
  const resources = ['https://platform.example', 'https://business.example/api'];
  await using harness = await startHarness({ resources });
  const { url, issuer } = harness;
  const metadata = await (await fetch(`${url}/.well-known/openid-configuration`)).json();
  assert.deepEqual((metadata as { protected_resources: unknown }).protected_resources, resources);
  const ask = (client: string, resource: string) =>
    post(url, '/device/auth', { client_id: client, scope: 'openid offline_access', resource });
  for (const [client, resource] of [
    [cli, 'https://evil.example'],
    [cli, 'https://platform.example/deeper'],
    [kubernetes, 'https://platform.example'],
  ] as const) {
    const { status, body } = await ask(client, resource);
    assert.deepEqual([status, body.error], [400, 'invalid_target']);
  }

  const approvalOf = async (device: Device) => {
    const browser = createBrowser(url);
    const page = await browser.visit(device.verification_uri_complete);
    await browser.submit(page, '/device/sign-in', credentials);
    return (await browser.visit(device.verification_uri_complete)).text;
  };
  assert.match(
    await approvalOf(await startDevice(url)),
    /<dt>Platform<\/dt><dd>not named by the program<\/dd>/,
  );
  assert.doesNotMatch(await approvalOf(await startDevice(url, kubernetes, 'openid')), /Platform/);
  const device = (await ask(cli, 'https://platform.example')).body as unknown as Device;
  assert.match(await approvalOf(device), /<dt>Platform<\/dt><dd>https:\/\/platform\.example<\/dd>/);
  await answerDevice(url, device);
  const { body } = await poll(url, device);
  const keys = createLocalJWKSet(issuer.jwks);
  await jwtVerify(String(body.access_token), keys, { issuer: url, audience, typ: 'at+jwt' });
  const next = await refresh(url, body.refresh_token, cli, { resource: 'https://platform.example' });
  await jwtVerify(String(next.body.access_token), keys, { issuer: url, audience, typ: 'at+jwt' });
  const elsewhere = await refresh(url, next.body.refresh_token, cli, {
    resource: 'https://business.example/api',
  });
  assert.equal(elsewhere.body.error, 'invalid_target');
});

test('scopes that the issuer does not know are dropped, at sign-in and on refresh', async () => {
  await using harness = await startHarness();
  const scope = 'openid urn:zitadel:iam:org:project:id:andromeda:aud something:else';
  const tokens = await signIn(harness.url, cli, scope);
  assert.equal(tokens.scope, 'openid');
  const refreshed = await refresh(harness.url, tokens.refresh_token, cli, { scope });
  assert.equal(refreshed.status, 200, JSON.stringify(refreshed.body));
  assert.equal(refreshed.body.scope, 'openid');
});

test('an ID token for Kubernetes carries the email, and its access token is none for the APIs', async () => {
  await using harness = await startHarness();
  const tokens = await signIn(harness.url, kubernetes, 'openid');
  const keys = createLocalJWKSet(harness.issuer.jwks);
  const expected = { issuer: harness.url, audience: kubernetes, algorithms: ['RS256'] };
  const { payload } = await jwtVerify(String(tokens.id_token), keys, expected);
  assert.equal(payload.aud, kubernetes);
  assert.equal(payload.email, ada.email);
  assert.equal(payload.email_verified, true);
  assert.doesNotMatch(String(tokens.access_token), /\./);
  const refreshed = await refresh(harness.url, tokens.refresh_token, kubernetes);
  const next = await jwtVerify(String(refreshed.body.id_token), keys, expected);
  assert.equal(next.payload.email, ada.email);
  const token = refreshed.body.refresh_token;
  const refused = await refresh(harness.url, token, kubernetes, { resource: 'urn:andromeda:apis' });
  assert.equal(refused.body.error, 'invalid_target');
});

test('who is denied gets access_denied', async () => {
  await using harness = await startHarness();
  const device = await startDevice(harness.url);
  const browser = createBrowser(harness.url);
  const done = await answerDevice(harness.url, device, 'deny', browser);
  assert.match(done.text, /Sign-in denied/);
  assert.equal((await poll(harness.url, device)).body.error, 'access_denied');
  const late = await browser.visit(device.verification_uri_complete);
  assert.equal(late.status, 410);
  assert.match(late.text, /already been used/);
});

test('a code answered in one window cannot be answered again in another', async () => {
  await using harness = await startHarness();
  const { device, browser, page: signInPage } = await openDevice(harness.url);
  await browser.submit(signInPage, '/device/sign-in', credentials);
  const window = await browser.visit(device.verification_uri_complete);
  const answers = await Promise.all(
    ['approve', 'deny', 'approve'].map((decision) =>
      browser.submit(window, '/device/approval', { decision }),
    ),
  );
  assert.deepEqual(answers.map(({ status }) => status).sort(), [303, 410, 410]);
});

test('a code that expired is reported in the browser and at the terminal, as is an unknown one', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() });
  await using harness = await startHarness();
  const { url } = harness;
  const { device, browser, page: signInPage } = await openDevice(url);
  await browser.submit(signInPage, '/device/sign-in', credentials);
  const approval = await browser.visit(device.verification_uri_complete);
  t.mock.timers.tick(601_000);
  for (const page of [
    await browser.visit(device.verification_uri_complete),
    await browser.submit(approval, '/device/approval', { decision: 'approve' }),
    await browser.submit(signInPage, '/device/sign-in', credentials),
  ]) {
    if (page.status === 403) continue;
    assert.equal(page.status, 410);
    assert.match(page.text, /This code has expired\. Run the command again to get a new one\./);
  }
  assert.equal((await poll(url, device)).body.error, 'expired_token');
  const unknown = await browser.visit('/device?user_code=BBBB-BBBB');
  assert.equal(unknown.status, 404);
  assert.match(unknown.text, /We do not know this code/);
});

test('a code may be typed in any case and without its dash', async () => {
  await using harness = await startHarness();
  const device = await startDevice(harness.url);
  const typed = device.user_code.toLowerCase().replace('-', ' ');
  const page = await createBrowser(harness.url).visit(`/device?user_code=${encodeURIComponent(typed)}`);
  assert.match(page.text, /type="password"/);
});

test('a terminal that polls faster than every five seconds gets slow_down', async () => {
  let at = Date.now();
  await using harness = await startHarness({ now: () => at });
  const device = await startDevice(harness.url);
  const other = await startDevice(harness.url);
  const seen: unknown[] = [];
  for (const afterMs of [0, 1000, 5000, 4900, 4000, 5000]) {
    at += afterMs;
    seen.push((await poll(harness.url, device)).body.error);
  }
  const pending = 'authorization_pending';
  assert.deepEqual(seen, [pending, 'slow_down', pending, pending, 'slow_down', pending]);
  assert.equal((await poll(harness.url, other)).body.error, pending);
  await answerDevice(harness.url, device);
  assert.equal((await poll(harness.url, device)).status, 200);
});

test('a deactivation ends browsers, terminals and links for good, also where the person comes back', async () => {
  await using harness = await startHarness();
  const { url, store, issuer } = harness;
  const browser = createBrowser(url);
  const device = await startDevice(url);
  await answerDevice(url, device, 'approve', browser);
  const { body } = await poll(url, device);
  const { token } = issuer.passwordLink(ada.id, 'a command');
  const until = new Date(Date.now() + 600_000).toISOString();
  await store.write((tx) => createPasswordLink(tx, { userId: ada.id, token, until }));
  for (const state of ['deactivated', 'active'] as const)
    await store.write((tx) => updateLifecycle(tx, { userId: ada.id, state }));
  assert.equal((await refresh(url, body.refresh_token)).body.error, 'invalid_grant');
  const me = await fetch(`${url}/me`, { headers: { authorization: `Bearer ${body.access_token}` } });
  assert.equal(me.status, 401);
  const page = await browser.visit((await startDevice(url)).verification_uri_complete);
  assert.match(page.text, /type="password"/);
  assert.equal(await findPasswordLink(store.read, token, Date.now()), undefined);
  const anew = await signIn(url);
  assert.equal((await refresh(url, anew.refresh_token)).status, 200);
});

test('only the device flow is offered, and only to the clients there are', async () => {
  await using harness = await startHarness();
  const refused = [
    await post(harness.url, '/device/auth', { client_id: 'somebody', scope: 'openid' }),
    await post(harness.url, '/token', { client_id: cli, grant_type: 'client_credentials' }),
    await post(harness.url, '/token', { client_id: cli, grant_type: 'authorization_code', code: 'x' }),
  ];
  assert.deepEqual(
    refused.map(({ body }) => body.error),
    ['invalid_client', 'unsupported_grant_type', 'unsupported_grant_type'],
  );
  for (const path of ['/reg', '/token/introspection', '/session/end', '/request', '/interaction/x']) {
    assert.equal((await fetch(harness.url + path, { method: 'POST' })).status, 404, path);
  }
});

test('a flood of device codes from one address is refused for a while', async () => {
  let at = Date.now();
  await using harness = await startHarness({ now: () => at });
  const fields = { client_id: cli, scope: 'openid' };
  let last = await post(harness.url, '/device/auth', fields);
  for (let i = 0; i < 60; i++) last = await post(harness.url, '/device/auth', fields);
  assert.equal(last.status, 429);
  assert.equal(last.body.error, 'temporarily_unavailable');
  at += 60_000;
  assert.equal((await post(harness.url, '/device/auth', fields)).status, 200);
});

test('no other client has the ID of the console', () => {
  assert.throws(() => issuerClients(consoleClientId, undefined), /choose another/);
  assert.throws(() => issuerClients(cli, consoleClientId), /choose another/);
});
