/** Tokens and endpoints as other issuers document them, which cannot be run here: who signs in, what counts as a sign-in, which groups are read. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { JWTPayload } from 'jose';
import { createRemoteIssuer } from '../../src/api/identity/remote-issuer.ts';
import { verifyToken } from '../../src/api/identity/token.ts';
import { startDeviceFlow } from '../../src/cli/net/issuer.ts';
import { readGroups } from '../../src/domain/organizations/group-rules.ts';
import { createLogger } from '../../src/lib/log.ts';
import { type Config, readConfig } from '../../src/service/config/index.ts';
import { type Finding, warn, wrong } from '../../src/service/host/checks/findings.ts';
import { checkIssuer } from '../../src/service/host/checks/surroundings.ts';
import { startAnswers } from '../support/answers.ts';
import { eventually, physics, startTestApp } from '../support/app.ts';
import { createAuthority } from '../support/certificate.ts';
import { fieldsOf } from '../support/fields.ts';
import { type Discovery, startTestIssuer } from '../support/issuer.ts';

interface Recorded {
  source: string;
  discovery: Discovery;
  /** Times are seconds from now, such as `+300`. */
  accessToken: Record<string, unknown>;
  /** Or the status of its answer to a token of ours. */
  userinfo?: Record<string, unknown> | number;
  /** What has to be set, where the issuer does not vouch for addresses. */
  trustEmail?: string[];
  audiences?: string[];
  /** Null: the claim is not there. */
  groups: string[] | 'overage' | null;
  /** Whether the access token says when the person signed in. */
  signInCounts: boolean;
}

const folder = join(import.meta.dirname, 'issuers');
const lab = {
  ...physics,
  clusters: [],
  users: [...(physics.users ?? []), { email: 'zoe@physics.example', name: 'Zoe' }],
};
const hour = 3_600_000;

for (const name of readdirSync(folder))
  test(`a token as documented by ${name.replace('.json', '')}`, async () => {
    const recorded = JSON.parse(readFileSync(join(folder, name), 'utf8')) as Recorded;
    const { audiences = ['andromeda'], groups, signInCounts, discovery, trustEmail } = recorded;
    await using service = await startTestApp({
      ...{ lab, discovery },
      identity: { audiences, groups: { claim: 'groups' }, ...(trustEmail && { trustEmail }) },
      config: { access: { maxHoursWithoutSignIn: 12 } },
    });
    service.issuer.userinfo = recorded.userinfo ?? {};
    // The account was made, and is signed in to, some hours later.
    service.advance(2 * hour);
    const now = Math.floor(Date.now() / 1000) + 2 * 3_600;
    const timed = Object.entries(recorded.accessToken).map(([claim, value]) => [
      claim,
      typeof value === 'string' && /^[+-]\d+$/.test(value) ? now + Number(value) : value,
    ]);
    const made = { client_id: undefined, auth_time: undefined, email: undefined, email_verified: undefined };
    const claims: JWTPayload = { ...made, ...Object.fromEntries(timed) };
    const token = await service.issuer.token('zoe', claims);
    const { status, body } = await service.business('/me', { token });
    assert.equal(status, 200, JSON.stringify(body));
    assert.equal(body.user.primary_email, 'zoe@physics.example');
    const { requests, url } = service.issuer;
    assert.equal(requests.get(discovery.jwks_uri), 1);
    assert.equal(requests.has(discovery.userinfo_endpoint), typeof recorded.userinfo === 'object');
    const { signal } = new AbortController();
    const asked = {
      issuer: url,
      clientId: 'andromeda-cli',
      platformUrl: service.platformUrl,
      scope: 'openid',
      signal,
    };
    await assert.rejects(startDeviceFlow(asked), 'the test issuer has no device codes');
    assert.equal(requests.get(discovery['device_authorization_endpoint'] ?? ''), 1);

    const operator = { token: await service.issuer.token('root', { aud: audiences }) };
    const people = await service.business('/operator/people?email=zoe@physics.example', operator);
    assert.equal(people.body.people[0].last_sign_in_at !== undefined, signInCounts);
    const { body: said } = await service.business('/operator/problems', operator);
    assert.equal(/do not say when people signed in/.test(JSON.stringify(said)), !signInCounts);

    const read = readGroups(recorded.accessToken, 'groups');
    if (groups === null) assert.equal(read.kind, 'absent');
    else if (groups === 'overage') {
      assert.match(read.kind === 'fault' ? read.fault : '', /overage/);
      assert.match(JSON.stringify(said), /overage/);
    } else assert.deepEqual(read, { kind: 'groups', groups: groups.toSorted() });
  });

async function findingsOf(settings: string, changes: object = {}, away = wrong): Promise<Finding[]> {
  const config = readConfig(settings);
  return Array.fromAsync(checkIssuer({ ...config, identity: { ...config.identity, ...changes } }, away));
}

test('an issuer with a certificate of a private authority signs people in, and is well for check and doctor', async () => {
  await using service = await startTestApp({
    issuerAuthority: createAuthority(),
    identity: { ca: './ca.pem' },
  });
  assert.match(service.issuer.url, /^https:/);
  assert.equal((await service.business('/me', { as: 'bob' })).status, 200);
  const settings = join(service.dataDir, 'andromeda.yaml');
  const [found] = await findingsOf(settings);
  assert.deepEqual(found, { verdict: 'ok', about: 'issuer', text: `${service.issuer.url} answers.` });
  // Without it, as the service would be.
  const other = new URL(service.issuer.url);
  other.hostname = 'localhost';
  const [untrusted] = await findingsOf(settings, { ca: undefined, issuer: other.origin });
  assert.match(untrusted?.text ?? '', /cannot be read: unable to verify the first certificate/);
  // For check, an issuer that is away is no reason to refuse the settings.
  assert.equal(
    (await findingsOf(settings, { ca: undefined, issuer: other.origin }, warn))[0]?.verdict,
    'warn',
  );
});

test('an issuer with a slash at the end that it does not have itself is named at the start, by check and by doctor', async () => {
  const logged: string[] = [];
  const log = createLogger('info', (line) => logged.push(line));
  await using service = await startTestApp({ log });
  const settings = join(service.dataDir, 'andromeda.yaml');
  const said = await findingsOf(settings, { issuer: `${service.issuer.url}/` }, warn);
  assert.deepEqual(fieldsOf(said, 'verdict'), ['wrong']);
  assert.match(said[0]?.text ?? '', /They have to be the same, to the letter\.$/);

  await using other = await startTestApp({ log, identity: { issuer: `${service.issuer.url}/` } });
  const failed = () => Promise.resolve(logged.filter((line) => line.includes('issuer.failed')).join());
  await eventually(failed, (text) => text.includes('identity.issuer has to be the same, to the letter.'));
  assert.equal((await other.business('/me', { as: 'bob' })).status, 503);
});

test('an issuer whose keys cannot be had is none that answers', async () => {
  const answers: Record<string, string> = {
    '/none': '{"keys":[]}',
    '/broken': 'no JSON',
    '/only': '{"keys":[{}]}',
  };
  await using server = await startAnswers(({ url = '' }, origin) => {
    const [, path = ''] = /^(.*)\/\.well-known/.exec(url) ?? [];
    const jwks_uri = path === '/plain' ? 'http://192.0.2.1/keys' : `${origin}${path}`;
    const metadata = JSON.stringify({ issuer: `${origin}${path}`, jwks_uri });
    return url === '/moved' ? [302, '', { location: '/none' }] : [200, answers[url] ?? metadata];
  });
  for (const [path, text, expected = 'warn'] of [
    ['/none', /\/none has no keys\. Nobody can sign in\.$/],
    ['/broken', /\/broken cannot be read: /],
    ['/moved', /\/moved cannot be read: unexpected redirect/],
    ['/plain', /192\.0\.2\.1\/keys, its jwks_uri, is plain http\. Nobody can sign in\.$/, 'wrong'],
    ['/only', /\/only offers no sign-in with a device code, which the command line needs\.$/, 'wrong'],
  ] as const) {
    const config = { identity: { issuer: `${server.url}${path}` } } as Config;
    const found = await Array.fromAsync(checkIssuer(config, warn));
    assert.deepEqual(fieldsOf(found, 'verdict'), [expected]);
    assert.match(found[0]?.text ?? '', text);
  }
});

const now = () => Date.now();

type Answers = (url: string) => Record<string, [number, string]>;
/** An issuer that answers some of its addresses wrongly. */
const startBroken = (answers: Answers) =>
  startAnswers(({ url = '' }, origin) => answers(origin)[url] ?? [404, '{}']);

const metadata = (url: string) => JSON.stringify({ issuer: url, jwks_uri: `${url}/jwks` });
const discovery = '/.well-known/openid-configuration';
const broken: [string, Answers][] = [
  ['has no discovery document', () => ({})],
  ['answers discovery with 500', () => ({ [discovery]: [500, '{}'] })],
  ['answers discovery with HTML', () => ({ [discovery]: [200, '<html>'] })],
  ['says it is another issuer', () => ({ [discovery]: [200, metadata('https://elsewhere.example')] })],
  ['names no keys', (url) => ({ [discovery]: [200, JSON.stringify({ issuer: url })] })],
  ['has no keys', (url) => ({ [discovery]: [200, metadata(url)] })],
  ['answers its keys with 503', (url) => ({ [discovery]: [200, metadata(url)], '/jwks': [503, '{}'] })],
  ['answers its keys with HTML', (url) => ({ [discovery]: [200, metadata(url)], '/jwks': [200, '<html>'] })],
  [
    'answers its keys with no key set',
    (url) => ({ [discovery]: [200, metadata(url)], '/jwks': [200, '{"a":1}'] }),
  ],
];

for (const [what, answers] of broken) {
  test(`an issuer that ${what} is 503 integration_unavailable, not the caller's fault`, async () => {
    await using issuer = await startTestIssuer(now);
    await using other = await startBroken(answers);
    const token = await issuer.token('ada', { iss: other.url });
    const { keys } = createRemoteIssuer(other.url);
    await assert.rejects(verifyToken(token, { issuer: other.url, audiences: ['andromeda'] }, keys, now()), {
      code: 'integration_unavailable',
    });
  });
}

test('keys that the issuer names at a plain http address are not fetched, and no token is sent to one', async () => {
  await using issuer = await startTestIssuer(now);
  const elsewhere = 'http://192.0.2.1';
  await using other = await startBroken((url) => ({
    [discovery]: [
      200,
      JSON.stringify({ issuer: url, jwks_uri: `${elsewhere}/jwks`, userinfo_endpoint: `${elsewhere}/me` }),
    ],
  }));
  const token = await issuer.token('ada', { iss: other.url });
  const { keys, userinfo } = createRemoteIssuer(other.url);
  for (const ask of [
    () => verifyToken(token, { issuer: other.url, audiences: ['andromeda'] }, keys, now()),
    () => userinfo(token, 'subject-ada'),
  ])
    await assert.rejects(ask(), { code: 'integration_unavailable', message: /192\.0\.2\.1.* plain http/ });
});

test('an issuer that cannot be reached is 503 integration_unavailable, and is asked again the next time', async () => {
  const issuer = await startTestIssuer(now);
  const token = await issuer.token('ada');
  await issuer[Symbol.asyncDispose]();
  const remote = createRemoteIssuer(issuer.url);
  for (let i = 0; i < 2; i++) {
    await assert.rejects(
      verifyToken(token, { issuer: issuer.url, audiences: ['andromeda'] }, remote.keys, now()),
      { code: 'integration_unavailable' },
    );
  }
  await assert.rejects(remote.userinfo(token, 'subject-ada'), { code: 'integration_unavailable' });
});
