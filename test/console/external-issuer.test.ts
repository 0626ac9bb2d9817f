/** The console with an external issuer: its confidential client, and sign-ins while the issuer cannot be reached. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { createIssuerClient, type IssuerClient } from '../../src/console/server/issuer-client.ts';
import type { Sessions } from '../../src/console/server/sessions.ts';
import { createSignInRoutes, signOut } from '../../src/console/server/sign-in.ts';
import { DomainError } from '../../src/domain/error.ts';
import { createLogger } from '../../src/lib/log.ts';
import { becomes, startTestApp } from '../support/app.ts';
import { entraRefusals, startCodeIssuer } from '../support/code-issuer.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { freePorts, listening } from '../support/ports.ts';
import { createCookieBrowser } from './harness.ts';

async function start(config: object = {}, ofIssuer: object = {}, ofConsole: object = {}) {
  const stack = new AsyncDisposableStack();
  const issuer = stack.use(await startCodeIssuer());
  const directory = stack.use(temporaryDirectory());
  const clientSecretFile = join(directory.path, 'console-secret');
  writeFileSync(clientSecretFile, `${issuer.client.secret}\n`, { mode: 0o600 });
  const [port = 0] = await freePorts(1);
  const url = `http://127.0.0.1:${port}`;
  const app = stack.use(
    await startTestApp({
      identity: {
        issuer: issuer.url,
        console: { clientId: issuer.client.id, clientSecretFile, ...ofConsole },
        ...ofIssuer,
      },
      config: { console: { listen: `127.0.0.1:${port}` }, ...config },
    }),
  );
  const signIn = async () => {
    const browser = createCookieBrowser(url);
    const end = await browser.follow(`${url}/sign-in?to=%2Fkeys`);
    return { browser, at: end.url };
  };
  const me = async (browser: ReturnType<typeof createCookieBrowser>) => {
    const answer = await browser.call('/api/business/me');
    const body = (await answer.json()) as { user?: { primary_email: string } };
    return answer.status === 200 ? body.user?.primary_email : answer.status;
  };
  return { issuer, url, app, signIn, me, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

test('people sign in at another issuer, go on when a token ends, and are signed out there too', async () => {
  await using lab = await start();
  const { issuer, url, app, signIn, me } = lab;
  const { browser, at } = await signIn();
  assert.equal(at, `${url}/keys`);
  assert.equal(await me(browser), 'bob@physics.example');
  assert.deepEqual(issuer.grants, ['authorization_code']);

  // The access token ends, and the session goes on with the refresh token.
  app.jump(9 * 60_000 + 45_000);
  issuer.skew = 9 * 60 + 45;
  assert.equal(await me(browser), 'bob@physics.example');
  assert.deepEqual(issuer.grants, ['authorization_code', 'refresh_token']);

  const headers = { 'content-type': 'application/json' };
  const ended = await browser.call('/sign-out', { method: 'POST', headers });
  const { url: end } = (await ended.json()) as { url: string };
  assert.ok(end.startsWith(`${issuer.url}/end?`), end);
  assert.equal((await browser.follow(end)).url, `${url}/signed-out`);
  assert.equal(await me(browser), 401);
});

test('clocks that differ by a minute sign people in; the issuer says no more, and the session ends', async () => {
  await using lab = await start();
  const { issuer, url, signIn, me } = lab;
  for (const skew of [60, -59]) {
    issuer.skew = skew;
    const { browser, at } = await signIn();
    assert.equal(at, `${url}/keys`, `${skew} s`);
    assert.equal(await me(browser), 'bob@physics.example');
  }
  issuer.skew = 0;
  issuer.person = 'stranger';
  assert.match((await signIn()).at, /\/signed-out\?why=no_account/);
  issuer.person = 'bob';
  const secret = issuer.client.secret;
  issuer.client.secret = 'another one';
  assert.match((await signIn()).at, /\/signed-out\?why=refused/);
  issuer.client.secret = secret;

  const { browser } = await signIn();
  issuer.forget();
  lab.app.jump(9 * 60_000 + 45_000);
  assert.equal(await me(browser), 401);
});

for (const [code, refusal] of Object.entries(entraRefusals))
  test(`tokens are asked for the platform and without offline access; where \`resource\` is refused (${code}), without it`, async () => {
    await using lab = await start();
    const { issuer, url, app, signIn, me } = lab;
    const { browser, at } = await signIn();
    assert.equal(at, `${url}/keys`);
    assert.equal(
      issuer.asked[0]?.get('scope'),
      'openid profile email urn:zitadel:iam:org:project:id:andromeda:aud',
    );
    issuer.resourceRefusal = refusal;
    const other = await signIn();
    assert.equal(other.at, `${url}/keys`);
    app.jump(9 * 60_000 + 45_000);
    issuer.skew = 9 * 60 + 45;
    for (const one of [browser, other.browser]) assert.equal(await me(one), 'bob@physics.example');
    assert.deepEqual(
      issuer.asked.map((one) => one.get('grant_type') ?? 'browser').join(),
      'browser,authorization_code,browser,browser,authorization_code,refresh_token,refresh_token',
    );
    const { platformUrl } = app;
    assert.deepEqual(
      issuer.asked.map((one) => one.get('resource')),
      [platformUrl, platformUrl, platformUrl, null, null, platformUrl, null],
    );
  });

test('an issuer that shows its refusal of `resource` itself is never sent it, and the console has scopes of its own', async () => {
  const scopes = ['openid', 'email', 'offline_access'];
  await using lab = await start({}, { resourceParameter: 'never' }, { scopes });
  const { issuer, url, signIn } = lab;
  assert.equal((await signIn()).at, `${url}/keys`);
  assert.deepEqual(
    issuer.asked.map((one) => one.get('resource')),
    [null, null],
  );
  assert.equal(issuer.asked[0]?.get('scope'), 'openid email offline_access');
});

test('where `resource` is always sent, its refusal is one of the sign-in, also of one that was to go without', async () => {
  await using lab = await start({}, { resourceParameter: 'always' });
  const { issuer, url, signIn } = lab;
  issuer.resourceRefusal = entraRefusals.AADSTS901002;
  assert.equal((await signIn()).at, `${url}/signed-out?why=refused&to=%2Fkeys`);
  const plain = await createCookieBrowser(url).follow(`${url}/sign-in?plain=`);
  assert.equal(plain.url, `${url}/signed-out?why=refused`);
  const { platformUrl } = lab.app;
  assert.deepEqual(
    issuer.asked.map((one) => one.get('resource')),
    [platformUrl, platformUrl],
  );
});

test('the console shows its secret as the issuer takes it, and in a form where Basic encodes it', async () => {
  for (const [methods, way] of [
    [undefined, 'Basic'],
    [['client_secret_basic'], 'Basic'],
    [['client_secret_post'], 'form'],
    // The ID has a -, which Basic sends as %2D.
    [['client_secret_basic', 'client_secret_post'], 'form'],
  ] as const) {
    await using lab = await start();
    const { issuer, url, signIn } = lab;
    issuer.metadata = methods ? { token_endpoint_auth_methods_supported: methods } : {};
    assert.equal((await signIn()).at, `${url}/keys`);
    assert.equal(issuer.asked.at(-1)?.has('client_secret'), way === 'form', String(methods));
  }
});

test('a refused sign-in says why: the address, the audience, the clock, another person, too long ago', async () => {
  await using lab = await start({ access: { maxHoursWithoutSignIn: 12 } });
  const { issuer, url, signIn } = lab;
  issuer.metadata = { subject_types_supported: ['public', 'pairwise'] };
  const hour = 3_600;
  const now = Math.floor(Date.now() / 1000);
  for (const [why, claims, skew] of [
    ['no_address', { access: { sub: 'new', email_verified: false }, id: { sub: 'new' } }, 0],
    ['scope', { access: { sub: 'new', email: undefined }, id: { sub: 'new' } }, 0],
    ['audience', { access: { aud: ['another'] } }, 0],
    ['audience', { id: { aud: ['andromeda-console', 'other'] } }, 0],
    ['audience', { id: { aud: ['andromeda-console', 'other'], azp: 'other' } }, 0],
    ['clock', {}, 300],
    ['clock', {}, -700],
    ['issuer', { id: { iss: `${issuer.url}/` } }, 0],
    ['refused', { id: { sub: 'elsewhere-eve' } }, 0],
    ['too_old', { id: { auth_time: now - 13 * hour } }, 0],
    [undefined, { id: { auth_time: now - hour } }, 0],
    ['bound', { access: { sub: 'another' }, id: { sub: 'another' } }, 0],
  ] as const) {
    Object.assign(issuer, { claims, skew });
    issuer.userinfoStatus = why === 'scope' ? 403 : 200;
    issuer.forget();
    const { at } = await signIn();
    assert.equal(at, why === undefined ? `${url}/keys` : `${url}/signed-out?why=${why}&to=%2Fkeys`);
    // What a refused sign-in gave is good no more.
    const left = why === undefined ? 1 : 0;
    await becomes(() => issuer.countGood(), left);
  }
});

test('an issuer that is found under another name is called that, until it is found under its own', async () => {
  await using lab = await start();
  const { issuer, url, signIn } = lab;
  issuer.metadata = { issuer: `${issuer.url}/x` };
  assert.equal((await signIn()).at, `${url}/signed-out?why=issuer&to=%2Fkeys`);
  issuer.metadata = {};
  assert.equal((await signIn()).at, `${url}/keys`);
});

test('what a refused refresh gave is good no more', async () => {
  await using lab = await start();
  const { issuer, app, signIn, me } = lab;
  const { browser } = await signIn();
  app.jump(9 * 60_000 + 45_000);
  Object.assign(issuer, { skew: 9 * 60 + 45, claims: { id: { iss: `${issuer.url}/` } } });
  assert.equal(await me(browser), 401);
  await becomes(() => issuer.countGood(), 0);
});

test('while the issuer is down, who is signed in goes on, and who is not sees why; then it goes on by itself', async () => {
  await using lab = await start();
  const { issuer, url, app, signIn, me } = lab;
  const { browser } = await signIn();
  assert.equal(await me(browser), 'bob@physics.example');
  issuer.isDown = true;
  assert.equal(await me(browser), 'bob@physics.example');
  app.jump(9 * 60_000 + 45_000);
  assert.equal(await me(browser), 503);
  issuer.skew = 9 * 60 + 45;
  // It fetched what the issuer is when it was up; who comes back with a code is told.
  issuer.isDown = false;
  await becomes(() => me(browser), 'bob@physics.example');
  const other = createCookieBrowser(url);
  const begun = await other.visit(`${url}/sign-in?to=%2Fkeys`);
  const sent = await other.visit(begun.headers.get('location') ?? '');
  issuer.isDown = true;
  const back = await other.visit(sent.headers.get('location') ?? '');
  assert.match(back.headers.get('location') ?? '', /\/signed-out\?why=issuer_away&to=%2Fkeys/);
});

const issuer = 'http://127.0.0.1:9';
const tokens = {
  accessToken: 'a',
  refreshToken: 'r',
  idToken: undefined,
  expiresIn: 60,
  signedInAt: undefined,
};

test('an issuer that does not answer a revocation holds up no sign-out', async () => {
  const asked: string[] = [];
  const client = createIssuerClient({
    issuer,
    clientId: 'console',
    clientSecret: 'secret',
    scopes: ['openid'],
    async fetch(input) {
      asked.push(String(input));
      if (String(input).endsWith('/revoke')) return new Promise(() => {});
      const endpoints = { revocation_endpoint: `${issuer}/revoke`, end_session_endpoint: `${issuer}/end` };
      return Response.json({ issuer, ...endpoints });
    },
    redirectUri: 'http://console.invalid/sign-in/callback',
    signedOutUri: 'http://console.invalid/signed-out',
    now: Date.now,
  });
  assert.match((await client.end(tokens)) ?? '', new RegExp(`^${issuer}/end\\?`));
  assert.ok(asked.includes(`${issuer}/revoke`));
});

test('while the issuer is away, who navigates is shown a page that says so, and signing out works', async () => {
  const away = async () => {
    throw new DomainError('integration_unavailable', 'away');
  };
  const options = {
    url: 'http://127.0.0.1',
    issuer: { begin: away, end: () => new Promise(() => {}) } as unknown as IssuerClient,
    sessions: {
      async of() {
        throw new DomainError('unauthorized', 'nobody');
      },
      end: async () => ({ userId: 'ada', tokens }),
      removal: () => 'x=; Max-Age=0',
    } as unknown as Sessions,
    maxAgeMs: async () => undefined,
    log: createLogger('silent'),
    now: Date.now,
    uptime: () => performance.now(),
  };
  const routes = createSignInRoutes(options);
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '', 'http://console.invalid');
    if (request.method === 'POST') void signOut(options, request, response, '127.0.0.1');
    else void routes.begin(request, response, url, '127.0.0.1');
  });
  const at = `http://127.0.0.1:${await listening(server)}`;
  try {
    const begun = await fetch(`${at}/sign-in?to=/keys`, { redirect: 'manual' });
    assert.equal(begun.status, 303);
    assert.equal(begun.headers.get('location'), '/signed-out?why=issuer_away&to=%2Fkeys');
    const headers = { 'x-andromeda-console': 'active', 'sec-fetch-site': 'same-origin' };
    const ended = await fetch(`${at}/sign-out`, { method: 'POST', headers });
    assert.deepEqual(await ended.json(), { url: '/signed-out' });
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
