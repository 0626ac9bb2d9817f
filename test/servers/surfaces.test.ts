/** Every address of a service over HTTP while its PostgreSQL is away, or stands still: 503 in words, or what needs no database. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type CookieBrowser,
  createCookieBrowser,
  startConsoleApp,
  signIn as toConsole,
} from '../console/harness.ts';
import { cli, deviceGrant, startDevice, signIn as toTerminal } from '../identity/issuer/harness.ts';
import { eventually, physics } from '../support/app.ts';
import { freePorts } from '../support/ports.ts';
import { createPostgres, missingPostgres, signalsTo, type TestPostgres } from '../support/postgres-server.ts';
import { newPublicKey } from '../support/ssh-keys.ts';

/** What is asked, and whether the answer needs the database. */
interface Surface {
  name: string;
  ask(): Promise<Response>;
  /** Where that needs no database. */
  own?: { status: number; location?: RegExp };
}

async function surfaces(postgres: TestPostgres) {
  await using parts = new AsyncDisposableStack();
  const [metricsPort = 0] = await freePorts(1);
  const app = parts.use(
    await startConsoleApp({
      lab: { ...physics, clusters: [], grants: [] },
      config: {
        ...{ database: postgres.url(), secretsKeyFile: './secrets.key' },
        metrics: { listen: `127.0.0.1:${metricsPort}` },
      },
    }),
  );
  const { url: consoleUrl, issuerUrl, test: service } = app;
  const { platformUrl, businessUrl } = service;
  const browser = await toConsole(app, 'ada');
  const tokens = await toTerminal(issuerUrl);
  const device = await startDevice(issuerUrl);
  const bearer = { authorization: `Bearer ${tokens['access_token']}` };
  const form = (path: string, fields: Record<string, string>) => () =>
    fetch(issuerUrl + path, { method: 'POST', body: new URLSearchParams({ client_id: cli, ...fields }) });
  const get =
    (url: string, headers: Record<string, string> = {}) =>
    () =>
      fetch(url, { headers });
  const html = { accept: 'text/html' };
  const page =
    (path: string, from: CookieBrowser = browser) =>
    () =>
      from.visit(issuerUrl + path, { headers: html });
  const stranger = createCookieBrowser(consoleUrl);
  const registered = {
    method: 'POST',
    headers: {
      ...bearer,
      'content-type': 'application/json',
      'Idempotency-Key': 'surfaces-1',
      'Audit-Reason': 'a test',
    },
    body: JSON.stringify({ public_key: newPublicKey() }),
  };
  const ok = { status: 200 };
  const all: Surface[] = [
    { name: 'business read', ask: get(`${businessUrl}/me/ssh-keys`, bearer) },
    { name: 'business write', ask: () => fetch(`${businessUrl}/me/ssh-keys`, registered) },
    { name: 'platform', ask: get(`${platformUrl}/clusters?businessOrgId=nobody`, bearer) },
    { name: 'platform, public', ask: get(`${platformUrl}/.well-known/oauth-protected-resource`), own: ok },
    ...['business', 'platform'].flatMap((name) => {
      const url = name === 'business' ? businessUrl : platformUrl;
      return [
        { name: `${name} readyz`, ask: get(`${url}/readyz`) },
        { name: `${name} healthz`, ask: get(`${url}/healthz`), own: ok },
        { name: `${name} docs`, ask: get(`${url}/docs`), own: ok },
        { name: `${name} document`, ask: get(`${url}/openapi.json`), own: ok },
      ];
    }),
    { name: 'download', ask: get(`${platformUrl}/download`), own: ok },
    { name: 'metrics', ask: get(`http://127.0.0.1:${metricsPort}/metrics`), own: ok },
    { name: 'discovery', ask: get(`${issuerUrl}/.well-known/openid-configuration`), own: ok },
    { name: 'jwks', ask: get(`${issuerUrl}/jwks`), own: ok },
    { name: 'device page', ask: page(`/device?user_code=${device.user_code}`) },
    { name: 'device page without a code', ask: page('/device', stranger), own: ok },
    { name: 'password page', ask: page('/password') },
    { name: 'userinfo', ask: get(`${issuerUrl}/me`, bearer) },
    { name: 'device authorization', ask: form('/device/auth', { scope: 'openid' }) },
    {
      name: 'token of a device',
      ask: form('/token', { grant_type: deviceGrant, device_code: device.device_code }),
    },
    {
      name: 'token of a refresh',
      ask: form('/token', { grant_type: 'refresh_token', refresh_token: String(tokens['refresh_token']) }),
    },
    { name: 'revocation', ask: form('/token/revocation', { token: String(tokens['refresh_token']) }) },
    { name: 'console page', ask: () => browser.visit(`${consoleUrl}/`), own: ok },
    { name: 'console healthz', ask: () => browser.visit(`${consoleUrl}/healthz`), own: ok },
    ...[
      '/session',
      '/sessions',
      '/api/business/me',
      '/api/platform/clusters?businessOrgId=nobody',
      '/events',
    ].map((path) => ({
      name: `console ${path}`,
      ask: () => browser.call(path),
    })),
    { name: 'console sign-out', ask: () => browser.call('/sign-out', { method: 'POST' }) },
    {
      // A page, which has a sentence for it.
      name: 'console sign-in',
      ask: () => browser.visit(`${consoleUrl}/sign-in`),
      own: { status: 303, location: /\/signed-out\?why=unavailable$/ },
    },
  ];
  const kept = parts.move();
  return { all, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}

/** What is not as it should be, a line each. */
async function faultsOf(all: readonly Surface[]): Promise<string[]> {
  const lines = await Promise.all(
    all.map(async ({ name, ask, own }) => {
      const response = await ask().catch((error: unknown) => error as Error);
      if (response instanceof Error) return [`${name}: ${response.message}`];
      const text = await response.text();
      const { status, headers } = response;
      const said = `${name}: ${status} ${headers.get('retry-after')} ${text.slice(0, 300)}`;
      if (own) {
        const isThere = !own.location || own.location.test(headers.get('location') ?? '');
        return status === own.status && isThere ? [] : [said];
      }
      const isInWords = /database|service/i.test(text) && !/fault|went wrong|internal/i.test(text);
      return status === 503 && headers.get('retry-after') !== null && isInWords ? [] : [said];
    }),
  );
  return lines.flat();
}

test('every address answers 503 in words with Retry-After, or what needs no database, while PostgreSQL is away or stands still', {
  skip: missingPostgres() ?? false,
}, async () => {
  await using postgres = await createPostgres();
  await using served = await surfaces(postgres);
  const isBack = () =>
    eventually(
      async () => (await served.all[0]?.ask())?.status,
      (status) => status === 200,
    );
  // Stopped at once.
  await postgres.stop('SIGQUIT');
  assert.deepEqual(await faultsOf(served.all), []);
  await postgres.start();
  await isBack();

  // Standing still.
  const signal = signalsTo(postgres);
  signal('SIGSTOP');
  try {
    assert.deepEqual(await faultsOf(served.all), []);
  } finally {
    signal('SIGCONT');
  }
  await isBack();
});
