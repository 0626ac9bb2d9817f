/** What holds for every Platform route alike: parameters, people, permissions. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadDocument } from '../../src/api/http/document.ts';
import { alpha, eventually, physicsWith, type Reply, startTestApp } from '../support/app.ts';
import { refused } from '../support/refused.ts';
import { tokenFor } from './support.ts';

const nowhere = '00000000-0000-4000-8000-000000000000';
const nobody = 'org_01JD0000000000000000000000';

interface Route {
  path: string;
  method?: 'PUT' | 'POST';
  /** The organization parameter, and what a missing one is; undefined where the path names it. */
  query?: 'businessOrgId' | 'organizationId';
  missing?: [number, string];
  /** Whether a live grant on the cluster opens it, and whether staff.read does. */
  grant: boolean;
  staff: boolean;
  /** The one permission that opens it. */
  permission: string;
}

const invalidOrganization: [number, string] = [400, 'invalid_organization'];
const invalidRequest: [number, string] = [422, 'invalid_request'];
const ofReaders = {
  ...({ query: 'businessOrgId', missing: invalidRequest, grant: true, staff: true } as const),
  permission: 'clusters.read',
};
const ofConfigurers = { ...ofReaders, grant: false, staff: false, permission: 'clusters.configure' };
const ofPeople = { ...ofConfigurers, query: 'organizationId' } as const;
const standard = {
  path: '/organizations/{org}/scheduler-configuration',
  ...{ grant: false, staff: false, permission: 'clusters.configure' },
};
const own = '/clusters/{id}/scheduler-configuration';
const routes: Route[] = [
  { ...ofReaders, path: '/clusters', missing: invalidOrganization },
  { ...ofReaders, path: '/clusters/{id}', missing: invalidOrganization },
  { ...ofReaders, path: '/clusters/{id}/options', missing: invalidOrganization },
  { ...ofReaders, path: '/clusters/{id}/machines' },
  { ...ofReaders, path: '/clusters/{id}/usage' },
  { ...ofPeople, path: '/clusters/{id}/ssh-access', permission: 'clusters.ssh' },
  { ...ofPeople, path: '/clusters/{id}/kubeconfig', grant: true, permission: 'clusters.kubernetes' },
  { ...ofConfigurers, path: own },
  { ...ofConfigurers, path: own, method: 'PUT' },
  { ...ofConfigurers, path: `${own}/check`, method: 'POST' },
  { ...ofConfigurers, path: `${own}/status` },
  { ...ofConfigurers, path: `${own}/versions` },
  { ...ofConfigurers, path: `${own}/versions/1` },
  standard,
  { ...standard, method: 'PUT' },
  { path: '/organizations/{org}/storage', grant: false, staff: true, permission: 'clusters.read' },
];
const viewer = { cluster: 'alpha', relation: 'kubernetes.viewer' as const };
const permissions = [...new Set(routes.map(({ permission }) => permission))];

test('every Platform route', async (t) => {
  await using service = await startTestApp({
    identity: { kubernetes: { clientId: 'andromeda-kubernetes' } },
    lab: {
      ...physicsWith(
        ...permissions.map((permission) => ({
          ...{ email: `${permission}@physics.example`, role: 'member' as const },
          permissions: [permission as 'clusters.read'],
        })),
      ),
      users: (['read', 'audit', 'operate'] as const).map((what) => ({
        ...{ email: `staff.${what}@staff.example`, staff: [`staff.${what}` as const] },
      })),
      grants: [
        { user: 'whole@elsewhere.example', ...viewer },
        { user: 'namespace@elsewhere.example', ...viewer, namespace: 'team-a' },
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
    { as: 'ada', method: 'PUT', body: { slurmExtraConfig: 'MaxArraySize=2000' } },
  );
  assert.equal(configured.status, 200);

  for (const route of routes) {
    const { method = 'GET', path, query, missing, permission: own, grant, staff } = route;

    await t.test(`${method} ${path}: opens with ${own} and with no other permission`, async () => {
      for (const permission of permissions) {
        const { status } = await askAs(route, `${permission}@physics.example`);
        // clusters.configure includes clusters.ssh.admin, and that includes clusters.ssh.
        const included = permission === 'clusters.configure' && own === 'clusters.ssh';
        assert.equal(status, permission === own || included ? 200 : 403, permission);
      }
      assert.equal((await ask(route, addressOf(route), { as: 'ada' })).status, 200);
      refused(await ask(route, addressOf(route), { as: 'eve' }), 403, 'forbidden');
      const stranger = await ask(route, addressOf(route), {});
      refused(stranger, 401, 'unauthorized');
      assert.equal(stranger.headers.get('www-authenticate'), 'Bearer');
      const machine = await service.issuer.token('ada', { client_id: 'subject-ada' });
      refused(await ask(route, addressOf(route), { token: machine }), 403, 'forbidden');
      for (const [holder, opens] of [
        ['whole@elsewhere.example', grant],
        ['namespace@elsewhere.example', grant],
        ['staff.read@staff.example', staff],
        ['staff.operate@staff.example', staff],
        ['staff.audit@staff.example', false],
      ] as const) {
        assert.equal((await askAs(route, holder)).status, opens ? 200 : 403, holder);
      }
      // Rights in one organization are none in another, and staff are told of one that is not there.
      for (const other of [chemistry, nobody, 'nonsense']) {
        refused(await ask(route, addressOf(route, { of: other }), { as: 'ada' }), 403, 'forbidden');
      }
      if (!staff) return;
      refused(await askAs(route, 'staff.read@staff.example', { of: nobody }), 404, 'not_found');
      refused(await askAs(route, 'staff.audit@staff.example', { of: nobody }), 403, 'forbidden');
    });

    if (query && missing) {
      await t.test(`${method} ${path}: ${query} missing or empty is ${missing.join(' ')}`, async () => {
        const bare = addressOf(route, { of: null });
        // A parameter's absence that has a code of its own goes before faults of the others.
        const also = missing[0] === 400 ? [`${bare}?limit=201`, `${bare}?${query}=&limit=0`] : [];
        for (const address of [bare, `${bare}?${query}=`, ...also]) {
          refused(await ask(route, address, { as: 'ada' }), ...missing, new RegExp(query));
        }
        const twice = `${addressOf(route)}&${query}=${org}`;
        refused(await ask(route, twice, { as: 'ada' }), 422, 'invalid_request', new RegExp(query));
        // In the parameter of the other routes it is missing.
        const other = query === 'businessOrgId' ? 'organizationId' : 'businessOrgId';
        const misnamed = await ask(route, `${bare}?${other}=${org}`, { as: 'ada' });
        refused(misnamed, ...missing, /OrgId|organizationId/);
        const both = `${addressOf(route)}&${other}=${org}`;
        refused(await ask(route, both, { as: 'ada' }), 422, 'invalid_request', new RegExp(other));
      });
    }

    if (!path.includes('{id}')) continue;
    await t.test(`${method} ${path}: a cluster is one of the organization named, by its UUID`, async () => {
      refused(await askAs(route, 'beta@elsewhere.example'), 403, 'forbidden');
      for (const id of ['nonsense', '%2F', `${alpha}0`, 'cluster_01JD0000000000000000000000']) {
        for (const as of ['ada', 'eve']) {
          refused(await ask(route, addressOf(route, { id }), { as }), 400, 'invalid_cluster');
        }
      }
      refused(await ask(route, addressOf(route, { id: nowhere }), { as: 'ada' }), 404, 'not_found');
      refused(await ask(route, addressOf(route, { of: chemistry }), { token: carl }), 404, 'not_found');
      refused(await ask(route, addressOf(route, { id: nowhere }), { as: 'eve' }), 403, 'forbidden');
    });
  }
});
