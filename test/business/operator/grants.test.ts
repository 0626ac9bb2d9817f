import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deliveryOf } from '../../../src/api/business/clusters.ts';
import { accessListState } from '../../../src/domain/access/manifest.ts';
import type { Cluster } from '../../../src/domain/clusters/cluster.ts';
import { alpha, beta, eventually, type Reply, startTestApp } from '../../support/app.ts';
import { fieldsOf } from '../../support/fields.ts';
import { refused } from '../../support/refused.ts';

test('a grant is in force until the second in which it expires or is revoked', async () => {
  await using service = await startTestApp();
  const holder = () => service.issuer.token('guest', { email: 'guest@elsewhere.example' }, 7_200);
  const token = await holder();
  const create = (body: object, key?: string) =>
    service.write('/operator/grants', { as: 'root', body, ...(key && { key }) });
  const revoke = (id: string) => service.write(`/operator/grants/${id}/revoke`, { as: 'root' });
  const own = async () => (await service.business('/me/resource-grants', { token })).body.grants;
  const all = async () => (await service.business('/operator/grants', { as: 'root' })).body.grants;
  const wish = { email: 'Guest@elsewhere.example', cluster_id: beta, relation: 'kubernetes.developer' };

  // The holder gets an account, and sees the grant.
  assert.equal((await service.business('/me', { token })).status, 401);
  const scoped = { ...wish, scope: 'team-a', role_id: 'trainers' };
  const { status, body } = await create(scoped);
  assert.deepEqual([status, body.cluster_name], [201, 'beta']);
  const { id, granted_at, granted_by, user_id, ...grant } = body.grant;
  assert.ok(id.startsWith('grant_') && granted_at && granted_by.startsWith('user_') && user_id);
  assert.deepEqual(grant, {
    ...{ resource_kind: 'kubernetes_cluster', resource_id: beta, username: 'guest@elsewhere.example' },
    ...{ relation: 'kubernetes.developer', scope: 'team-a', role_id: 'trainers' },
  });
  assert.deepEqual(await own(), [body.grant]);
  assert.deepEqual(fieldsOf(fieldsOf(await all(), 'grant') as Reply['body'][], 'id'), [id]);
  assert.equal((await create(scoped)).status, 409, 'held already');

  const wider = { ...wish, relation: 'kubernetes.viewer', scope: 'wide', role_id: 'cluster-admin' };
  refused(await create(wider), 400, 'invalid_request', /gives more than .*set allow_wider_role/);
  const meant = await create({ ...wider, allow_wider_role: true });
  assert.deepEqual([meant.status, meant.body.grant.role_id], [201, 'cluster-admin']);
  await revoke(meant.body.grant.id);

  const expires_at = new Date(Date.now() + 3_600_000).toISOString();
  const brief = await create({ ...wish, expires_at }, 'replayed');
  assert.equal(brief.body.grant.expires_at, expires_at);
  const gate = `/resource-access?kind=kubernetes_cluster&id=${beta}&gate=kubernetes&scope=elsewhere`;
  const passes = async () => (await service.business(gate, { token: await holder() })).status;
  assert.equal(await passes(), 200);
  assert.equal((await service.platform(`/clusters/${beta}?businessOrgId=org_x`, { token })).status, 404);
  service.advance(3_600_000);
  assert.deepEqual([await passes(), (await own()).length, (await all()).length], [403, 1, 1]);
  const again = await create({ ...wish, expires_at }, 'replayed');
  assert.deepEqual([again.status, again.body], [200, brief.body], 'a replay, though the grant has expired');
  assert.equal((await create({ ...wish, expires_at })).status, 400, 'a new request');

  const { status: revoked, body: last } = await revoke(id);
  assert.deepEqual([revoked, last.grant.id, await own()], [200, id, []]);
  assert.equal((await service.platform(`/clusters/${beta}?businessOrgId=x`, { token })).status, 403);
  assert.equal((await revoke(id)).status, 200, 'again: nothing changes');

  for (const [wrong, expected] of [
    [{ expires_at: '2020-01-01T00:00:00Z' }, 400],
    [{ expires_at: 'tomorrow' }, 422],
    [{ relation: 'slurm.admin' }, 422],
    [{ scope: 'Not A Namespace' }, 422],
    [{ cluster_id: '00000000-0000-4000-8000-000000000000' }, 404],
    [{ email: 'nobody' }, 422],
  ] as const) {
    assert.equal((await create({ ...wish, ...wrong })).status, expected, JSON.stringify(wrong));
  }
});

test('operators take clusters into service and out of it', async () => {
  await using service = await startTestApp();
  const find = async (name: string): Promise<Reply['body']> =>
    (await service.business('/operator/clusters', { as: 'root' })).body.clusters.find(
      (one: Reply['body']) => one.name === name,
    );
  const gamma = {
    ...{ name: 'gamma', organization: 'physics', scheduler: 'sunk' },
    site: { id: 'room-2', name: 'Machine room 2' },
    simulated: { computeNodes: 1, gpusPerNode: 4, applyMs: 20 },
  };
  const create = (body: object = gamma) => service.write('/operator/clusters', { as: 'root', body });
  const org = (await service.business('/me', { as: 'ada' })).body.default_org_id;
  const shown = async (id: string) =>
    (await service.business(`/organizations/${org}/clusters/${id}`, { as: 'ada' })).body;

  // A new one is provisioned, becomes active, and gets its access list.
  const { status, body: made } = await create();
  assert.deepEqual([status, made.cluster.state], [201, 'provisioning']);
  const { organization_slug, site, drivers } = made;
  assert.deepEqual([organization_slug, site, drivers], ['physics', gamma.site, ['simulated']]);
  const active = await eventually(
    () => find('gamma'),
    (one) => one?.cluster.state === 'active' && one.access_list?.state === 'converged',
  );
  const { generation, accepted_generation: accepted, applied_generation: applied } = active.access_list;
  assert.deepEqual([accepted, applied], [generation, generation]);
  // How the passes go depends on how far this one is.
  const sidesOf = (one: Reply['body']) =>
    one.sides.map(({ next_try_at: _next, failures: _failures, ...side }: Reply['body']) => side);
  const well = { side: 'slurm', failure: null, failing_since: null };
  assert.deepEqual(sidesOf(made), [{ ...well, state: 'unreported', observed_at: null }]);
  assert.deepEqual(sidesOf(active), [{ ...well, state: 'reported', observed_at: active.observed_at }]);
  const { id, version, infrastructure_ready_at } = active.cluster;
  assert.ok(version > made.cluster.version && infrastructure_ready_at !== null);
  assert.deepEqual(await shown(id), active.cluster);

  for (const [change, expected] of [
    [{ name: 'gamma' }, 409],
    [{ id: alpha }, 409],
    [{ organization: 'nobody' }, 404],
    [{ simulated: undefined }, 400],
    [{ name: 'del ta' }, 422],
    [{ id: 'x' }, 400],
  ] as const) {
    const { status: was } = await create({ ...gamma, name: 'delta', ...change });
    assert.equal(was, expected, JSON.stringify(change));
  }

  // A release is releasing at once, and released when what we put there is gone.
  const release = async () => service.write(`/operator/clusters/${id}/release`, { as: 'root' });
  const { cluster } = (await release()).body;
  assert.deepEqual([cluster.state, cluster.cleanup_state], ['releasing', 'pending']);
  assert.match(cluster.end_command_id, /^command_/);
  const { cluster: released } = await eventually(
    () => find('gamma'),
    (one) => one.cluster.state === 'released',
  );
  assert.ok(released.teardown_completed_at);
  assert.equal((await release()).body.cluster.state, 'released');
  const path = `/clusters/${id}/ssh-access?organizationId=${org}`;
  const { ready, reason } = (await service.platform(path, { as: 'ada' })).body;
  assert.deepEqual([ready, reason], [false, 'cluster_inactive']);
  // Its name is free, and it has another one then: version and updated_at say so.
  assert.equal((await create()).status, 201);
  const after = await shown(id);
  assert.equal(after.version, released.version + 1);
  assert.ok(after.updated_at > released.updated_at);
  const running = await service.platform(`/clusters/${id}?businessOrgId=${org}`, { as: 'ada' });
  assert.notEqual(running.body.spec.name, 'gamma');
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

  const update = (body: object) => service.put('root', `/operator/organizations/${org}`, body);
  const renamed = await update({ display_name: 'Life sciences' });
  assert.equal(renamed.body.organization.display_name, 'Life sciences');
  assert.deepEqual(renamed.body.auto_join_domains, ['biology.example'], 'what is left out stays');
  assert.deepEqual((await update({ auto_join_domains: [] })).body.auto_join_domains, []);
  assert.equal((await update({ auto_join_domains: ['chemistry.example'] })).status, 409);
  const ben = await service.issuer.token('ben', { email: 'ben@biology.example' });
  assert.equal((await service.business('/me', { token: ben })).status, 401);
  const { body } = await service.business(`/organizations/${org}/members`, { as: 'root' });
  assert.deepEqual(fieldsOf(body.members, 'email'), ['bea@biology.example', 'bo@biology.example']);
});

test('an organization is retired by an owner, or an operator, once its clusters are released', async () => {
  await using service = await startTestApp();
  const org = (await service.business('/me', { as: 'ada' })).body.default_org_id;
  const retire = (as: string) => service.write(`/organizations/${org}/retire`, { as });
  for (const as of ['ada', 'root']) {
    refused(await retire(as), 409, 'invalid_state');
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
