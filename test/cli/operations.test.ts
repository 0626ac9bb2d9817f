/** The client calls what the documents have: the compiler holds the types, these tests the paths. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Api, fillPath, type PlatformReader } from '../../src/cli/net/api.ts';

test('a path, a method, a parameter or a field that the document lacks is a type error (tsc --noEmit holds it)', () => {
  const path = { orgID: 'org_1', userID: 'user_1' };
  const calls = [
    async (api: Api) => {
      const { user, memberships } = await api.get('/me');
      memberships satisfies { org_id: string }[];
      // @ts-expect-error a reply has the fields of the document, as the document has them
      user.login_shell satisfies number;
      // @ts-expect-error there is no such field
      user.shell;
    },
    // @ts-expect-error there is no such path
    (api: Api) => api.get('/mee'),
    // @ts-expect-error it is a path of the other API
    (api: Api) => api.get('/clusters'),
    // @ts-expect-error it is not read but written
    (api: Api) => api.get('/organizations/{orgID}/members/{userID}/role', { path }),
    // @ts-expect-error a parameter of the path is missing
    (api: Api) => api.get('/organizations/{orgID}/members', { path: {} }),
    // @ts-expect-error nothing is given where something must be
    (api: Api) => api.get('/organizations/{orgID}/members'),
    // @ts-expect-error the document has no such field in the body
    (api: Api) => api.put('/me/login-preferences', { body: { shel: '/bin/sh' } }),
    // @ts-expect-error a body is missing
    (api: Api) => api.put('/organizations/{orgID}/members/{userID}/role', { path }),
    // @ts-expect-error the document has no such parameter in the query
    (platform: PlatformReader) => platform.get('/clusters', { query: { businessOrgID: 'org_1' } }),
    (platform: PlatformReader) =>
      platform.get('/clusters', { query: { businessOrgId: 'org_1', limit: 200 } }),
  ];
  assert.equal(calls.length, 10);
});

const rows: [string, Parameters<typeof fillPath>[1], string][] = [
  ['/me', {}, '/me'],
  ['/a/{b}/c/{d}', { path: { b: 'x/y?', d: 'ü' } }, '/a/x%2Fy%3F/c/%C3%BC'],
  ['/a', { query: { after: undefined, limit: 200, name: 'a b&c' } }, '/a?limit=200&name=a+b%26c'],
  ['/a', { query: { after: undefined } }, '/a'],
];
for (const [path, given, expected] of rows)
  test(`${path} is called as ${expected}`, () => assert.equal(fillPath(path, given), expected));
