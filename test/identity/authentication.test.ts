import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JWTPayload } from 'jose';
import { createLogger } from '../../src/lib/log.ts';
import { alpha, physics, type Reply, startTestApp } from '../support/app.ts';
import { startTestIssuer } from '../support/issuer.ts';
import { refused } from '../support/refused.ts';

const base64url = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
const unsigned = (head: object, claims: object) => `${base64url(head)}.${base64url(claims)}.AAAA`;

test('authentication', async (t) => {
  await using service = await startTestApp({
    lab: { ...physics, clusters: [] },
    identity: { audiences: ['andromeda', 'second'], serviceAccountClaim: { name: 'kind', value: 'machine' } },
  });
  const { issuer } = service;
  const both = ['andromeda', 'second'];
  const token = (name: string, claims: JWTPayload = {}, lifetime?: number) =>
    issuer.token(name, { aud: both, ...claims }, lifetime);
  const { org_id: org } = (await service.business('/me', { token: await token('ada') })).body.memberships[0];
  const apis = {
    Business: (options: object) => service.business('/me', options),
    Platform: (options: object) => service.platform(`/clusters?businessOrgId=${org}`, options),
  };
  const unauthorized = (reply: Reply) => {
    refused(reply, 401, 'unauthorized');
    assert.deepEqual([reply.headers.get('www-authenticate'), reply.body.retryable], ['Bearer', false]);
  };

  await using stranger = await startTestIssuer(Date.now);
  const forged = await stranger.token('ada', { aud: both, iss: issuer.url });
  const good = await token('ada');
  const [head = '', , signature = ''] = good.split('.');
  const claims = { sub: 'subject-ada', iss: issuer.url, aud: both, exp: 9_999_999_999 };
  const bad: [string, string][] = [
    ['of another issuer', await token('ada', { iss: 'https://elsewhere.example' })],
    ['that has expired', await token('ada', {}, -61)],
    ['that is not valid yet', await token('ada', { nbf: Math.floor(Date.now() / 1000) + 600 })],
    ['missing one of the audiences', await token('ada', { aud: ['andromeda'] })],
    ['missing every audience', await token('ada', { aud: [] })],
    ['signed by someone else', forged],
    ['with its content changed', `${head}.${base64url(claims)}.${signature}`],
    ['with alg none', `${base64url({ alg: 'none' })}.${base64url(claims)}.`],
    ['signed with the public key as a secret', unsigned({ alg: 'HS256', kid: 'key-1' }, claims)],
    ['with a key ID that does not exist', unsigned({ alg: 'ES256', kid: 'x' }, claims)],
    ['that is no JWT', 'nonsense'],
    ['that is 100 KB long', 'x'.repeat(10_000)],
    ['of someone without an account', await token('mallory', { email: 'mallory@elsewhere.example' })],
    ['of a person whose email is not verified', await token('bob', { email_verified: false })],
  ];
  for (const [aud, found] of [
    [['other', 'andromeda'], 'other, andromeda'],
    [[], 'nothing'],
  ] as const) {
    const reply = await service.business('/me', { token: await token('ada', { aud: [...aud] }) });
    refused(reply, 401, new RegExp(`meant for ${found}, where this service wants andromeda, second\\.$`));
  }
  issuer.userinfo = {};
  for (const [api, call] of Object.entries(apis)) {
    for (const [what, value] of bad) {
      await t.test(`${api} refuses a token ${what}: 401 with WWW-Authenticate: Bearer`, async () => {
        unauthorized(await call({ token: value }));
      });
    }
    unauthorized(await call({}));
    for (const authorization of ['', 'Bearer', 'Basic YTpi', `Token ${good}`, good, `Bearer ${good} x`])
      unauthorized(await call({ headers: { authorization } }));
    assert.equal((await call({ headers: { authorization: `bEARER ${good}` } })).status, 200);
  }

  const machines: [string, JWTPayload][] = [
    ['whose sub is its client_id', { sub: 'robot', client_id: 'robot' }],
    ['whose sub is its azp', { sub: 'robot', azp: 'robot' }],
    ['that the configured claim marks', { kind: 'machine' }],
  ];
  for (const [what, marks] of machines) {
    await t.test(`a service account ${what} is 401 on Business and 403 on Platform`, async () => {
      const value = await token('ada', marks);
      unauthorized(await apis.Business({ token: value }));
      const reply = await apis.Platform({ token: value });
      refused(reply, 403, 'forbidden');
      assert.deepEqual([reply.headers.get('www-authenticate'), reply.body.retryable], [null, false]);
      unauthorized(await apis.Business({ token: value }));
    });
  }

  // Authentication comes before the shape of a request.
  unauthorized(await service.business('/me/ssh-keys', { method: 'POST', body: '{"public_key":' }));
  unauthorized(await service.business('/me/ssh-keys', { method: 'POST' }));
  unauthorized(await service.business('/nothing'));
  for (const path of ['?limit=999', '/nonsense', `/${alpha}/ssh-access`]) {
    unauthorized(await service.platform(`/clusters${path}`));
  }

  // A token is verified once: the issuer is not asked for each request.
  const before = new Map(issuer.requests);
  const value = await token('ada', {}, 300);
  for (let i = 0; i < 5; i++) assert.equal((await apis.Business({ token: value })).status, 200);
  assert.deepEqual(issuer.requests, before);
  // Times in tokens are whole seconds.
  service.advance(350_000);
  assert.equal((await apis.Business({ token: value })).status, 200, 'within a minute after it expires');
  service.advance(11_000);
  for (let i = 0; i < 2; i++) unauthorized(await apis.Business({ token: value }));
});

test('a token without an email is asked about at userinfo, once until it is bound', async () => {
  await using service = await startTestApp({ lab: { ...physics, clusters: [] } });
  const { issuer } = service;
  const me = async (name: string, claims: JWTPayload, lifetime?: number) =>
    service.business('/me', { token: await issuer.token(name, claims, lifetime) });
  const without = { email: undefined, email_verified: undefined };
  issuer.userinfo = { sub: 'subject-bob', email: 'Bob@physics.example', email_verified: true };
  assert.equal((await me('bob', without)).body.user.primary_email, 'bob@physics.example');
  // Who is bound to their subject is not asked about again, whatever the email.
  issuer.userinfo = undefined;
  const known = await me('bob', { email: 'ada@physics.example' }, 500);
  assert.equal(known.body.user.primary_email, 'bob@physics.example');
  issuer.userinfo = { sub: 'subject-ada', email: 'ada@physics.example', email_verified: true };
  refused(await me('mallory', without), 401, 'unauthorized');
  issuer.userinfo = undefined;
  const down = await me('eve', without);
  refused(down, 503, 'integration_unavailable');
  assert.deepEqual([down.body.retryable, down.headers.get('www-authenticate')], [true, null]);
  issuer.userinfo = { sub: 'subject-eve', email: 'eve@physics.example', email_verified: true };
  assert.equal((await me('eve', without)).status, 200);
});

test('clocks may differ by a minute; beyond that the refusal speaks of clocks', async () => {
  await using service = await startTestApp({ lab: { ...physics, clusters: [] } });
  const { issuer } = service;
  const seconds = Math.floor(Date.now() / 1000);
  const ahead = await issuer.token('ada', { nbf: seconds + 50 });
  assert.equal((await service.business('/me', { token: ahead })).status, 200);
  const late = await issuer.token('ada', {}, -50);
  assert.equal((await service.business('/me', { token: late })).status, 200);
  const far = await service.business('/me', { token: await issuer.token('ada', { nbf: seconds + 90 }) });
  assert.equal(far.status, 401);
  assert.match(far.body.message, /clock .* is wrong/);
});

test('a key that the issuer switched to a moment ago is fetched, however short the time since', async () => {
  await using service = await startTestApp({ lab: { ...physics, clusters: [] } });
  const { issuer } = service;
  assert.equal((await service.business('/me', { token: await issuer.token('ada') })).status, 200);
  for (let i = 0; i < 2; i++) {
    await issuer.rotate();
    assert.equal((await service.business('/me', { token: await issuer.token('ada') })).status, 200);
  }
  assert.equal(issuer.requests.get('/jwks'), 3);
});

test('a token whose key the issuer dropped is refused with the first look at the key set, also if it was accepted before', async () => {
  await using service = await startTestApp({ lab: { ...physics, clusters: [] } });
  const { issuer } = service;
  const me = async (token: string) => (await service.business('/me', { token })).status;
  const old = await issuer.token('ada', {}, 3600);
  assert.equal(await me(old), 200);
  await issuer.rotate();
  const kept = await issuer.token('bob', {}, 3600);
  assert.equal(await me(kept), 200);
  assert.equal(await me(old), 200, 'its key is published still');
  await issuer.rotate({ drop: true });
  assert.equal(await me(await issuer.token('bob')), 200);
  assert.deepEqual([await me(old), await me(kept)], [401, 401]);
});

test('the key set is fetched again after ten minutes, and what was accepted is good for no longer without it', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() });
  await using service = await startTestApp({ lab: { ...physics, clusters: [] } });
  const { issuer } = service;
  const me = async (token: string) => (await service.business('/me', { token })).status;
  const dropped = await issuer.token('ada', {}, 3600);
  assert.equal(await me(dropped), 200);
  t.mock.timers.tick(599_000);
  assert.equal(await me(dropped), 200);
  t.mock.timers.tick(2_000);
  assert.equal(await me(dropped), 200, 'its key is in the set still');
  await issuer.rotate({ drop: true });
  t.mock.timers.tick(601_000);
  assert.equal(await me(dropped), 401);
  const orphan = await issuer.token('ada', {}, 3600);
  assert.equal(await me(orphan), 200);
  await issuer[Symbol.asyncDispose]();
  t.mock.timers.tick(601_000);
  refused(await service.business('/me', { token: orphan }), 503, 'integration_unavailable');
});

test('many strangers with key IDs that do not exist are 401, and share one fetch of the keys a second', async () => {
  await using service = await startTestApp({ lab: { ...physics, clusters: [] } });
  const { issuer } = service;
  const good = await issuer.token('ada');
  assert.equal((await service.business('/me', { token: good })).status, 200);
  const started = performance.now();
  const claims = { sub: 'subject-ada', iss: issuer.url, aud: 'andromeda', exp: 9_999_999_999 };
  const strangers = Array.from({ length: 60 }, (_, i) =>
    service.business('/me', { token: unsigned({ alg: 'ES256', kid: `x${i}` }, claims) }),
  );
  for (const { status } of await Promise.all(strangers)) assert.equal(status, 401);
  const seconds = Math.ceil((performance.now() - started) / 1000);
  const fetches = (issuer.requests.get('/jwks') ?? 0) - 1;
  assert.ok(fetches >= 1 && fetches <= seconds + 1, `${fetches} fetches in ${seconds} s`);
});

test('an address counts that the issuer vouches for, in the forms that issuers send, or that the operator trusts', async () => {
  const identity = { trustEmail: ['upn', 'physics.example'] };
  await using strict = await startTestApp({ lab: { ...physics, clusters: [] } });
  await using trusting = await startTestApp({ lab: { ...physics, clusters: [] }, identity });
  const bob = 'bob@physics.example';
  for (const [claims, isTaken, isTrusted] of [
    [{ email: bob, email_verified: true }, true, true],
    [{ email: bob, email_verified: 'true' }, true, true],
    [{ email: bob, email_verified: 'false' }, false, true],
    [{ email: bob, email_verified: undefined }, false, true],
    [{ email: undefined, email_verified: undefined, upn: bob }, false, true],
    [{ email: undefined, email_verified: true, upn: 'bob' }, false, false],
    [{ email: 'zoe@elsewhere.example', email_verified: undefined }, false, false],
    [{ email: 'zoe@not-physics.example', email_verified: undefined }, false, false],
    [{ email: bob, email_verified: 1 }, false, true],
  ] as const)
    for (const [service, isFine] of [
      [strict, isTaken],
      [trusting, isTrusted],
    ] as const) {
      service.issuer.userinfo = {};
      const token = await service.issuer.token('bob', claims);
      const { status, body } = await service.business('/me', { token });
      assert.equal(status, isFine ? 200 : 401, JSON.stringify([claims, body]));
      // The next one is a first sign-in again.
      await service.app.store.write(({ db }) => db.deleteFrom('identities').execute());
      service.advance(1_000);
    }
});

test('a token that userinfo refuses is 401, and not an issuer that cannot be reached', async () => {
  await using service = await startTestApp({ lab: { ...physics, clusters: [] } });
  const { issuer } = service;
  for (const [answer, status, code, message] of [
    [401, 401, 'unauthorized', /no verified email address.*identity\.trustEmail/],
    [403, 401, 'unauthorized', /a scope is missing/],
    [500, 503, 'integration_unavailable', /cannot be reached/],
  ] as const) {
    issuer.userinfo = answer;
    const reply = await service.business('/me', { token: await issuer.token('eve', { email: undefined }) });
    assert.deepEqual([reply.status, reply.body.code], [status, code]);
    assert.match(reply.body.message, message);
  }
});

test('the log says why a request was 401, and nothing of its token', async () => {
  const lines: string[] = [];
  await using service = await startTestApp({
    lab: { ...physics, clusters: [] },
    log: createLogger('info', (line) => lines.push(line)),
  });
  const { issuer } = service;
  const elsewhere = await issuer.token('ada', { iss: 'https://elsewhere.example' });
  const strange = unsigned({ alg: 'ES256', kid: 'x' }, { sub: 'subject-ada' });
  for (const [token, reason] of [
    [elsewhere, /from an issuer that is not accepted here/],
    [strange, /not valid\. \(ERR_JWKS_NO_MATCHING_KEY\)/],
    ['nonsense', /not valid\. \(ERR_J\w+\)/],
  ] as const) {
    assert.equal((await service.business('/me', { token })).status, 401);
    const line = lines.find((one) => one.includes('"status":401'));
    assert.match(JSON.parse(line ?? '{}').refusal, reason);
    assert.ok(!lines.join('').includes(token.split('.').at(1) ?? token));
    lines.length = 0;
  }
});
