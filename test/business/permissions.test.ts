import assert from 'node:assert/strict';
import { test } from 'node:test';
import { effectivePermissions, permissionCatalog } from '../../src/domain/access/permission.ts';
import type { Lab } from '../../src/domain/clusters/lab.ts';
import { alpha, eventually, physics, startTestApp } from '../support/app.ts';

const max = { email: 'max@physics.example', role: 'member' as const, username: 'max' };
const lab: Lab = {
  ...physics,
  organizations: [
    {
      ...{ slug: 'physics', name: 'Physics' },
      members: [
        { email: 'ada@physics.example', role: 'owner', username: 'ada' },
        { email: 'amy@physics.example', role: 'admin', username: 'amy' },
        { ...max, permissions: ['members.manage', 'clusters.ssh'] },
        { email: 'bob@physics.example', role: 'member', username: 'bob' },
      ],
    },
  ],
};

test('permissions', async (t) => {
  await using service = await startTestApp({ lab });
  const org: string = (await service.business('/me', { as: 'ada' })).body.default_org_id;
  const members = (await service.business(`/organizations/${org}/members`, { as: 'bob' })).body.members;
  const id = (name: string): string =>
    members.find((member: { email: string }) => member.email.startsWith(`${name}@`)).user_id;
  const path = (name: string) => `/organizations/${org}/members/${id(name)}/permissions`;
  const put = (as: string, name: string, permissions: unknown, key?: string) =>
    service.write(path(name), { as, method: 'PUT', body: { permissions }, ...(key ? { key } : {}) });

  await t.test('the catalog has every key with what it includes, and the profile Engineer', async () => {
    const { body } = await service.business('/permission-profiles', { as: 'bob' });
    const implied = Object.fromEntries(
      body.permissions.map((one: { key: string; implies: string[] }) => [one.key, one.implies]),
    );
    // As test/domain/permission.test.ts has them.
    for (const { key } of permissionCatalog) {
      const included = [...effectivePermissions('member', [key])].filter((one) => one !== key);
      assert.deepEqual(implied[key], included.sort(), key);
      for (const role of ['owner', 'admin']) assert.ok(implied[`organization.${role}`].includes(key));
    }
    const [engineer] = body.profiles;
    assert.equal(engineer.name, 'Engineer');
    const engineers = ['clusters.kubernetes', 'clusters.read', 'clusters.ssh', 'reservations.read'];
    assert.deepEqual(engineer.permissions, engineers);
  });

  await t.test('members are listed oldest first', () => {
    const names = members.map(({ email }: { email: string }) => email.split('@')[0]);
    assert.deepEqual(names, ['ada', 'amy', 'max', 'bob']);
  });

  await t.test('own permissions need nothing, others need members.manage', async () => {
    const own = await service.business(path('bob'), { as: 'bob' });
    assert.deepEqual(own.body, { organization_id: org, user_id: id('bob'), role: 'member', permissions: [] });
    assert.equal((await service.business(path('ada'), { as: 'bob' })).status, 403);
    assert.equal((await service.business(path('bob'), { as: 'max' })).status, 200);
  });

  await t.test('who may grant reads what everyone was granted, or the key of their role', async () => {
    const { body } = await service.business(`/organizations/${org}/permissions`, { as: 'max' });
    const held = body.members.map((one: { permissions: string[] }) => one.permissions.join());
    assert.deepEqual(held, ['organization.owner', 'organization.admin', 'clusters.ssh,members.manage', '']);
    const own = await service.business(path('ada'), { as: 'ada' });
    assert.deepEqual(own.body.permissions, ['organization.owner']);
  });

  await t.test('the set sent is the whole set; order and duplicates are ignored', async () => {
    const first = await put('ada', 'bob', ['clusters.ssh', 'clusters.read', 'clusters.ssh'], 'set');
    assert.equal(first.status, 200);
    assert.deepEqual(first.body.permissions, ['clusters.read', 'clusters.ssh']);
    const replay = await put('ada', 'bob', ['clusters.read', 'clusters.ssh'], 'set');
    assert.equal(replay.status, 200, 'the same set in another order is the same request');
    assert.deepEqual((await put('ada', 'bob', ['clusters.read'])).body.permissions, ['clusters.read']);
  });

  await t.test('a granter must hold every key that is added, and only those', async () => {
    for (const [permissions, status] of [
      // Read was there already.
      [['clusters.read', 'clusters.ssh'], 200],
      [['clusters.read', 'clusters.ssh', 'clusters.configure'], 403],
      // More than what is held.
      [['clusters.ssh.admin'], 403],
    ] as const)
      assert.equal((await put('max', 'bob', permissions)).status, status, permissions.join());
  });

  await t.test('unknown keys and the keys of roles are refused', async () => {
    for (const key of ['clusters.everything', 'organization.owner', 'organization.admin', '']) {
      const { status, body } = await put('ada', 'bob', [key]);
      assert.equal(status, 400, key);
      assert.equal(body.code, 'invalid_request');
    }
    assert.equal((await put('ada', 'bob', 'clusters.read')).status, 422);
  });

  await t.test('an owner or admin cannot be granted keys', async () => {
    for (const name of ['ada', 'amy']) {
      const { status, body } = await put('ada', name, ['clusters.read']);
      assert.equal(status, 409);
      assert.equal(body.code, 'invalid_state');
    }
  });

  await t.test('a change of permissions reaches the access list, with what it says of admins', async () => {
    const list = () => service.business(`/organizations/${org}/clusters/${alpha}/access`, { as: 'ada' });
    const mode = async () =>
      (await list()).body.users?.find((user: { username: string }) => user.username === 'bob')?.access_mode;
    await put('ada', 'bob', ['clusters.ssh']);
    await eventually(mode, (found) => found === 'use');
    const { generation } = (await list()).body;
    await put('ada', 'bob', ['clusters.configure']);
    await eventually(mode, (found) => found === 'admin');
    assert.ok((await list()).body.generation > generation);
    await put('ada', 'bob', ['clusters.read']);
    const ssh = `/clusters/${alpha}/ssh-access?organizationId=${org}`;
    assert.equal((await service.platform(ssh, { as: 'bob' })).status, 403, 'at once');
    await eventually(mode, (found) => found === undefined);
  });
});
