import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Lab } from '../../src/domain/clusters/lab.ts';
import { alpha, physics, startTestApp } from '../support/app.ts';
import { refused } from '../support/refused.ts';

/** As `physics`, with 4 nodes of alpha reserved, and no login nodes. */
const lab: Lab = {
  ...physics,
  clusters: (physics.clusters ?? []).map((cluster) => ({
    ...cluster,
    scheduler: 'kubernetes',
    ...(cluster.id === alpha && { reservedNodes: 4 }),
  })),
};

test('reservations are set by the lab file, and read by members', async () => {
  await using service = await startTestApp({ lab });
  const org: string = (await service.business('/me', { as: 'ada' })).body.default_org_id;
  const path = `/organizations/${org}/reservations`;
  const cluster = async () =>
    (await service.business(`/organizations/${org}/clusters/${alpha}`, { as: 'ada' })).body;
  const list = async () => (await service.business(path, { as: 'ada' })).body.reservations;
  const { reservedNodes: _, ...one } = lab.clusters?.find(({ id }) => id === alpha) ?? { name: '' };
  const apply = (reservedNodes: unknown, changed: object = {}) =>
    service.write('/operator/lab', {
      as: 'root',
      body: { lab: { clusters: [{ ...one, reservedNodes, ...changed }] } },
    });

  // It is the cluster's reservation_id, and its nodes the expected ones.
  const [first] = await list();
  const { id, ...rest } = first;
  assert.match(id, /^reservation_[0-7][0-9A-HJKMNP-TV-Z]{25}$/);
  assert.deepEqual(rest, { organization_id: org, cluster_id: alpha, node_count: 4 });
  const { updated_at: _then, ...before } = await cluster();
  assert.deepEqual([before.reservation_id, before.expected_node_count], [id, 4]);
  const listed = (await service.business(`/organizations/${org}/clusters`, { as: 'bob' })).body.clusters;
  assert.equal(listed.filter((each: object) => 'reservation_id' in each).length, 1, 'beta has none');
  const token = await service.issuer.token('carl', { email: 'carl@chemistry.example' });
  const chemistry = (await service.business('/me', { token })).body.default_org_id;
  const theirs = await service.business(`/organizations/${chemistry}/reservations`, { token });
  assert.deepEqual(theirs.body, { reservations: [] });

  // A file with other nodes changes it: same ID, version up, nothing else.
  const { status, body } = await apply(6);
  assert.deepEqual([status, body.changes[0].details], [200, 'new settings: reservedNodes']);
  assert.deepEqual(await list(), [{ ...first, node_count: 6 }]);
  const { updated_at: _now, ...after } = await cluster();
  assert.deepEqual(after, { ...before, expected_node_count: 6, version: before.version + 1 });
  for (const changed of [6, undefined]) assert.deepEqual((await apply(changed)).body.changes, []);
  const exported = (await service.business('/operator/lab', { as: 'root' })).body.clusters;
  assert.equal(exported.find(({ name }: { name: string }) => name === 'alpha').reservedNodes, 6);

  // 0 ends it: the nodes that the cluster is to have are expected again.
  const simulated = { computeNodes: 3, gpusPerNode: 8 };
  await apply(6, { simulated });
  assert.equal((await cluster()).expected_node_count, 6, 'while they are reserved');
  assert.equal((await apply(0, { simulated })).status, 200);
  assert.deepEqual(await list(), []);
  const { reservation_id: none, expected_node_count: expected, version } = await cluster();
  assert.deepEqual([none, expected], [undefined, 3]);
  await apply(0, { simulated: { ...simulated, computeNodes: 4 } });
  assert.equal((await cluster()).expected_node_count, 4);
  assert.equal((await apply(2)).status, 200);
  assert.notEqual((await list())[0].id, id, 'a new one');
  for (const nodes of [-1, 1.5, '4', 100_001]) refused(await apply(nodes), 422, 'invalid_request');

  // A cluster that goes out of service has none any more.
  const release = await service.write(`/operator/clusters/${alpha}/release`, { as: 'root', body: {} });
  assert.equal(release.status, 200);
  assert.deepEqual(await list(), []);
  assert.ok((await cluster()).version > version);
});
