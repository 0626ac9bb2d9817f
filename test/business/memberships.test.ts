import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually, physicsWith, type Reply, startTestApp } from '../support/app.ts';

const lab = physicsWith(
  { email: 'amy@physics.example', role: 'admin', username: 'amy' },
  { email: 'max@physics.example', role: 'member', username: 'max', permissions: ['members.manage'] },
);

test('memberships', async (t) => {
  await using service = await startTestApp({ lab });
  const org: string = (await service.business('/me', { as: 'ada' })).body.default_org_id;
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
  const put = async (name: string, what: string, value: string, as = 'ada') =>
    service.write(`${base}/${await idOf(name)}/${what}`, { as, method: 'PUT', body: { [what]: value } });
  const remove = async (name: string, as = 'ada') =>
    service.write(`${base}/${await idOf(name)}/remove`, { as });
  const add = (body: object, as = 'ada') => service.write(base, { as, body });

  await t.test('a new member gets an account, a username, and no permissions', async () => {
    const cy = { email: 'Cy.D@physics.example', name: 'Cy' };
    const { status, body } = await service.write(base, { as: 'ada', body: cy, key: 'cy' });
    assert.equal(status, 201);
    const same = { ...cy, email: 'CY.D@physics.example' };
    assert.equal((await service.write(base, { as: 'ada', body: same, key: 'cy' })).status, 200);
    assert.deepEqual([body.email, body.role], ['cy.d@physics.example', 'member']);
    const { username, lifecycle_state } = body.organization_username;
    assert.deepEqual([username, lifecycle_state], ['cyd', 'reserved']);
    const me = await service.business('/me', { as: 'cy.d' });
    assert.equal(me.body.user.display_name, 'Cy');
    const own = `/organizations/${org}/members/${body.user_id}/permissions`;
    assert.deepEqual((await service.business(own, { as: 'cy.d' })).body.permissions, []);
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
    assert.equal((await remove('ada', 'root')).status, 409);
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
    assert.equal((await remove('bob')).status, 200);
    const taken = await add({ email: 'zoe@physics.example', username: 'bob' });
    assert.equal(taken.status, 409, 'a frozen name is never reused');
    const back = await add({ email: 'bob@physics.example', permissions: ['clusters.ssh'] });
    assert.deepEqual([back.status, back.body.organization_username.username], [201, 'bob']);
  });

  await t.test('who is removed loses everything in the organization', async () => {
    const { body } = await add({ email: 'ivy@physics.example', permissions: ['clusters.read'] });
    assert.equal((await remove('ivy')).status, 200);
    assert.equal((await service.business(`/organizations/${org}`, { as: 'ivy' })).status, 404);
    assert.deepEqual((await service.business('/me', { as: 'ivy' })).body.memberships, []);
    assert.equal((await service.write(`${base}/${body.user_id}/remove`, { as: 'ada' })).status, 404);
    const back = await add({ email: 'ivy@physics.example' });
    assert.equal(back.status, 201);
    const own = `/organizations/${org}/members/${body.user_id}/permissions`;
    assert.deepEqual((await service.business(own, { as: 'ivy' })).body.permissions, []);
  });

  await t.test('a role change ends what was granted before', async () => {
    const path = `/organizations/${org}/members/${await idOf('max')}/permissions`;
    assert.equal((await put('max', 'role', 'admin')).status, 200);
    assert.deepEqual((await service.business(path, { as: 'ada' })).body.permissions, ['organization.admin']);
    assert.equal((await put('max', 'role', 'member')).status, 200);
    assert.deepEqual((await service.business(path, { as: 'ada' })).body.permissions, []);
  });

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
