import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { physics, startTestApp } from '../support/app.ts';
import { refused } from '../support/refused.ts';

test('what both APIs serve without a token', async (t) => {
  await using service = await startTestApp({ lab: { ...physics, clusters: [] } });

  for (const api of ['business', 'platform'] as const) {
    const get = (path: string, call = {}) => service[api](path, call);

    await t.test(`${api}: /docs shows every operation of the document`, async () => {
      const { status, body: document, headers } = await get('/openapi.json');
      assert.equal(status, 200);
      assert.match(headers.get('content-type') ?? '', /^application\/json/);
      assert.match(document.openapi, /^3\.1\./);
      assert.match(document.info.version, /^\d+\.\d+\.\d+$/);
      const docs = await get('/docs');
      assert.equal(docs.status, 200);
      assert.match(docs.headers.get('content-type') ?? '', /^text\/html; charset=utf-8/);
      const operations = Object.entries<Record<string, { summary: string }>>(document.paths);
      assert.ok(operations.length > 0);
      for (const [path, methods] of operations) {
        assert.ok(docs.body.includes(`>${path}<`), path);
        for (const [method, { summary }] of Object.entries(methods)) {
          assert.ok(docs.body.includes(`>${method.toUpperCase()}<`));
          assert.ok(docs.body.includes(summary.replaceAll("'", '&#39;')), summary);
        }
      }
    });

    await t.test(`${api}: /docs needs nothing from other origins, and runs no script`, async () => {
      const { body, headers } = await get('/docs');
      const [, style = ''] = /<style>([\s\S]*)<\/style>/.exec(body) ?? [];
      const hash = createHash('sha256').update(style).digest('base64');
      assert.equal(
        headers.get('content-security-policy'),
        `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
      );
      assert.equal(headers.get('x-content-type-options'), 'nosniff');
      assert.equal(headers.get('referrer-policy'), 'no-referrer');
      assert.doesNotMatch(
        body,
        /<(script|form|link|img|iframe|object|embed|base)\b|\s(on\w+|src|action)=|javascript:|@import|url\(/i,
      );
      const [first, other = '', ...more] = [...body.matchAll(/href="([^"]*)"/g)].map(([, link]) => link);
      assert.deepEqual([first, more], ['/openapi.json', []]);
      assert.match(other, /^http:\/\/127\.0\.0\.1:\d+\/docs$/);
      assert.equal((await fetch(other)).status, 200);
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
        refused(await get(path, { as: 'ada' }), 404, 'not_found');
      }
    });

    await t.test(`${api}: no reply says what serves it, and none may be kept`, async () => {
      const path = api === 'business' ? '/me' : '/clusters?businessOrgId=x';
      const { headers } = await get(path, { as: 'ada' });
      const kept = ['x-powered-by', 'etag', 'cache-control'].map((name) => headers.get(name));
      assert.deepEqual(kept, [null, null, 'no-store']);
      for (const method of ['POST', 'PUT', 'DELETE', 'PATCH'])
        refused(await get(path, { as: 'ada', method }), 404, 'not_found');
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
