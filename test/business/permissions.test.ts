import assert from 'node:assert/strict';
import { test } from 'node:test';
import { effectivePermissions, permissionCatalog } from '../../src/domain/access/permission.ts';
import { alpha, becomes, startTestApp } from '../support/app.ts';
import { refused } from '../support/refused.ts';
import { organizationOf, physicsOf } from './organization.ts';

const lab = physicsOf(
  { email: 'ada@physics.example', role: 'owner', username: 'ada' },
  { email: 'amy@physics.example', role: 'admin', username: 'amy' },
  {
    email: 'max@physics.example',
    role: 'member',
    username: 'max',
    permissions: ['members.manage', 'clusters.ssh'],
  },
  { email: 'bob@physics.example', role: 'member', username: 'bob' },
);

test('permissions', async () => {
  await using service = await startTestApp({ lab });
  const { org, ids, pathOf, permit } = await organizationOf(service);

  const { body: catalog } = await service.business('/permission-profiles', { as: 'bob' });
  const implied = Object.fromEntries(
    catalog.permissions.map((one: { key: string; implies: string[] }) => [one.key, one.implies]),
  );
  // As test/domain/permission.test.ts has them.
  for (const { key } of permissionCatalog) {
    const included = [...effectivePermissions('member', [key])].filter((one) => one !== key);
    assert.deepEqual(implied[key], included.sort(), key);
    for (const role of ['owner', 'admin']) assert.ok(implied[`organization.${role}`].includes(key));
  }
  const [{ name, permissions: engineers }] = catalog.profiles;
  const usual = ['clusters.kubernetes', 'clusters.read', 'clusters.ssh', 'reservations.read'];
  assert.deepEqual([name, engineers], ['Engineer', usual]);

  const own = await service.business(pathOf('bob'), { as: 'bob' });
  assert.deepEqual(own.body, { organization_id: org, user_id: ids['bob'], role: 'member', permissions: [] });
  // Who may grant reads what everyone was granted, or the key of their role.
  const { body: all } = await service.business(`/organizations/${org}/permissions`, { as: 'max' });
  const held = all.members.map((one: { permissions: string[] }) => one.permissions.join());
  assert.deepEqual(held, ['organization.owner', 'organization.admin', 'clusters.ssh,members.manage', '']);

  // The set sent is the whole set; order and duplicates are ignored, also in a replay.
  const first = await permit('ada', 'bob', ['clusters.ssh', 'clusters.read', 'clusters.ssh'], undefined, {
    key: 'set',
  });
  assert.deepEqual([first.status, first.body.permissions], [200, ['clusters.read', 'clusters.ssh']]);
  assert.equal(
    (await permit('ada', 'bob', ['clusters.read', 'clusters.ssh'], undefined, { key: 'set' })).status,
    200,
  );
  assert.deepEqual((await permit('ada', 'bob', ['clusters.read'])).body.permissions, ['clusters.read']);

  for (const key of ['clusters.everything', 'organization.owner', 'organization.admin', ''])
    refused(await permit('ada', 'bob', [key]), 400, 'invalid_request');
  assert.equal((await permit('ada', 'bob', 'clusters.read')).status, 422);
  // Who holds all by their role cannot be granted keys.
  for (const one of ['ada', 'amy'])
    refused(await permit('ada', one, ['clusters.read']), 409, 'invalid_state');

  const list = () => service.business(`/organizations/${org}/clusters/${alpha}/access`, { as: 'ada' });
  const mode = async () =>
    (await list()).body.users?.find((user: { username: string }) => user.username === 'bob')?.access_mode;
  await permit('ada', 'bob', ['clusters.ssh']);
  await becomes(mode, 'use');
  const { generation } = (await list()).body;
  await permit('ada', 'bob', ['clusters.configure']);
  await becomes(mode, 'admin');
  assert.ok((await list()).body.generation > generation);
  await permit('ada', 'bob', ['clusters.read']);
  const ssh = `/clusters/${alpha}/ssh-access?organizationId=${org}`;
  assert.equal((await service.platform(ssh, { as: 'bob' })).status, 403, 'at once');
  await becomes(mode, undefined);
});

test('a granter must hold every key that is added, and only those', async () => {
  await using service = await startTestApp({ lab: { ...lab, clusters: [] } });
  const { permit } = await organizationOf(service);
  const put = async (as: string, ...permissions: string[]) => (await permit(as, 'bob', permissions)).status;
  assert.equal(await put('ada', 'clusters.read'), 200);
  assert.equal(await put('max', 'clusters.read', 'clusters.ssh'), 200, 'read was there already');
  assert.equal(await put('max', 'clusters.read', 'clusters.ssh', 'clusters.configure'), 403);
  assert.equal(await put('max', 'clusters.ssh.admin'), 403, 'more than what is held');
});
