/** What holds for every Platform route alike: parameters, people, permissions. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadDocument } from '../../src/api/http/document.ts';
import { alpha, eventually, physics, type Reply, startTestApp } from '../support/app.ts';
import { refused, tokenFor } from './support.ts';

const nowhere = '00000000-0000-4000-8000-000000000000';
const nobody = 'org_01JD0000000000000000000000';

interface Route {
  path: string;
  method?: 'PUT' | 'POST';
  /** The organization parameter; undefined where the path names it. */
  query?: 'businessOrgId' | 'organizationId';
  /** What a missing one is. */
  missing?: [number, string];
  /** Whether a live grant on the cluster opens it, and whether staff.read does. */
  grant: boolean;
  staff: boolean;
  /** The one permission that opens it. */
  permission: string;
}

const invalidOrganization: [number, string] = [400, 'invalid_organization'];
const invalidRequest: [number, string] = [422, 'invalid_request'];
const routes: Route[] = [
  {
    path: '/clusters',
    query: 'businessOrgId',
    missing: invalidOrganization,
    grant: true,
    staff: true,
    permission: 'clusters.read',
  },
  {
    path: '/clusters/{id}',
    query: 'businessOrgId',
    missing: invalidOrganization,
    grant: true,
    staff: true,
    permission: 'clusters.read',
  },
  {
    path: '/clusters/{id}/options',
    query: 'businessOrgId',
    missing: invalidOrganization,
    grant: true,
    staff: true,
    permission: 'clusters.read',
  },
  {
    path: '/clusters/{id}/machines',
    query: 'businessOrgId',
    missing: invalidRequest,
    grant: true,
    staff: true,
    permission: 'clusters.read',
  },
  {
    path: '/clusters/{id}/usage',
    query: 'businessOrgId',
    missing: invalidRequest,
    grant: true,
    staff: true,
    permission: 'clusters.read',
  },
  {
    path: '/clusters/{id}/ssh-access',
    query: 'organizationId',
    missing: invalidRequest,
    grant: false,
    staff: false,
    permission: 'clusters.ssh',
  },
  {
    path: '/clusters/{id}/kubeconfig',
    query: 'organizationId',
    missing: invalidRequest,
    grant: true,
    staff: false,
    permission: 'clusters.kubernetes',
  },
  {
    path: '/clusters/{id}/scheduler-configuration',
    query: 'businessOrgId',
    missing: invalidRequest,
    grant: false,
    staff: false,
    permission: 'clusters.configure',
  },
  {
    path: '/clusters/{id}/scheduler-configuration',
    method: 'PUT',
    query: 'businessOrgId',
    missing: invalidRequest,
    grant: false,
    staff: false,
    permission: 'clusters.configure',
  },
  {
    path: '/clusters/{id}/scheduler-configuration/check',
    method: 'POST',
    query: 'businessOrgId',
    missing: invalidRequest,
    grant: false,
    staff: false,
    permission: 'clusters.configure',
  },
  {
    path: '/clusters/{id}/scheduler-configuration/status',
    query: 'businessOrgId',
    missing: invalidRequest,
    grant: false,
    staff: false,
    permission: 'clusters.configure',
  },
  {
    path: '/clusters/{id}/scheduler-configuration/versions',
    query: 'businessOrgId',
    missing: invalidRequest,
    grant: false,
    staff: false,
    permission: 'clusters.configure',
  },
  {
    path: '/clusters/{id}/scheduler-configuration/versions/1',
    query: 'businessOrgId',
    missing: invalidRequest,
    grant: false,
    staff: false,
    permission: 'clusters.configure',
  },
  {
    path: '/organizations/{org}/scheduler-configuration',
    grant: false,
    staff: false,
    permission: 'clusters.configure',
  },
  {
    path: '/organizations/{org}/scheduler-configuration',
    method: 'PUT',
    grant: false,
    staff: false,
    permission: 'clusters.configure',
  },
  { path: '/organizations/{org}/storage', grant: false, staff: true, permission: 'clusters.read' },
];
const permissions = [...new Set(routes.map(({ permission }) => permission))];

test('every Platform route', async (t) => {
  await using service = await startTestApp({
    identity: { kubernetes: { clientId: 'andromeda-kubernetes' } },
    lab: {
      ...physics,
      users: [
        { email: 'reader@staff.example', staff: ['staff.read'] },
        { email: 'auditor@staff.example', staff: ['staff.audit'] },
        { email: 'operator@staff.example', staff: ['staff.operate'] },
      ],
      organizations: (physics.organizations ?? []).map((organization) => ({
        ...organization,
        members: [
          ...(organization.members ?? []),
          ...(organization.slug === 'physics'
            ? permissions.map((permission) => ({
                email: `${permission}@physics.example`,
                role: 'member' as const,
                permissions: [permission as 'clusters.read'],
              }))
            : []),
        ],
      })),
      grants: [
        { user: 'whole@elsewhere.example', cluster: 'alpha', relation: 'kubernetes.viewer' },
        {
          user: 'namespace@elsewhere.example',
          cluster: 'alpha',
          relation: 'kubernetes.viewer',
          namespace: 'team-a',
        },
        { user: 'beta@elsewhere.example', cluster: 'beta', relation: 'kubernetes.admin' },
      ],
    },
  });
  const { org_id: org } = (await service.business('/me', { as: 'ada' })).body.memberships[0];
  const carl = await tokenFor(service, 'carl@chemistry.example');
  const { org_id: chemistry } = (await service.business('/me', { token: carl })).body.memberships[0];

  const addressOf = (route: Route, { id = alpha, of = org }: { id?: string; of?: string | null } = {}) =>
    route.path.replace('{id}', id).replace('{org}', of ?? '') +
    (route.query && of !== null ? `?${route.query}=${of}` : '');
  const ask = (route: Route, address: string, call: object): Promise<Reply> =>
    service.platform(address, {
      ...call,
      ...(route.method ? { method: route.method, body: {} } : {}),
    });
  const askAs = async (route: Route, email: string, of?: object) =>
    ask(route, addressOf(route, of), { token: await tokenFor(service, email) });

  await eventually(
    () => service.platform(`/clusters/${alpha}?businessOrgId=${org}`, { as: 'ada' }),
    ({ body }) => body.status.lifecycleState === 'active',
  );

  await t.test('the table above has every operation of the document but two', () => {
    const paths = loadDocument('platform').paths ?? {};
    const documented = Object.entries(paths).flatMap(([path, item]) =>
      ['get', 'put', 'post', 'delete'].flatMap((method) =>
        item && method in item ? [`${method.toUpperCase()} ${path}`] : [],
      ),
    );
    const listed = routes.map(
      ({ method = 'GET', path }) =>
        `${method} ${path.replace('{id}', '{clusterId}').replace('{org}', '{orgId}').replace('versions/1', 'versions/{generation}')}`,
    );
    // Of several clusters: test/platform/usage.test.ts, test/platform/gpu-hours.test.ts.
    const others = ['GET /.well-known/oauth-protected-resource', 'GET /usage', 'GET /gpu-hours'];
    assert.deepEqual([...listed, ...others].sort(), documented.sort());
  });

  // A configuration to ask for by its number.
  const configured = await service.platform(
    `/clusters/${alpha}/scheduler-configuration?businessOrgId=${org}`,
    {
      as: 'ada',
      method: 'PUT',
      body: { slurmExtraConfig: 'MaxArraySize=2000' },
    },
  );
  assert.equal(configured.status, 200);

  for (const route of routes) {
    const name = `${route.method ?? 'GET'} ${route.path}`;

    await t.test(`${name}: without a token 401, with a service account's 403`, async () => {
      const stranger = await ask(route, addressOf(route), {});
      refused(stranger, 401, 'unauthorized');
      assert.equal(stranger.headers.get('www-authenticate'), 'Bearer');
      const token = await service.issuer.token('ada', { client_id: 'subject-ada' });
      refused(await ask(route, addressOf(route), { token }), 403, 'forbidden');
    });

    if (route.query && route.missing) {
      const { query, missing } = route;
      await t.test(`${name}: ${query} missing or empty is ${missing.join(' ')}`, async () => {
        const bare = addressOf(route, { of: null });
        for (const address of [bare, `${bare}?${query}=`]) {
          refused(await ask(route, address, { as: 'ada' }), ...missing, new RegExp(query));
        }
      });

      await t.test(`${name}: the organization in the other routes' parameter is a missing one`, async () => {
        const other = query === 'businessOrgId' ? 'organizationId' : 'businessOrgId';
        const address = `${addressOf(route, { of: null })}?${other}=${org}`;
        refused(await ask(route, address, { as: 'ada' }), ...missing, /OrgId|organizationId/);
        const both = `${addressOf(route)}&${other}=${org}`;
        refused(await ask(route, both, { as: 'ada' }), 422, 'invalid_request', new RegExp(other));
      });
    }

    await t.test(`${name}: opens with ${route.permission} and with no other permission`, async () => {
      for (const permission of permissions) {
        const { status } = await askAs(route, `${permission}@physics.example`);
        // clusters.configure includes clusters.ssh.admin, and that includes clusters.ssh.
        const included = permission === 'clusters.configure' && route.permission === 'clusters.ssh';
        assert.equal(status, permission === route.permission || included ? 200 : 403, permission);
      }
      assert.equal((await ask(route, addressOf(route), { as: 'ada' })).status, 200);
      refused(await ask(route, addressOf(route), { as: 'eve' }), 403, 'forbidden');
    });

    const opens = (does: boolean) => (does ? 'opens' : 'does not open');
    await t.test(
      `${name}: a grant on the cluster or a namespace of it ${opens(route.grant)} it`,
      async () => {
        for (const holder of ['whole', 'namespace']) {
          const { status } = await askAs(route, `${holder}@elsewhere.example`);
          assert.equal(status, route.grant ? 200 : 403, holder);
        }
        if (route.path.includes('{id}')) {
          refused(await askAs(route, 'beta@elsewhere.example'), 403, 'forbidden');
        }
      },
    );

    await t.test(`${name}: staff.read ${opens(route.staff)} it, and staff.audit does not`, async () => {
      for (const holder of ['reader', 'operator']) {
        const { status } = await askAs(route, `${holder}@staff.example`);
        assert.equal(status, route.staff ? 200 : 403, holder);
      }
      refused(await askAs(route, 'auditor@staff.example'), 403, 'forbidden');
    });

    await t.test(
      `${name}: rights in one organization say nothing in another, nor where there is none`,
      async () => {
        for (const other of [chemistry, nobody]) {
          refused(await ask(route, addressOf(route, { of: other }), { as: 'ada' }), 403, 'forbidden');
        }
      },
    );

    if (route.staff) {
      await t.test(`${name}: staff ask for an organization that does not exist: 404 not_found`, async () => {
        refused(await askAs(route, 'reader@staff.example', { of: nobody }), 404, 'not_found');
        refused(await askAs(route, 'auditor@staff.example', { of: nobody }), 403, 'forbidden');
      });
    }

    if (!route.path.includes('{id}')) continue;

    await t.test(
      `${name}: a cluster ID that is no UUID is 400 invalid_cluster, for every caller`,
      async () => {
        for (const id of ['nonsense', `${alpha}0`, 'cluster_01JD0000000000000000000000']) {
          for (const as of ['ada', 'eve']) {
            refused(await ask(route, addressOf(route, { id }), { as }), 400, 'invalid_cluster');
          }
        }
      },
    );

    await t.test(`${name}: 404 not_found for a cluster that is not in the organization named`, async () => {
      refused(await ask(route, addressOf(route, { id: nowhere }), { as: 'ada' }), 404, 'not_found');
      refused(await ask(route, addressOf(route, { of: chemistry }), { token: carl }), 404, 'not_found');
      refused(await ask(route, addressOf(route, { id: nowhere }), { as: 'eve' }), 403, 'forbidden');
    });
  }
});
