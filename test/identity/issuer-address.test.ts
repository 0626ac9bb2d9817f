/** An external issuer by its address: its certificate authority, and its own name for itself. */

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { createLogger } from '../../src/lib/log.ts';
import { type Config, readConfig } from '../../src/service/config/index.ts';
import { type Finding, warn, wrong } from '../../src/service/host/checks/findings.ts';
import { checkIssuer } from '../../src/service/host/checks/surroundings.ts';
import { startAnswers } from '../support/answers.ts';
import { eventually, startTestApp } from '../support/app.ts';
import { createAuthority } from '../support/certificate.ts';
import { fieldsOf } from '../support/fields.ts';

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
