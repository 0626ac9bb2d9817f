import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRemoteIssuer } from '../../src/api/identity/remote-issuer.ts';
import { verifyToken } from '../../src/api/identity/token.ts';
import { startAnswers } from '../support/answers.ts';
import { startTestIssuer } from '../support/issuer.ts';

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
    () => userinfo(token),
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
  await assert.rejects(remote.userinfo(token), { code: 'integration_unavailable' });
});
