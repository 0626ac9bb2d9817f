import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deliveryOf } from '../../../src/api/business/clusters.ts';
import { accessListState } from '../../../src/domain/access/manifest.ts';
import type { Cluster } from '../../../src/domain/clusters/cluster.ts';
import { alpha, beta, eventually, type Reply, startTestApp } from '../../support/app.ts';

test('grants, as operators give and end them', async (t) => {
  await using service = await startTestApp();
  const token = await service.issuer.token('guest', { email: 'guest@elsewhere.example' });
  const create = (body: object, key?: string) =>
    service.write('/operator/grants', { as: 'root', body, ...(key && { key }) });
  const own = async () => (await service.business('/me/resource-grants', { token })).body.grants;
  const all = async () => (await service.business('/operator/grants', { as: 'root' })).body.grants;
  const wish = { email: 'Guest@elsewhere.example', cluster_id: beta, relation: 'kubernetes.developer' };

  await t.test('the holder gets an account, sees the grant, and passes the gate', async () => {
    assert.equal((await service.business('/me', { token })).status, 401);
    const made = await create({ ...wish, scope: 'team-a', role_id: 'trainers' });
    assert.equal(made.status, 201);
    assert.equal(made.body.cluster_name, 'beta');
    const { id, granted_at, granted_by, user_id, ...grant } = made.body.grant;
    assert.ok(id.startsWith('grant_') && granted_at && granted_by.startsWith('user_') && user_id);
    assert.deepEqual(grant, {
      resource_kind: 'kubernetes_cluster',
      resource_id: beta,
      username: 'guest@elsewhere.example',
      relation: 'kubernetes.developer',
      scope: 'team-a',
      role_id: 'trainers',
    });
    assert.deepEqual(await own(), [made.body.grant]);
    assert.deepEqual(
      (await all()).map((one: Reply['body']) => one.grant.id),
      [id],
    );
    const again = await create({ ...wish, scope: 'team-a', role_id: 'trainers' });
    assert.equal(again.status, 409, 'held already');
  });

  await t.test('a role that gives more than the relation is refused unless it is meant', async () => {
    const wider = { ...wish, relation: 'kubernetes.viewer', scope: 'wide', role_id: 'cluster-admin' };
    const refused = await create(wider);
    assert.deepEqual([refused.status, refused.body.code], [400, 'invalid_request']);
    assert.match(refused.body.message ?? refused.body.detail, /gives more than .*set allow_wider_role/);
    const made = await create({ ...wider, allow_wider_role: true });
    assert.deepEqual([made.status, made.body.grant.role_id], [201, 'cluster-admin']);
    await service.write(`/operator/grants/${made.body.grant.id}/revoke`, { as: 'root' });
  });

  await t.test('it is not live from the second on in which it expires', async () => {
    const expires_at = new Date(Date.now() + 60_000).toISOString();
    const made = await create({ ...wish, expires_at });
    assert.equal(made.body.grant.expires_at, expires_at);
    const gate = `/resource-access?kind=kubernetes_cluster&id=${beta}&gate=kubernetes`;
    assert.equal((await service.business(`${gate}&scope=elsewhere`, { token })).status, 200);
    assert.equal((await service.platform(`/clusters/${beta}?businessOrgId=org_x`, { token })).status, 404);
    service.advance(60_000);
    const again = await service.issuer.token('guest', { email: 'guest@elsewhere.example' });
    assert.equal((await service.business(`${gate}&scope=elsewhere`, { token: again })).status, 403);
    assert.equal((await own()).length, 1);
    assert.equal((await all()).length, 1);
  });

  await t.test('a replay is 200 with the first result, though the grant has expired', async () => {
    // The clock was moved on.
    const soon = new Date(Date.now() + 120_000).toISOString();
    const body = { ...wish, scope: 'team-r', expires_at: soon };
    const first = await create(body, 'replayed');
    assert.equal(first.status, 201);
    service.advance(120_000);
    const again = await create(body, 'replayed');
    assert.deepEqual([again.status, again.body], [200, first.body]);
    assert.equal((await create(body)).status, 400, 'a new request');
    service.advance(-120_000);
    await service.write(`/operator/grants/${first.body.grant.id}/revoke`, { as: 'root' });
  });

  await t.test('nor from the second on in which it is revoked; revoking again changes nothing', async () => {
    const [{ id }] = await own();
    const revoke = () => service.write(`/operator/grants/${id}/revoke`, { as: 'root' });
    const { status, body } = await revoke();
    assert.deepEqual([status, body.grant.id], [200, id]);
    assert.deepEqual(await own(), []);
    assert.equal((await service.platform(`/clusters/${beta}?businessOrgId=x`, { token })).status, 403);
    assert.equal((await revoke()).status, 200);
  });

  await t.test('what cannot be granted is refused in words', async () => {
    for (const [body, status] of [
      [{ expires_at: '2020-01-01T00:00:00Z' }, 400],
      [{ expires_at: 'tomorrow' }, 422],
      [{ relation: 'slurm.admin' }, 422],
      [{ scope: 'Not A Namespace' }, 422],
      [{ cluster_id: '00000000-0000-4000-8000-000000000000' }, 404],
      [{ email: 'nobody' }, 422],
    ] as const) {
      assert.equal((await create({ ...wish, ...body })).status, status, JSON.stringify(body));
    }
  });
});

test('clusters, as operators take them into service and out of it', async (t) => {
  await using service = await startTestApp();
  const find = async (name: string): Promise<Reply['body']> =>
    (await service.business('/operator/clusters', { as: 'root' })).body.clusters.find(
      (one: Reply['body']) => one.name === name,
    );
  const gamma = {
    name: 'gamma',
    organization: 'physics',
    scheduler: 'sunk',
    site: { id: 'room-2', name: 'Machine room 2' },
    simulated: { computeNodes: 1, gpusPerNode: 4, applyMs: 20 },
  };
  const org = (await service.business('/me', { as: 'ada' })).body.default_org_id;

  await t.test('a new one is provisioned, becomes active, and gets its access list', async () => {
    const made = await service.write('/operator/clusters', { as: 'root', body: gamma });
    assert.equal(made.status, 201);
    assert.equal(made.body.cluster.state, 'provisioning');
    assert.deepEqual(
      [made.body.organization_slug, made.body.site, made.body.drivers],
      ['physics', gamma.site, ['simulated']],
    );
    const active = await eventually(
      () => find('gamma'),
      (one) => one?.cluster.state === 'active' && one.access_list?.state === 'converged',
    );
    const { generation, accepted_generation: accepted, applied_generation: applied } = active.access_list;
    assert.ok(accepted === generation && applied === generation);
    // How the passes go depends on how far this one is.
    const sidesOf = (one: Reply['body']) =>
      one.sides.map(({ next_try_at: _next, failures: _failures, ...side }: Reply['body']) => side);
    const well = { failure: null, failing_since: null };
    assert.deepEqual(sidesOf(made.body), [
      { side: 'slurm', state: 'unreported', observed_at: null, ...well },
    ]);
    const { observed_at: at } = active;
    assert.deepEqual(sidesOf(active), [{ side: 'slurm', state: 'reported', observed_at: at, ...well }]);
    const { version, lifecycle_version: _, ...cluster } = active.cluster;
    assert.ok(version > made.body.cluster.version && cluster.infrastructure_ready_at !== null);
    const shown = await service.business(`/organizations/${org}/clusters/${cluster.id}`, { as: 'ada' });
    assert.deepEqual(shown.body, active.cluster);
  });

  await t.test('a name or an ID that is taken, no organization, no driver: refused', async () => {
    for (const [body, status] of [
      [gamma, 409],
      [{ ...gamma, name: 'delta', id: alpha }, 409],
      [{ ...gamma, name: 'delta', organization: 'nobody' }, 404],
      [{ ...gamma, name: 'delta', simulated: undefined }, 400],
      [{ ...gamma, name: 'del ta' }, 422],
      [{ ...gamma, name: 'delta', id: 'x' }, 400],
    ] as const) {
      const reply = await service.write('/operator/clusters', { as: 'root', body });
      assert.equal(reply.status, status, JSON.stringify(body));
    }
  });

  await t.test('a release is releasing at once, and released when what we put there is gone', async () => {
    const { cluster } = await find('gamma');
    const release = () => service.write(`/operator/clusters/${cluster.id}/release`, { as: 'root' });
    const { status, body } = await release();
    assert.deepEqual([status, body.cluster.state, body.cluster.cleanup_state], [200, 'releasing', 'pending']);
    assert.match(body.cluster.end_command_id, /^command_/);
    const released = await eventually(
      () => find('gamma'),
      (one) => one.cluster.state === 'released',
    );
    assert.ok(released.cluster.teardown_completed_at);
    assert.equal((await release()).body.cluster.state, 'released');
    const ssh = await service.platform(`/clusters/${cluster.id}/ssh-access?organizationId=${org}`, {
      as: 'ada',
    });
    assert.deepEqual([ssh.body.ready, ssh.body.reason], [false, 'cluster_inactive']);

    // Its name is free, and it has another one then: version and updated_at say so.
    assert.equal((await service.write('/operator/clusters', { as: 'root', body: gamma })).status, 201);
    const { body: after } = await service.business(`/organizations/${org}/clusters/${cluster.id}`, {
      as: 'ada',
    });
    assert.equal(after.version, released.cluster.version + 1);
    assert.ok(after.updated_at > released.cluster.updated_at);
    const running = await service.platform(`/clusters/${cluster.id}?businessOrgId=${org}`, { as: 'ada' });
    assert.notEqual(running.body.spec.name, 'gamma');
  });
});

test('a release ends the grants on the cluster, and the state of its access list no longer changes', async () => {
  await using service = await startTestApp();
  const org = (await service.business('/me', { as: 'ada' })).body.default_org_id;
  const list = () => service.business(`/organizations/${org}/clusters/${alpha}/access`, { as: 'ada' });
  await eventually(list, ({ body }) => body.state === 'converged');
  for (const cluster_id of [alpha, beta]) {
    const body = { email: 'guest@elsewhere.example', cluster_id, relation: 'kubernetes.developer' };
    assert.equal((await service.write('/operator/grants', { as: 'root', body })).status, 201);
  }
  const token = await service.issuer.token('guest', { email: 'guest@elsewhere.example' });
  const gate = `/resource-access?kind=kubernetes_cluster&id=${alpha}`;
  assert.equal((await service.business(`${gate}&gate=read`, { token })).status, 200);

  assert.equal((await service.write(`/operator/clusters/${alpha}/release`, { as: 'root' })).status, 200);
  for (const name of ['read', 'kubernetes']) {
    assert.equal((await service.business(`${gate}&gate=${name}`, { token })).status, 403, name);
  }
  const held = (grants: Reply['body'][]) => grants.map(({ resource_id }) => resource_id);
  const own = await service.business('/me/resource-grants', { token });
  assert.deepEqual(held(own.body.grants), [beta]);
  const all = await service.business('/operator/grants', { as: 'root' });
  assert.deepEqual(held(all.body.grants.map(({ grant }: Reply['body']) => grant)), [beta]);
  const read = (id: string) => service.platform(`/clusters/${id}?businessOrgId=${org}`, { token });
  assert.deepEqual([(await read(alpha)).status, (await read(beta)).status], [403, 200]);
  const visible = await service.platform(`/clusters?businessOrgId=${org}`, { token });
  assert.deepEqual([visible.body.items.length, visible.body.items[0].id], [1, beta]);

  await eventually(
    () => service.business(`/organizations/${org}/clusters/${alpha}`, { as: 'ada' }),
    ({ body }) => body.state === 'released',
  );
  const before = (await list()).body;
  // A client that waits for `converged` ends its wait.
  assert.deepEqual([before.state, before.observation_state, before.users], ['converged', 'converged', []]);
  service.advance(600_000);
  const later = await service.issuer.token('ada');
  const path = `/organizations/${org}/clusters/${alpha}/access`;
  assert.deepEqual((await service.business(path, { token: later })).body, before);
});

test('organizations, as operators make them', async () => {
  await using service = await startTestApp();
  const create = (body: object) => service.write('/operator/organizations', { as: 'root', body });
  const wish = {
    slug: 'biology',
    display_name: 'Biology',
    owner_email: 'bea@biology.example',
    owner_username: 'bea',
    auto_join_domains: ['Biology.example'],
  };
  const made = await create(wish);
  assert.equal(made.status, 201);
  assert.deepEqual(made.body.auto_join_domains, ['biology.example']);
  assert.deepEqual([made.body.member_count, made.body.cluster_count], [1, 0]);
  const org = made.body.organization.id;
  const bea = await service.issuer.token('bea', { email: 'bea@biology.example' });
  assert.equal((await service.business(`/organizations/${org}`, { token: bea })).body.slug, 'biology');
  const bo = await service.issuer.token('bo', { email: 'bo@biology.example' });
  assert.equal((await service.business('/me', { token: bo })).body.default_org_id, org, 'joined by domain');

  assert.equal((await create(wish)).status, 409);
  assert.equal((await create({ ...wish, slug: 'biology-2' })).status, 409, 'the domain joins another');
  assert.equal((await create({ ...wish, slug: 'Biology' })).status, 422);

  const update = (body: object) =>
    service.write(`/operator/organizations/${org}`, { as: 'root', method: 'PUT', body });
  const renamed = await update({ display_name: 'Life sciences' });
  assert.equal(renamed.body.organization.display_name, 'Life sciences');
  assert.deepEqual(renamed.body.auto_join_domains, ['biology.example'], 'what is left out stays');
  assert.deepEqual((await update({ auto_join_domains: [] })).body.auto_join_domains, []);
  assert.equal((await update({ auto_join_domains: ['chemistry.example'] })).status, 409);
  const ben = await service.issuer.token('ben', { email: 'ben@biology.example' });
  assert.equal((await service.business('/me', { token: ben })).status, 401);
  const { body } = await service.business(`/organizations/${org}/members`, { as: 'root' });
  assert.deepEqual(
    body.members.map(({ email }: Reply['body']) => email),
    ['bea@biology.example', 'bo@biology.example'],
  );
});

test('an organization is retired by an owner, or an operator, once its clusters are released', async () => {
  await using service = await startTestApp();
  const org = (await service.business('/me', { as: 'ada' })).body.default_org_id;
  const retire = (as: string) => service.write(`/organizations/${org}/retire`, { as });
  for (const as of ['ada', 'root']) {
    const early = await retire(as);
    assert.deepEqual([early.status, early.body.code], [409, 'invalid_state']);
  }
  for (const id of [alpha, beta]) await service.write(`/operator/clusters/${id}/release`, { as: 'root' });
  const retired = await eventually(
    () => retire('ada'),
    ({ status }) => status === 200,
  );
  assert.equal(retired.body.lifecycle_state, 'retired');
  assert.equal(
    (await service.business(`/organizations/${org}`, { as: 'bob' })).body.lifecycle_state,
    'retired',
  );
  const add = await service.write(`/organizations/${org}/members`, {
    as: 'ada',
    body: { email: 'n@physics.example' },
  });
  assert.equal(add.status, 409);
  const body = { name: 'late', organization: 'physics', simulated: { computeNodes: 1, gpusPerNode: 1 } };
  assert.equal((await service.write('/operator/clusters', { as: 'root', body })).status, 409);
  assert.equal((await retire('root')).status, 200, 'again: nothing changes');
});

test('the access list of a cluster that was abandoned has failed', () => {
  const cluster = { state: 'released', cleanupState: 'abandoned; left behind: accounts' } as Cluster;
  const list = { generation: 2 } as Parameters<typeof deliveryOf>[1];
  assert.equal(accessListState(deliveryOf(cluster, list, undefined, 0)), 'failed');
});
