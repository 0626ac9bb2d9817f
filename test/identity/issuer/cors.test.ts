import assert from 'node:assert/strict';
import { test } from 'node:test';
import { docsClientId, issuerClients } from '../../../src/api/identity/issuer/clients.ts';
import {
  ada,
  answerDevice,
  cli,
  createBrowser,
  type Device,
  deviceGrant,
  startDevice,
  startHarness,
} from './harness.ts';

const docs = 'https://api.physics.example';
const other = 'https://elsewhere.example';

/** What a browser would tell a page of this origin, and what the issuer answered. */
async function call(url: string, path: string, origin: string, fields?: Record<string, string>) {
  const response = await fetch(url + path, {
    method: fields ? 'POST' : 'GET',
    headers: { origin },
    ...(fields ? { body: new URLSearchParams(fields) } : {}),
  });
  const body = (await response.json().catch(() => ({}))) as Record<string, unknown>;
  const allowed = Object.fromEntries(
    [...response.headers].filter(([name]) => name.startsWith('access-control-allow')),
  );
  return { status: response.status, body, allowed };
}

test('a /docs page signs a person in, and reads every answer that it needs for that', async () => {
  await using harness = await startHarness({ pageOrigins: [docs] });
  const readable = { 'access-control-allow-origin': docs };
  const discovery = await call(harness.url, '/.well-known/openid-configuration', docs);
  assert.deepEqual(discovery.allowed, readable);
  assert.equal(discovery.body.device_authorization_endpoint, `${harness.url}/device/auth`);

  const fields = { client_id: docsClientId, scope: 'openid email offline_access' };
  const asked = await call(harness.url, '/device/auth', docs, fields);
  assert.deepEqual([asked.status, asked.allowed], [200, readable]);
  const token = {
    grant_type: deviceGrant,
    device_code: String(asked.body.device_code),
    client_id: docsClientId,
  };
  const early = await call(harness.url, '/token', docs, token);
  assert.deepEqual([early.body.error, early.allowed], ['authorization_pending', readable]);
  const page = await answerDevice(harness.url, asked.body as unknown as Device);
  assert.match(page.text, /close this window/);
  const answer = await call(harness.url, '/token', docs, token);
  assert.deepEqual([answer.status, answer.allowed], [200, readable]);
  assert.equal(answer.body.expires_in, 600);
  assert.equal(answer.body.refresh_token, undefined, 'nothing outlives the page');
});

test('the approval page says that it is the /docs page, and for how long', async () => {
  await using harness = await startHarness({ pageOrigins: [docs] });
  const device = await startDevice(harness.url, docsClientId, 'openid');
  const browser = createBrowser(harness.url);
  const signIn = await browser.visit(device.verification_uri_complete);
  const { location } = await browser.submit(signIn, '/device/sign-in', {
    email: ada.email,
    password: ada.password,
  });
  const { text } = await browser.visit(location ?? '');
  assert.match(text, /Andromeda \/docs page/);
  assert.match(text, /for the next ten minutes/);
});

test('no page of another origin reads anything, and no other client is used from a page', async () => {
  await using harness = await startHarness({ pageOrigins: [docs] });
  for (const path of [
    '/.well-known/openid-configuration',
    '/.well-known/oauth-authorization-server',
    '/jwks',
  ]) {
    assert.deepEqual((await call(harness.url, path, other)).allowed, {}, path);
  }
  for (const client_id of [docsClientId, cli, 'nobody']) {
    const asked = await call(harness.url, '/device/auth', other, { client_id, scope: 'openid' });
    assert.deepEqual([asked.status, asked.allowed], [client_id === 'nobody' ? 401 : 400, {}], client_id);
  }
  const asCli = await call(harness.url, '/device/auth', docs, { client_id: cli, scope: 'openid' });
  assert.deepEqual([asCli.status, asCli.allowed], [400, {}]);
  for (const path of ['/jwks', '/me', '/device', '/token/revocation']) {
    assert.deepEqual((await call(harness.url, path, docs)).allowed, {}, path);
  }
  const preflight = await fetch(`${harness.url}/token`, {
    method: 'OPTIONS',
    headers: { origin: docs, 'access-control-request-method': 'POST' },
  });
  assert.equal(preflight.headers.get('access-control-allow-origin'), null);
});

test('a page is answered that too many sign-ins were started', async () => {
  await using harness = await startHarness({ pageOrigins: [docs] });
  const fields = { client_id: docsClientId, scope: 'openid' };
  let answer = await call(harness.url, '/device/auth', docs, fields);
  for (let tries = 0; answer.status === 200 && tries < 70; tries++)
    answer = await call(harness.url, '/device/auth', docs, fields);
  assert.equal(answer.status, 429);
  assert.deepEqual(answer.allowed, { 'access-control-allow-origin': docs });
  assert.match(String(answer.body.error_description), /wait a minute/);
});

test('the client of the /docs pages is theirs alone', () => {
  assert.throws(() => issuerClients(docsClientId, undefined), /choose another/);
  assert.throws(() => issuerClients(cli, docsClientId), /choose another/);
});
