import assert from 'node:assert/strict';
import { test } from 'node:test';
import { alpha, beta, eventually, physics, startTestApp } from '../support/app.ts';
import { fieldsOf } from '../support/fields.ts';
import { refused } from '../support/refused.ts';
import { newPublicKey } from '../support/ssh-keys.ts';

const missing = 'org_01JD0000000000000000000000';

test('organizations and their clusters on Business', async () => {
  const gamma = '9d6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50';
  const other = {
    ...{ name: 'gamma', id: gamma, organization: 'chemistry', scheduler: 'kubernetes' as const },
    simulated: { computeNodes: 1, gpusPerNode: 1 },
  };
  await using service = await startTestApp({
    lab: { ...physics, clusters: [...(physics.clusters ?? []), other] },
  });
  const org = (await service.business('/me', { as: 'ada' })).body.default_org_id;
  const of = async (path: string, as: string) => {
    const { status, body } = await service.business(`/organizations/${org}${path}`, { as });
    assert.equal(status, 200);
    return body;
  };
  const access = (clusterId: string, as: string) =>
    service.business(`/organizations/${org}/clusters/${clusterId}/access`, { as });

  const shown = await of('', 'eve');
  const fields = [
    'created_at',
    'created_by_user_id',
    'display_name',
    'id',
    'lifecycle_state',
    'slug',
    'updated_at',
  ];
  assert.deepEqual(Object.keys(shown).sort(), fields);
  assert.deepEqual([shown.id, shown.slug, shown.display_name], [org, 'physics', 'Physics']);
  // An organization of others is answered as one that is not there.
  const token = await service.issuer.token('carl', { email: 'carl@chemistry.example' });
  const messages = new Set<string>();
  for (const path of ['', '/clusters'])
    for (const [id, call] of [
      [org, { token }],
      [missing, { as: 'ada' }],
      ['nonsense', { as: 'ada' }],
    ] as const) {
      const reply = await service.business(`/organizations/${id}${path}`, call);
      refused(reply, 404, 'not_found');
      messages.add(reply.body.message);
    }
  assert.equal(messages.size, 1);

  const { body: before } = await eventually(
    () => access(alpha, 'bob'),
    ({ body }) => body.state === 'converged',
  );
  const { clusters } = await of('/clusters', 'bob');
  assert.deepEqual(fieldsOf(clusters, 'id'), [alpha, beta], 'by created_at, then id');
  const [{ created_at, updated_at, infrastructure_ready_at, version, ...cluster }] = clusters;
  assert.ok(version >= 2, 'it rose when the cluster became active');
  assert.deepEqual(cluster, {
    ...{ id: alpha, organization_id: org, state: 'active', reason_code: null, selected_scheduler: 'sunk' },
    ...{ expected_node_count: 2, assigned_node_count: 2 },
    ...{ teardown_completed_at: null, cleanup_state: null, end_command_id: null },
  });
  assert.ok(created_at <= infrastructure_ready_at && infrastructure_ready_at <= updated_at);
  assert.deepEqual(await of('/clusters', 'eve'), { clusters: [] }, 'without clusters.read');

  // The access list has every member who holds clusters.ssh, with or without a key.
  assert.deepEqual([before.cluster_id, before.organization_id], [alpha, org]);
  assert.deepEqual(
    [before.observation_state, before.observed_generation],
    ['converged', before.desired_generation],
  );
  const [ada, { user_id, ...bob }, ...more] = before.users;
  assert.deepEqual([ada.username, ada.access_mode, more], ['ada', 'admin', []]);
  assert.match(user_id, /^user_/);
  assert.deepEqual(bob, {
    ...{ username: 'bob', access_mode: 'use', desired_login_state: 'waiting_for_key' },
    ssh_key_set_generation: 0,
    allocation: { ...bob.allocation, home: '/home/bob', shell: '/bin/bash' },
  });
  assert.equal(bob.allocation.uid, bob.allocation.gid);
  assert.deepEqual([ada.allocation.uid, bob.allocation.uid].sort(), [20000, 20001]);

  // A key raises its generation and makes the user ready; number and home stay.
  await service.write('/me/ssh-keys', { as: 'bob', body: { public_key: newPublicKey() } });
  const { body: after } = await eventually(
    () => access(alpha, 'bob'),
    ({ body }) => body.state === 'converged' && body.generation > before.generation,
  );
  assert.equal(after.generation, before.generation + 1);
  assert.notEqual(after.source_hash, before.source_hash);
  const keyed = after.users[1];
  assert.deepEqual([keyed.desired_login_state, keyed.ssh_key_set_generation], ['ready', 1]);
  assert.deepEqual(keyed.allocation, bob.allocation);
  // A name on an accepted list is frozen.
  const nameOf = async (as: string) =>
    (await service.business('/me', { as })).body.memberships[0].organization_username;
  const name = await nameOf('bob');
  assert.deepEqual([name.lifecycle_state, (await nameOf('eve')).lifecycle_state], ['frozen', 'reserved']);
  assert.ok(name.frozen_at >= name.created_at);

  assert.equal((await access(alpha.toUpperCase(), 'ada')).body.cluster_id, alpha);
  assert.equal((await access(missing, 'eve')).status, 403, 'without clusters.read it is none of theirs');
  for (const clusterId of [gamma, '00000000-0000-4000-8000-000000000000', 'nonsense', beta])
    refused(await access(clusterId, 'ada'), 404, 'not_found');
});
