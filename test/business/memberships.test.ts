import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { findMembersVersion } from '../../src/store/organizations/memberships.ts';
import { becomes, physicsWith, type Reply, startTestApp } from '../support/app.ts';
import { refused } from '../support/refused.ts';
import { physicsOf } from './organization.ts';

const lab = physicsWith(
  { email: 'amy@physics.example', role: 'admin', username: 'amy' },
  { email: 'max@physics.example', role: 'member', username: 'max', permissions: ['members.manage'] },
);

interface Listed {
  user_id: string;
  role: string;
  organization_username: { username: string };
}

async function start(clusters: typeof lab.clusters = []) {
  const service = await startTestApp({ lab: { ...lab, clusters: clusters ?? [] } });
  const org: string = (await service.business('/me', { as: 'ada' })).body.default_org_id;
  const base = `/organizations/${org}/members`;
  const find = async (name: string): Promise<Listed | undefined> => {
    const { members } = (await service.business(base, { as: 'ada' })).body;
    return members.find(({ email }: Reply['body']) => email.split('@')[0] === name);
  };
  const pathOf = async (name: string) => `${base}/${(await find(name))?.user_id ?? 'user_none'}`;
  return {
    ...{ service, org, base, find },
    put: async (name: string, what: string, value: string, as = 'ada') =>
      service.put(as, `${await pathOf(name)}/${what}`, { [what]: value }),
    remove: async (name: string, as = 'ada') => service.write(`${await pathOf(name)}/remove`, { as }),
    add: (body: object, as = 'ada') => service.write(base, { as, body }),
    granted: async (name: string, as = 'ada') =>
      (await service.business(`${await pathOf(name)}/permissions`, { as })).body.permissions,
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  };
}

test('a new member gets an account, a username that can be changed, and no permissions', async () => {
  await using at = await start();
  const { service, base, find, put, add } = at;
  const cy = { email: 'Cy.D@physics.example', name: 'Cy' };
  const { status, body } = await service.write(base, { as: 'ada', body: cy, key: 'cy' });
  const same = { ...cy, email: 'CY.D@physics.example' };
  assert.equal((await service.write(base, { as: 'ada', body: same, key: 'cy' })).status, 200);
  assert.deepEqual([status, body.email, body.role], [201, 'cy.d@physics.example', 'member']);
  const { username, lifecycle_state: state } = body.organization_username;
  assert.deepEqual([username, state], ['cyd', 'reserved']);
  assert.equal((await service.business('/me', { as: 'cy.d' })).body.user.display_name, 'Cy');
  assert.deepEqual(await at.granted('cy.d', 'cy.d'), []);
  const changed = await put('cy.d', 'username', 'cyrus');
  assert.deepEqual([changed.status, changed.body.organization_username.username], [200, 'cyrus']);
  for (const [name, answer] of [
    ['bob', 409],
    ['Cy', 400],
    ['cyrus', 200],
  ] as const)
    assert.equal((await put('cy.d', 'username', name)).status, answer, name);

  for (const [fields, expected, words] of [
    [{ email: 'bob@physics.example' }, 409, /member already/],
    [{ username: 'ada' }, 409, /another person/],
    [{ username: 'root' }, 400, /cannot be a username/],
    [{ permissions: ['organization.owner'] }, 400, /not a permission/],
    [{ role: 'admin', permissions: ['clusters.read'] }, 400, /leave permissions out/],
    [{ email: 'no address' }, 422, /email/],
    [{ role: 'king' }, 422, /role/],
  ] as const)
    refused(await add({ email: 'new@physics.example', ...fields }), expected, words);
  assert.equal(await find('new'), undefined, 'nothing of it stays');
});

test('a frozen username is changed no more, not even after removal and return', async () => {
  await using at = await start(lab.clusters);
  const { find, put, add } = at;
  await becomes(async () => JSON.stringify(await find('bob')).includes('"frozen"'), true);
  assert.equal((await put('bob', 'username', 'robert')).status, 409);
  assert.equal((await at.remove('bob')).status, 200);
  const taken = await add({ email: 'zoe@physics.example', username: 'bob' });
  assert.equal(taken.status, 409, 'a frozen name is never reused');
  const back = await add({ email: 'bob@physics.example', permissions: ['clusters.ssh'] });
  assert.deepEqual([back.status, back.body.organization_username.username], [201, 'bob']);
});

test('who is removed loses everything in the organization, and a role change ends what was granted before', async () => {
  await using at = await start();
  const { service, org, base, put, add } = at;
  const { user_id: id } = (await add({ email: 'ivy@physics.example', permissions: ['clusters.read'] })).body;
  assert.equal((await at.remove('ivy')).status, 200);
  assert.equal((await service.business(`/organizations/${org}`, { as: 'ivy' })).status, 404);
  assert.deepEqual((await service.business('/me', { as: 'ivy' })).body.memberships, []);
  assert.equal((await service.write(`${base}/${id}/remove`, { as: 'ada' })).status, 404);
  assert.equal((await add({ email: 'ivy@physics.example' })).status, 201);
  assert.deepEqual(await at.granted('ivy', 'ivy'), []);
  for (const [role, keys] of [
    ['admin', ['organization.admin']],
    ['member', []],
  ] as const) {
    assert.equal((await put('max', 'role', role)).status, 200);
    assert.deepEqual(await at.granted('max'), keys);
  }
});

test('an admin manages members and admins, and nothing that concerns an owner', async () => {
  await using at = await start();
  const { put, add } = at;
  assert.equal((await add({ email: 'q@physics.example', role: 'admin' }, 'amy')).status, 201);
  assert.equal((await put('q', 'role', 'member', 'amy')).status, 200);
  assert.equal((await put('q', 'role', 'owner', 'amy')).status, 403);
  assert.equal((await put('ada', 'role', 'member', 'amy')).status, 403);
  assert.equal((await put('ada', 'username', 'queen', 'amy')).status, 403);
  assert.equal((await at.remove('ada', 'amy')).status, 403);
  assert.equal((await add({ email: 'r@physics.example', role: 'owner' }, 'amy')).status, 403);
  assert.equal((await at.remove('q', 'amy')).status, 200);
  for (const as of ['ada', 'root']) assert.equal((await at.remove('ada', as)).status, 409, 'the last owner');
});

const count = 1203;
const manyMembers = physicsOf(
  ...Array.from({ length: count }, (_, index) => ({
    email: `m${index}@physics.example`,
    username: `m${index}`,
    role: index === 0 ? ('owner' as const) : ('member' as const),
  })),
);

test('a list of many members is whole, oldest first, and as of the last change of any kind in it', async () => {
  await using app = await startTestApp({ lab: { ...manyMembers, clusters: [] } });
  const { store } = app.app;
  const { body: me } = await app.business('/me', { as: 'm0' });
  const path = `/organizations/${me.default_org_id}`;
  const list = async () => (await app.business(`${path}/members`, { as: 'm0' })).body.members;
  const inOrder = async () => {
    const { rows } = await sql<{ id: string }>`
      select user_id as id from memberships where lifecycle_state = 'active' order by created_at, user_id
    `.execute(store.read);
    return rows.map(({ id }) => id);
  };
  const idsOf = (members: { user_id: string }[]) => members.map((one) => one.user_id);
  const first = await list();
  assert.equal(first.length, count);
  assert.deepEqual(idsOf(first), await inOrder());

  // Who joined long ago by another clock comes first, whatever their ID.
  const some = first[700].user_id;
  const change = (statement: ReturnType<typeof sql>) =>
    store.write(async ({ db }) => void (await statement.execute(db)));
  await change(sql`update memberships set created_at = '2001-01-01T00:00:00.000Z' where user_id = ${some}`);
  assert.equal((await list())[0].user_id, some);
  assert.deepEqual(idsOf(await list()), await inOrder());

  await change(sql`update users set primary_email = 'other@physics.example' where id = ${some}`);
  assert.equal((await list())[0].email, 'other@physics.example');
  await change(sql`update organization_usernames set username = 'other' where user_id = ${some}`);
  assert.equal((await list())[0].organization_username.username, 'other');
  const permissions = async () => (await app.business(`${path}/permissions`, { as: 'm0' })).body.members[0];
  assert.deepEqual((await permissions()).permissions, []);
  const granting = { as: 'm0', method: 'PUT', body: { permissions: ['clusters.ssh'] } };
  assert.equal((await app.write(`${path}/members/${some}/permissions`, granting)).status, 200);
  assert.deepEqual((await permissions()).permissions, ['clusters.ssh']);
  await change(sql`delete from holdings where user_id = ${some} and kind = 'permission'`);
  assert.deepEqual((await permissions()).permissions, []);
  const removing = { as: 'm0', method: 'POST' };
  assert.equal((await app.write(`${path}/members/${some}/remove`, removing)).status, 200);
  assert.equal((await list()).length, count - 1);

  // What concerns no member leaves it as it is.
  const version = await findMembersVersion(store.read, me.default_org_id);
  await change(sql`update users set display_name = 'Somebody' where id = ${some}`);
  assert.equal(await findMembersVersion(store.read, me.default_org_id), version);
});
