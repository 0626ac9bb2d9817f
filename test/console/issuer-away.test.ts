import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { createIssuerClient, type IssuerClient } from '../../src/console/server/issuer-client.ts';
import type { Sessions } from '../../src/console/server/sessions.ts';
import { createSignInRoutes } from '../../src/console/server/sign-in.ts';
import { DomainError } from '../../src/domain/error.ts';
import { createLogger } from '../../src/lib/log.ts';
import { listening } from '../support/ports.ts';

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
  const routes = createSignInRoutes({
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
  });
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '', 'http://console.invalid');
    if (request.method === 'POST') void routes.signOut(request, response, '127.0.0.1');
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
