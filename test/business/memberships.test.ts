import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Lab } from '../../src/domain/clusters/lab.ts';
import { alpha, eventually, physics, type Reply, startTestApp } from '../support/app.ts';
import { newPublicKey } from '../support/ssh-keys.ts';

const lab: Lab = {
  ...physics,
  users: [...(physics.users ?? []), { email: 'rita@physics.example', staff: ['staff.read'] }],
  organizations: [
    {
      slug: 'physics',
      name: 'Physics',
      members: [
        { email: 'ada@physics.example', role: 'owner', username: 'ada' },
        { email: 'amy@physics.example', role: 'admin', username: 'amy' },
        { email: 'max@physics.example', role: 'member', username: 'max', permissions: ['members.manage'] },
        { email: 'bob@physics.example', role: 'member', username: 'bob', permissions: ['clusters.ssh'] },
      ],
    },
    { slug: 'other', name: 'Other', members: [{ email: 'oda@physics.example', role: 'owner' }] },
  ],
};

/** The same rules, by both ways. */
for (const way of ['owners and admins', 'operators'] as const) {
  test(`memberships, managed by ${way}`, async (t) => {
    await using service = await startTestApp({ lab });
    const org: string = (await service.business('/me', { as: 'ada' })).body.default_org_id;
    const manager = way === 'operators' ? 'root' : 'ada';
    const base = `/organizations/${org}/members`;
    const members = async (): Promise<Map<string, { user_id: string; role: string; username: string }>> => {
      const { body } = await service.business(`/organizations/${org}/members`, { as: 'ada' });
      return new Map(
        body.members.map((one: Reply['body']) => [
          one.email.split('@')[0],
          { user_id: one.user_id, role: one.role, username: one.organization_username.username },
        ]),
      );
    };
    const idOf = async (name: string) => (await members()).get(name)?.user_id ?? 'user_none';
    const put = async (name: string, what: string, value: string, as = manager) =>
      service.write(`${base}/${await idOf(name)}/${what}`, { as, method: 'PUT', body: { [what]: value } });
    const remove = async (name: string, as = manager) =>
      service.write(`${base}/${await idOf(name)}/remove`, { as });
    const add = (body: object, as = manager, key?: string) =>
      service.write(base, { as, body, ...(key ? { key } : {}) });

    await t.test('a new member gets an account, a username, and no permissions', async () => {
      const { status, body } = await add({ email: 'Cy.D@physics.example', name: 'Cy' });
      assert.equal(status, 201);
      assert.deepEqual([body.email, body.role], ['cy.d@physics.example', 'member']);
      const { username, lifecycle_state } = body.organization_username;
      assert.deepEqual([username, lifecycle_state], ['cyd', 'reserved']);
      const me = await service.business('/me', { as: 'cy.d' });
      assert.equal(me.body.user.display_name, 'Cy');
      const own = `/organizations/${org}/members/${body.user_id}/permissions`;
      assert.deepEqual((await service.business(own, { as: 'cy.d' })).body.permissions, []);
    });

    await t.test('a replay is 200 with the first result, another body 409', async () => {
      const body = { email: 'dot@physics.example', username: 'dotty', permissions: ['clusters.read'] };
      const first = await add(body, manager, 'dot');
      const again = await add({ ...body, email: 'DOT@physics.example' }, manager, 'dot');
      assert.deepEqual([first.status, again.status], [201, 200]);
      assert.deepEqual(again.body, first.body);
      assert.equal((await add({ ...body, username: 'dot' }, manager, 'dot')).status, 409);
    });

    await t.test('who is a member already, a name that is taken or none: refused in words', async () => {
      for (const [body, status, words] of [
        [{ email: 'bob@physics.example' }, 409, /member already/],
        [{ email: 'new@physics.example', username: 'ada' }, 409, /another person/],
        [{ email: 'new@physics.example', username: 'root' }, 400, /cannot be a username/],
        [{ email: 'new@physics.example', permissions: ['organization.owner'] }, 400, /not a permission/],
        [
          { email: 'new@physics.example', role: 'admin', permissions: ['clusters.read'] },
          400,
          /leave permissions out/,
        ],
        [{ email: 'no address' }, 422, /email/],
        [{ email: 'new@physics.example', role: 'king' }, 422, /role/],
      ] as const) {
        const reply = await add(body);
        assert.equal(reply.status, status, JSON.stringify(reply.body));
        assert.match(reply.body.message, words);
      }
      assert.equal((await members()).has('new'), false, 'nothing of it stays');
    });

    await t.test('an owner always remains', async () => {
      assert.equal((await put('ada', 'role', 'member')).status, 409);
      assert.equal((await remove('ada')).status, 409);
      assert.equal((await put('amy', 'role', 'owner')).status, 200);
      assert.equal((await put('ada', 'role', 'admin', way === 'operators' ? manager : 'amy')).status, 200);
      assert.equal((await put('amy', 'role', 'admin', way === 'operators' ? manager : 'amy')).status, 409);
      assert.equal((await put('ada', 'role', 'owner', way === 'operators' ? manager : 'amy')).status, 200);
      assert.equal((await put('amy', 'role', 'admin')).status, 200);
    });

    await t.test('a username can be changed while it is reserved', async () => {
      const { status, body } = await put('cy.d', 'username', 'cyrus');
      assert.deepEqual([status, body.organization_username.username], [200, 'cyrus']);
      assert.equal((await put('cy.d', 'username', 'bob')).status, 409);
      assert.equal((await put('cy.d', 'username', 'Cy')).status, 400);
      assert.equal((await put('cy.d', 'username', 'cyrus')).status, 200);
    });

    await t.test('and not once it is frozen, not even after removal and return', async () => {
      await eventually(
        async () => (await service.business('/me', { as: 'bob' })).body.memberships[0].organization_username,
        (name) => name.lifecycle_state === 'frozen',
      );
      assert.equal((await put('bob', 'username', 'robert')).status, 409);
      const access = () => service.business(`/organizations/${org}/clusters/${alpha}/access`, { as: 'ada' });
      const bob = await idOf('bob');
      const find = (reply: Reply) => reply.body.users.find((user: Reply['body']) => user.user_id === bob);
      const before = find(await eventually(access, (reply) => find(reply)?.allocation !== undefined));
      assert.equal((await remove('bob')).status, 200);
      await eventually(access, (reply) => find(reply) === undefined);
      const taken = await add({ email: 'zoe@physics.example', username: 'bob' });
      assert.equal(taken.status, 409, 'a frozen name is never reused');
      const back = await add({ email: 'bob@physics.example', permissions: ['clusters.ssh'] });
      assert.deepEqual([back.status, back.body.organization_username.username], [201, 'bob']);
      const after = find(await eventually(access, (reply) => find(reply)?.allocation !== undefined));
      assert.deepEqual(after.allocation, before.allocation, 'uid and gid never change');
    });

    await t.test('who is removed loses everything in the organization', async () => {
      const { body } = await add({ email: 'ivy@physics.example', permissions: ['clusters.read'] });
      assert.equal((await remove('ivy')).status, 200);
      assert.equal((await service.business(`/organizations/${org}`, { as: 'ivy' })).status, 404);
      assert.deepEqual((await service.business('/me', { as: 'ivy' })).body.memberships, []);
      assert.equal((await service.write(`${base}/${body.user_id}/remove`, { as: manager })).status, 404);
      const back = await add({ email: 'ivy@physics.example' });
      assert.equal(back.status, 201);
      const own = `/organizations/${org}/members/${body.user_id}/permissions`;
      assert.deepEqual((await service.business(own, { as: 'ivy' })).body.permissions, []);
    });

    await t.test('a role change ends what was granted before', async () => {
      const path = `/organizations/${org}/members/${await idOf('max')}/permissions`;
      assert.equal((await put('max', 'role', 'admin')).status, 200);
      assert.deepEqual((await service.business(path, { as: 'ada' })).body.permissions, [
        'organization.admin',
      ]);
      assert.equal((await put('max', 'role', 'member')).status, 200);
      assert.deepEqual((await service.business(path, { as: 'ada' })).body.permissions, []);
    });

    if (way === 'operators') return;
    await t.test(
      'staff.read sees every organization, what its members may do, and changes nothing',
      async () => {
        const dot = `${base}/${await idOf('dot')}`;
        const read = [
          base,
          `/organizations/${org}/permissions`,
          `${dot}/permissions`,
          `${dot}/kubernetes-access`,
        ];
        for (const path of read) {
          const { status, body } = await service.business(path, { as: 'rita' });
          assert.deepEqual([status, body], [200, (await service.business(path, { as: 'ada' })).body], path);
          assert.equal((await service.business(path, { as: 'oda' })).status, 404, path);
          const other = path.replace(org, 'org_01JD0000000000000000000000');
          assert.equal((await service.business(other, { as: 'rita' })).status, 404, other);
        }
      },
    );

    await t.test('an admin manages members and admins, and nothing that concerns an owner', async () => {
      assert.equal((await add({ email: 'q@physics.example', role: 'admin' }, 'amy')).status, 201);
      assert.equal((await put('q', 'role', 'member', 'amy')).status, 200);
      assert.equal((await put('q', 'role', 'owner', 'amy')).status, 403);
      assert.equal((await put('ada', 'role', 'member', 'amy')).status, 403);
      assert.equal((await put('ada', 'username', 'queen', 'amy')).status, 403);
      assert.equal((await remove('ada', 'amy')).status, 403);
      assert.equal((await add({ email: 'r@physics.example', role: 'owner' }, 'amy')).status, 403);
      assert.equal((await remove('q', 'amy')).status, 200);
    });
  });
}

test('a change of permissions reaches access list, cluster and gateway, and an open session ends', async () => {
  await using service = await startTestApp({ lab });
  const org: string = (await service.business('/me', { as: 'ada' })).body.default_org_id;
  await service.write('/me/ssh-keys', { as: 'bob', body: { public_key: newPublicKey() } });
  const ssh = () => service.platform(`/clusters/${alpha}/ssh-access?organizationId=${org}`, { as: 'bob' });
  await eventually(ssh, ({ body }) => body.ready);
  const { body } = await service.business(`/organizations/${org}/members`, { as: 'ada' });
  const bob = body.members.find((one: Reply['body']) => one.email.startsWith('bob')).user_id;
  const path = `/organizations/${org}/members/${bob}/permissions`;
  const { status } = await service.write(path, { as: 'ada', method: 'PUT', body: { permissions: [] } });
  assert.equal(status, 200);
  assert.equal((await ssh()).status, 403, 'at once');
  const access = () => service.business(`/organizations/${org}/clusters/${alpha}/access`, { as: 'ada' });
  const list = await eventually(
    access,
    (reply) =>
      reply.body.state === 'converged' &&
      reply.body.users.every((user: Reply['body']) => user.user_id !== bob),
  );
  assert.equal(list.status, 200);
});
