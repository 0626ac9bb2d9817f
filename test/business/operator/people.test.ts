import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Lab } from '../../../src/domain/clusters/lab.ts';
import { createConsoleSession, findConsoleSession } from '../../../src/store/people/console-sessions.ts';
import { alpha, eventually, physics, type Reply, startTestApp } from '../../support/app.ts';
import { newPublicKey } from '../../support/ssh-keys.ts';

const lab: Lab = {
  ...physics,
  users: [...(physics.users ?? []), { email: 'rita@physics.example', staff: ['staff.read'] }],
  grants: [{ user: 'bob@physics.example', cluster: 'beta', relation: 'kubernetes.viewer' }],
};

test('people, as operators see and manage them', async (t) => {
  await using service = await startTestApp({ lab });
  const list = (query = '', as = 'root') => service.business(`/operator/people${query}`, { as });
  const find = async (name: string): Promise<Reply['body']> =>
    (await list(`?email=${name}@physics.example`)).body.people[0];
  const change = async (name: string, what: string, body?: object, as = 'root') =>
    service.write(`/operator/people/${(await find(name)).id}/${what}`, {
      as,
      ...(body ? { method: 'PUT', body } : {}),
    });

  await t.test('who has signed in is shown with when, also in the hour of the account', async () => {
    assert.equal((await find('eve')).last_sign_in_at, undefined);
    assert.equal((await service.business('/me', { as: 'eve' })).status, 200);
    const { last_sign_in_at: at, created_at: since } = await find('eve');
    assert.ok(at >= since, `${at}, made ${since}`);
  });

  await t.test('pages follow each other by ID and together hold everyone once', async () => {
    const seen: string[] = [];
    for (let after = ''; ; ) {
      const { body } = await list(`?limit=2${after}`);
      seen.push(...body.people.map((person: Reply['body']) => person.primary_email));
      if (body.next_page_token === undefined) break;
      assert.equal(body.people.length, 2);
      after = `&after=${body.next_page_token}`;
    }
    assert.equal(seen.length, new Set(seen).size);
    assert.ok(seen.includes('ada@physics.example') && !seen.includes('installation@andromeda.invalid'));
    assert.equal((await list('?after=nonsense')).body.code, 'invalid_pagination');
    assert.equal((await list('?limit=201')).status, 422);
  });

  await t.test('a new account is bound to the first sign-in with the address; twice is 409', async () => {
    const body = { email: 'Nia@physics.example', name: 'Nia', staff_keys: ['staff.read'] };
    const made = await service.write('/operator/people', { as: 'root', body });
    assert.equal(made.status, 201);
    assert.equal(made.body.primary_email, 'nia@physics.example');
    const me = await service.business('/me', { as: 'nia' });
    assert.deepEqual([me.body.user.id, me.body.staff_keys], [made.body.id, ['staff.read']]);
    assert.equal((await service.write('/operator/people', { as: 'root', body })).status, 409);
  });

  await t.test('the last person with staff.operate remains', async () => {
    assert.equal((await change('root', 'staff-keys', { staff_keys: ['staff.read'] })).status, 409);
    assert.equal((await change('root', 'deactivate')).status, 409);
    assert.equal((await change('rita', 'staff-keys', { staff_keys: ['staff.operate'] })).status, 200);
    assert.deepEqual((await service.business('/me', { as: 'rita' })).body.staff_keys, ['staff.operate']);
    assert.equal((await change('rita', 'staff-keys', { staff_keys: [] }, 'rita')).status, 200);
    assert.equal((await change('root', 'staff-keys', { staff_keys: ['staff.king'] })).status, 422);
  });

  const before = await service.issuer.token('bob', {}, 550);
  await t.test('who left loses sign-in, memberships, grants, staff keys and SSH keys at once', async () => {
    await service.write('/me/ssh-keys', { as: 'bob', body: { public_key: newPublicKey() } });
    const org = (await service.business('/me', { as: 'bob' })).body.default_org_id;
    const { id: bob } = await find('bob');
    const plan = () => service.business(`/operator/people/${bob}/deactivation`, { as: 'root' });
    const planned = await eventually(plan, (reply) => reply.body.clusters.length > 0);
    assert.deepEqual(planned.body.changes, [
      { change: 'remove', email: 'bob@physics.example', user_id: bob, result: 'planned' },
    ]);
    assert.deepEqual(
      planned.body.clusters.map(({ cluster_name: name, removed }: Reply['body']) => [name, removed]),
      [['alpha', ['bob']]],
    );
    assert.equal((await service.business('/me', { as: 'bob' })).status, 200, 'nothing of it stays');
    assert.equal((await service.business('/me', { token: before })).status, 200);
    const session = { id: 'a session', userId: bob, sealed: 'x', address: '127.0.0.1', program: 'Firefox' };
    await service.app.store.write((tx) => createConsoleSession(tx, session));
    const { status, body } = await change('bob', 'deactivate');
    assert.equal((await plan()).status, 409);
    assert.deepEqual([status, body.lifecycle_state, body.staff_keys], [200, 'deactivated', []]);
    const me = await service.business('/me', { as: 'bob' });
    assert.deepEqual([me.status, me.body.code], [401, 'unauthorized']);
    const grants = await service.business('/operator/grants', { as: 'root' });
    assert.deepEqual(grants.body.grants, []);
    const access = () => service.business(`/organizations/${org}/clusters/${alpha}/access`, { as: 'ada' });
    await eventually(access, (reply) => !JSON.stringify(reply.body.users).includes('"bob"'));
    const again = await service.write(`/organizations/${org}/members`, {
      as: 'ada',
      body: { email: 'bob@physics.example' },
    });
    assert.deepEqual([again.status, again.body.code], [409, 'invalid_state']);
  });

  await t.test('and can be let in again, with nothing', async () => {
    assert.equal((await change('bob', 'reactivate')).status, 200);
    const from = await service.business('/me', { token: before });
    assert.deepEqual([from.status, from.body.message], [401, 'This sign-in was ended. Sign in again.']);
    assert.equal(await findConsoleSession(service.app.store.read, 'a session'), undefined);
    // Issuers say to the second when a token was issued.
    service.advance(1_000);
    const me = await service.business('/me', { token: await service.issuer.token('bob', {}, 500) });
    assert.deepEqual([me.status, me.body.memberships], [200, []]);
    const { body } = await service.business('/me/ssh-keys', { as: 'bob' });
    assert.deepEqual(
      body.keys.map((key: Reply['body']) => key.lifecycle_state),
      ['revoked'],
    );
  });

  await t.test('the last owner of an organization cannot be deactivated', async () => {
    const refused = await change('ada', 'deactivate');
    assert.equal(refused.status, 409);
    const path = `/operator/people/${(await find('ada')).id}/deactivation`;
    const { changes, clusters } = (await service.business(path, { as: 'root' })).body;
    const { result, message } = changes[0];
    assert.deepEqual([result, message, clusters], ['refused', refused.body.message, []]);
    assert.equal((await service.business('/me', { as: 'ada' })).status, 200, 'nothing of it stays');
  });

  await t.test('the owner of a retired organization can', async () => {
    const body = { slug: 'gone', display_name: 'Gone', owner_email: 'lena@physics.example' };
    const made = await service.write('/operator/organizations', { as: 'root', body });
    await service.write(`/organizations/${made.body.organization.id}/retire`, { as: 'root' });
    assert.equal((await change('lena', 'deactivate')).status, 200);
  });

  await t.test('the installation itself is not a person, and cannot be deactivated: 404', async () => {
    const body = { email: 'Installation@andromeda.invalid' };
    assert.equal((await service.write('/operator/people', { as: 'root', body })).status, 400);
    const system = '/operator/people/user_00000000000000000000000000/deactivate';
    assert.equal((await service.write(system, { as: 'root' })).status, 404);
  });
});
