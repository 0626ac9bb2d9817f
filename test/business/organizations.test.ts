import assert from 'node:assert/strict';
import { test } from 'node:test';
import { alpha, beta, eventually, physics, startTestApp } from '../support/app.ts';
import { newPublicKey } from '../support/ssh-keys.ts';

const missing = 'org_01JD0000000000000000000000';

test('organizations and their clusters on Business', async (t) => {
  const gamma = '9d6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50';
  const simulated = { computeNodes: 1, gpusPerNode: 1 };
  const other = {
    name: 'gamma',
    id: gamma,
    organization: 'chemistry',
    scheduler: 'kubernetes',
    simulated,
  } as const;
  await using service = await startTestApp({
    lab: { ...physics, clusters: [...(physics.clusters ?? []), other] },
  });
  const org = (await service.business('/me', { as: 'ada' })).body.default_org_id;
  const access = (clusterId: string, as: string) =>
    service.business(`/organizations/${org}/clusters/${clusterId}/access`, { as });
  const converged = () =>
    eventually(
      () => access(alpha, 'bob'),
      ({ body }) => body.state === 'converged',
    );

  await t.test('GET /organizations/{orgID} shows a member the organization', async () => {
    const { status, body } = await service.business(`/organizations/${org}`, { as: 'eve' });
    assert.equal(status, 200);
    assert.deepEqual(Object.keys(body).sort(), [
      'created_at',
      'created_by_user_id',
      'display_name',
      'id',
      'lifecycle_state',
      'slug',
      'updated_at',
    ]);
    assert.equal(body.id, org);
    assert.equal(body.slug, 'physics');
    assert.equal(body.display_name, 'Physics');
  });

  await t.test('an organization of others is answered as one that is not there', async () => {
    const token = await service.issuer.token('carl', { email: 'carl@chemistry.example' });
    const messages: string[] = [];
    for (const path of ['', '/clusters'])
      for (const [id, call] of [
        [org, { token }],
        [missing, { as: 'ada' }],
        ['nonsense', { as: 'ada' }],
      ] as const) {
        const { status, body } = await service.business(`/organizations/${id}${path}`, call);
        assert.deepEqual([status, body.code], [404, 'not_found']);
        messages.push(body.message);
      }
    assert.equal(new Set(messages).size, 1);
  });

  await t.test('clusters are listed by created_at, then id, with every field of the contract', async () => {
    await converged();
    const { body } = await service.business(`/organizations/${org}/clusters`, { as: 'bob' });
    assert.deepEqual(
      body.clusters.map(({ id }: { id: string }) => id),
      [alpha, beta],
    );
    const [{ created_at, updated_at, infrastructure_ready_at, version, ...cluster }] = body.clusters;
    assert.ok(version >= 2, 'it rose when the cluster became active');
    assert.deepEqual(cluster, {
      id: alpha,
      organization_id: org,
      state: 'active',
      reason_code: null,
      expected_node_count: 2,
      assigned_node_count: 2,
      selected_scheduler: 'sunk',
      teardown_completed_at: null,
      cleanup_state: null,
      end_command_id: null,
    });
    assert.ok(created_at <= infrastructure_ready_at && infrastructure_ready_at <= updated_at);
  });

  await t.test('a caller without clusters.read gets 200 with an empty list', async () => {
    const { status, body } = await service.business(`/organizations/${org}/clusters`, { as: 'eve' });
    assert.equal(status, 200);
    assert.deepEqual(body, { clusters: [] });
  });

  await t.test('the access list has every member who holds clusters.ssh, with or without a key', async () => {
    const { body } = await converged();
    assert.equal(body.cluster_id, alpha);
    assert.equal(body.organization_id, org);
    assert.deepEqual(
      [body.observation_state, body.observed_generation],
      ['converged', body.desired_generation],
    );
    const [ada, bob] = body.users;
    assert.equal(body.users.length, 2);
    const { user_id, ...rest } = bob;
    assert.match(user_id, /^user_/);
    assert.deepEqual(rest, {
      username: 'bob',
      access_mode: 'use',
      desired_login_state: 'waiting_for_key',
      ssh_key_set_generation: 0,
      allocation: { ...bob.allocation, home: '/home/bob', shell: '/bin/bash' },
    });
    assert.deepEqual([ada.username, ada.access_mode], ['ada', 'admin']);
    assert.equal(bob.allocation.uid, bob.allocation.gid);
    assert.deepEqual([ada.allocation.uid, bob.allocation.uid].sort(), [20000, 20001]);
  });

  await t.test('a key raises its generation and makes the user ready; number and home stay', async () => {
    const before = (await access(alpha, 'bob')).body;
    await service.write('/me/ssh-keys', { as: 'bob', body: { public_key: newPublicKey() } });
    const { body } = await eventually(
      () => access(alpha, 'bob'),
      ({ body }) => body.state === 'converged' && body.generation > before.generation,
    );
    const [, bob] = body.users;
    assert.equal(body.generation, before.generation + 1);
    assert.notEqual(body.source_hash, before.source_hash);
    assert.deepEqual([bob.desired_login_state, bob.ssh_key_set_generation], ['ready', 1]);
    assert.deepEqual(bob.allocation, before.users[1].allocation);
  });

  await t.test('a name on an accepted list is frozen', async () => {
    const { body } = await service.business('/me', { as: 'bob' });
    const name = body.memberships[0].organization_username;
    assert.equal(name.lifecycle_state, 'frozen');
    assert.ok(name.frozen_at >= name.created_at);
    const eve = (await service.business('/me', { as: 'eve' })).body.memberships[0].organization_username;
    assert.equal(eve.lifecycle_state, 'reserved');
  });

  await t.test('a cluster ID may be written in capitals', async () => {
    assert.equal((await access(alpha.toUpperCase(), 'ada')).body.cluster_id, alpha);
  });

  await t.test('the access list is 404 for a cluster of others, none, one without a list', async () => {
    assert.equal((await access(missing, 'eve')).status, 403, 'without clusters.read it is none of theirs');
    for (const clusterId of [gamma, '00000000-0000-4000-8000-000000000000', 'nonsense', beta]) {
      const { status, body } = await access(clusterId, 'ada');
      assert.deepEqual([status, body.code], [404, 'not_found'], clusterId);
    }
  });
});
