import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { findMembersVersion } from '../../src/store/organizations/memberships.ts';
import { startTestApp } from '../support/app.ts';

const count = 1203;
const lab = {
  organizations: [
    {
      slug: 'physics',
      name: 'Physics',
      members: Array.from({ length: count }, (_, index) => ({
        email: `m${index}@physics.example`,
        username: `m${index}`,
        role: index === 0 ? ('owner' as const) : ('member' as const),
      })),
    },
  ],
  clusters: [],
};

test('a list of many members is whole, oldest first, and as of the last change of any kind in it', async () => {
  await using app = await startTestApp({ lab });
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
