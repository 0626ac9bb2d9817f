import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { physics, startTestApp } from '../support/app.ts';

test('what both APIs serve without a token', async (t) => {
  await using service = await startTestApp({ lab: { ...physics, clusters: [] } });

  for (const api of ['business', 'platform'] as const) {
    const get = (path: string, call = {}) => service[api](path, call);

    await t.test(`${api}: /openapi.json is an OpenAPI 3.1 document that states its version`, async () => {
      const { status, body, headers } = await get('/openapi.json');
      assert.equal(status, 200);
      assert.match(headers.get('content-type') ?? '', /^application\/json/);
      assert.match(body.openapi, /^3\.1\./);
      assert.match(body.info.version, /^\d+\.\d+\.\d+$/);
    });

    await t.test(`${api}: /docs shows every operation of the document`, async () => {
      const document = (await get('/openapi.json')).body;
      const { status, body, headers } = await get('/docs');
      assert.equal(status, 200);
      assert.match(headers.get('content-type') ?? '', /^text\/html; charset=utf-8/);
      const operations = Object.entries<Record<string, { summary: string }>>(document.paths);
      assert.ok(operations.length > 0);
      for (const [path, methods] of operations) {
        assert.ok(body.includes(`>${path}<`), path);
        for (const [method, { summary }] of Object.entries(methods)) {
          assert.ok(body.includes(`>${method.toUpperCase()}<`));
          assert.ok(body.includes(summary.replaceAll("'", '&#39;')), summary);
        }
      }
    });

    await t.test(`${api}: /docs needs nothing from other origins, and runs no script`, async () => {
      const { body, headers } = await get('/docs');
      const [, style = ''] = /<style>([\s\S]*)<\/style>/.exec(body) ?? [];
      assert.deepEqual((headers.get('content-security-policy') ?? '').split('; '), [
        "default-src 'none'",
        `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
      ]);
      assert.equal(headers.get('x-content-type-options'), 'nosniff');
      assert.equal(headers.get('referrer-policy'), 'no-referrer');
      assert.doesNotMatch(
        body,
        /<(script|form|link|img|iframe|object|embed|base)\b|\s(on\w+|src|action)=|javascript:|@import|url\(/i,
      );
    });

    await t.test(`${api}: /docs links to the document and the other API`, async () => {
      const { body } = await get('/docs');
      const links = [...body.matchAll(/href="([^"]*)"/g)].map(([, link]) => link);
      assert.equal(links.length, 2);
      assert.equal(links[0], '/openapi.json');
      assert.match(links[1] ?? '', /^http:\/\/127\.0\.0\.1:\d+\/docs$/);
      assert.equal((await fetch(links[1] ?? '')).status, 200);
    });

    await t.test(`${api}: /healthz and /readyz answer, and HEAD as GET without a body`, async () => {
      assert.deepEqual((await get('/healthz')).body, { status: 'ok' });
      assert.deepEqual((await get('/readyz')).body, { status: 'ready' });
      for (const path of ['/healthz', '/docs', '/openapi.json']) {
        const { status, body } = await get(path, { method: 'HEAD' });
        assert.deepEqual([status, body], [200, '']);
      }
    });

    await t.test(`${api}: an unknown address is 401 without a token and 404 not_found with one`, async () => {
      assert.equal((await get('/nothing')).status, 401);
      for (const path of ['/nothing', '/ME', '/', '/CLUSTERS', '/docs/x', '/me//ssh-keys']) {
        const { status, body } = await get(path, { as: 'ada' });
        assert.deepEqual([status, body.code, body.retryable], [404, 'not_found', false], path);
      }
    });

    await t.test(`${api}: a method that an address does not take is 404 not_found`, async () => {
      const path = api === 'business' ? '/me' : '/clusters';
      for (const method of ['POST', 'PUT', 'DELETE', 'PATCH']) {
        const { status, body } = await get(path, { as: 'ada', method });
        assert.deepEqual([status, body.code], [404, 'not_found'], method);
      }
    });

    await t.test(`${api}: no reply says what serves it, and none may be kept`, async () => {
      const { headers } = await get(api === 'business' ? '/me' : '/clusters?businessOrgId=x', { as: 'ada' });
      assert.equal(headers.get('x-powered-by'), null);
      assert.equal(headers.get('etag'), null);
      assert.equal(headers.get('cache-control'), 'no-store');
    });
  }

  await t.test('discovery needs no token and says what the contract lists', async () => {
    const { status, body } = await service.platform('/.well-known/oauth-protected-resource');
    assert.equal(status, 200);
    const { resource, svc_business_url, ...rest } = body;
    assert.equal((await fetch(`${resource}/healthz`)).status, 200);
    assert.match(await (await fetch(`${svc_business_url}/openapi.json`)).text(), /Andromeda Business API/);
    assert.deepEqual(rest, {
      authorization_servers: [service.issuer.url],
      svc_audiences: ['andromeda'],
      svc_cli_client_id: 'andromeda-cli',
      bearer_methods_supported: ['header'],
    });
    assert.equal((await service.platform('/.well-known/oauth-protected-resource/')).status, 200);
    assert.equal((await service.business('/.well-known/oauth-protected-resource')).status, 401);
  });
});
