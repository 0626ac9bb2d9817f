import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Lab } from '../../../src/domain/clusters/lab.ts';
import { createConsoleSession, findConsoleSession } from '../../../src/store/people/console-sessions.ts';
import { alpha, eventually, physics, type Reply, startTestApp } from '../../support/app.ts';
import { fieldsOf } from '../../support/fields.ts';
import { refused } from '../../support/refused.ts';
import { newPublicKey } from '../../support/ssh-keys.ts';

const lab: Lab = {
  ...physics,
  users: [...(physics.users ?? []), { email: 'rita@physics.example', staff: ['staff.read'] }],
  grants: [{ user: 'bob@physics.example', cluster: 'beta', relation: 'kubernetes.viewer' }],
};

async function open() {
  const service = await startTestApp({ lab });
  const list = (query = '', as = 'root') => service.business(`/operator/people${query}`, { as });
  const find = async (name: string): Promise<Reply['body']> =>
    (await list(`?email=${name}@physics.example`)).body.people[0];
  return {
    ...{ service, list, find },
    change: async (name: string, what: string, body?: object, as = 'root') =>
      service.write(`/operator/people/${(await find(name)).id}/${what}`, {
        as,
        ...(body ? { method: 'PUT', body } : {}),
      }),
    make: (body: object, of = 'people') => service.write(`/operator/${of}`, { as: 'root', body }),
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  };
}

test('operators list people, make accounts and give staff keys, of which one with staff.operate remains', async () => {
  await using opened = await open();
  const { service, list, find, change, make } = opened;
  assert.equal((await find('eve')).last_sign_in_at, undefined);
  assert.equal((await service.business('/me', { as: 'eve' })).status, 200);
  const { last_sign_in_at: at, created_at: since } = await find('eve');
  assert.ok(at >= since, `${at}, made ${since}, also in the hour of the account`);

  const seen: string[] = [];
  for (let after = ''; ; ) {
    const { people, next_page_token: next } = (await list(`?limit=2${after}`)).body;
    seen.push(...people.map((person: Reply['body']) => person.primary_email));
    if (next === undefined) break;
    assert.equal(people.length, 2);
    after = `&after=${next}`;
  }
  assert.equal(seen.length, new Set(seen).size);
  assert.ok(seen.includes('ada@physics.example') && !seen.includes('installation@andromeda.invalid'));
  assert.equal((await list('?after=nonsense')).body.code, 'invalid_pagination');
  assert.equal((await list('?limit=201')).status, 422);

  // A new account is bound to the first sign-in with the address.
  const body = { email: 'Nia@physics.example', name: 'Nia', staff_keys: ['staff.read'] };
  const made = await make(body);
  assert.deepEqual([made.status, made.body.primary_email], [201, 'nia@physics.example']);
  const { user, staff_keys: keys } = (await service.business('/me', { as: 'nia' })).body;
  assert.deepEqual([user.id, keys], [made.body.id, ['staff.read']]);
  assert.equal((await make(body)).status, 409);

  assert.equal((await change('root', 'staff-keys', { staff_keys: ['staff.read'] })).status, 409);
  assert.equal((await change('root', 'deactivate')).status, 409);
  assert.equal((await change('rita', 'staff-keys', { staff_keys: ['staff.operate'] })).status, 200);
  assert.deepEqual((await service.business('/me', { as: 'rita' })).body.staff_keys, ['staff.operate']);
  assert.equal((await change('rita', 'staff-keys', { staff_keys: [] }, 'rita')).status, 200);
  assert.equal((await change('root', 'staff-keys', { staff_keys: ['staff.king'] })).status, 422);
  // The installation itself is not a person.
  assert.equal((await make({ email: 'Installation@andromeda.invalid' })).status, 400);
  const system = '/operator/people/user_00000000000000000000000000/deactivate';
  assert.equal((await service.write(system, { as: 'root' })).status, 404);
});

test('who left loses sign-in, memberships, grants, staff keys and SSH keys at once, and returns with nothing', async () => {
  await using opened = await open();
  const { service, find, change, make } = opened;
  const before = await service.issuer.token('bob', {}, 550);
  await service.write('/me/ssh-keys', { as: 'bob', body: { public_key: newPublicKey() } });
  const org = (await service.business('/me', { as: 'bob' })).body.default_org_id;
  const { id: bob } = await find('bob');
  const planOf = (id: string) => service.business(`/operator/people/${id}/deactivation`, { as: 'root' });
  const planned = await eventually(
    () => planOf(bob),
    (reply) => reply.body.clusters.length > 0,
  );
  assert.deepEqual(planned.body.changes, [
    { change: 'remove', email: 'bob@physics.example', user_id: bob, result: 'planned' },
  ]);
  assert.deepEqual(fieldsOf(planned.body.clusters, 'cluster_name', 'removed'), [['alpha', ['bob']]]);
  assert.equal((await service.business('/me', { token: before })).status, 200, 'nothing of it stays');
  const { store } = service.app;
  const session = { id: 'a session', userId: bob, sealed: 'x', address: '127.0.0.1', program: 'Firefox' };
  await store.write((tx) => createConsoleSession(tx, session));
  const { status, body } = await change('bob', 'deactivate');
  assert.deepEqual([status, body.lifecycle_state, body.staff_keys], [200, 'deactivated', []]);
  assert.equal((await planOf(bob)).status, 409);
  refused(await service.business('/me', { as: 'bob' }), 401, 'unauthorized');
  const { grants } = (await service.business('/operator/grants', { as: 'root' })).body;
  assert.deepEqual(grants, []);
  const access = () => service.business(`/organizations/${org}/clusters/${alpha}/access`, { as: 'ada' });
  await eventually(access, (reply) => !JSON.stringify(reply.body.users).includes('"bob"'));
  const add = { as: 'ada', body: { email: 'bob@physics.example' } };
  refused(await service.write(`/organizations/${org}/members`, add), 409, 'invalid_state');

  assert.equal((await change('bob', 'reactivate')).status, 200);
  const ended = /^This sign-in was ended\. Sign in again/;
  const claimsOf = (token: string) =>
    JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
  const { exp, auth_time } = claimsOf(before);
  const now = exp - 550;
  const withTimes = (iat?: number, auth_time?: number) =>
    service.issuer.token('bob', { iat, auth_time } as never, 500);
  // The last is of an issuer whose clock is ahead.
  const earlier = [before, await withTimes(now + 55, now + 55)] as const;
  for (const token of earlier) refused(await service.business('/me', { token }), 401, ended);
  assert.equal(await findConsoleSession(store.read, 'a session'), undefined);
  service.advance(61_000);
  for (const [token, why] of [
    [earlier[1], ended],
    [await service.issuer.token('bob', { auth_time }, 510), /Sign out at the issuer, and sign in/],
    [await withTimes(undefined, auth_time), /Sign out at the issuer, and sign in/],
    [await withTimes(), /the issuer must send iat or auth_time/],
  ] as const)
    refused(await service.business('/me', { token }), 401, why);
  const fresh = await service.issuer.token('bob', {}, 500);
  const undated = { token: await withTimes(undefined, claimsOf(fresh).iat) };
  assert.equal((await service.business('/me', undated)).status, 200, 'an issuer without iat');
  const me = await service.business('/me', { token: fresh });
  assert.deepEqual([me.status, me.body.memberships], [200, []]);
  const { keys } = (await service.business('/me/ssh-keys', { as: 'bob' })).body;
  assert.deepEqual(fieldsOf(keys, 'lifecycle_state'), ['revoked']);

  // The last owner stays, but for the one of a retired organization.
  const last = await change('ada', 'deactivate');
  assert.equal(last.status, 409);
  const { changes, clusters } = (await planOf((await find('ada')).id)).body;
  assert.deepEqual(fieldsOf(changes, 'result', 'message'), [['refused', last.body.message]]);
  assert.deepEqual(clusters, []);
  assert.equal((await service.business('/me', { as: 'ada' })).status, 200, 'nothing of the plan stays');
  const gone = { slug: 'gone', display_name: 'Gone', owner_email: 'lena@physics.example' };
  const { organization } = (await make(gone, 'organizations')).body;
  await service.write(`/organizations/${organization.id}/retire`, { as: 'root' });
  assert.equal((await change('lena', 'deactivate')).status, 200);
});
