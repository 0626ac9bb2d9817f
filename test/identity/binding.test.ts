/** Which sign-in is which account: issuers of our own, and tokens that they could give. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { foldEmail, isEmail } from '../../src/domain/people/person.ts';
import { type JWTPayload, physics, startTestApp } from '../support/app.ts';
import { fieldsOf } from '../support/fields.ts';
import { refused } from '../support/refused.ts';

test('a sign-in is bound to an account by its verified email once; another with the same email is refused', async () => {
  await using service = await startTestApp({ lab: { ...physics, clusters: [] } });
  const { issuer } = service;
  const me = async (claims: JWTPayload, lifetime = 600) =>
    service.business('/me', { token: await issuer.token('bob', claims, lifetime) });
  const idOf = async (email: string) => {
    const { people } = (await service.business(`/operator/people?email=${email}`, { as: 'root' })).body;
    return people[0].id as string;
  };
  const add = (email: string) => service.write('/operator/people', { as: 'root', body: { email } });
  const rebind = (id: string, body: object) => service.put('root', `/operator/people/${id}/identities`, body);

  const listed = async (id: string) =>
    (await service.business(`/operator/people/${id}/identities`, { as: 'root' })).body.identities;

  // Of many subjects at once with one email, one gets the account.
  const replies = await Promise.all(
    Array.from({ length: 8 }, (_, i) => me({ sub: `racer-${i}`, email: 'eve@physics.example' })),
  );
  assert.deepEqual(fieldsOf(replies, 'status').sort(), [200, ...Array(7).fill(401)]);
  assert.equal((await listed(await idOf('eve@physics.example'))).length, 1);
  // Stored, two of these would be one.
  for (const sub of ['a\0b', 'a\ud83db', 'a\ud83eb']) refused(await me({ sub }), 401, 'unauthorized');

  assert.equal((await me({})).status, 200);
  const bound = /bound to another sign-in at .*admin person rebind bob@physics\.example/;
  refused(await me({ sub: 'somebody-else' }), 401, bound);
  assert.equal((await me({}, 500)).status, 200);
  // An address that passes to another person passes no account on.
  service.advance(2_000);
  const moved = await me({ email: 'robert@physics.example' });
  assert.equal(moved.body.user.primary_email, 'robert@physics.example');
  assert.equal((await me({ sub: 'new-bob' }, 400)).status, 401);
  service.advance(2_000);
  assert.equal((await me({}, 450)).body.user.primary_email, 'bob@physics.example');

  // An operator frees the account, and the next sign-in has it.
  const id = await idOf('bob@physics.example');
  assert.deepEqual(fieldsOf(await listed(id), 'issuer', 'subject'), [[issuer.url, 'subject-bob']]);
  const old = await issuer.token('bob');
  assert.equal((await service.business('/me', { token: old })).status, 200);
  const freed = await rebind(id, { issuer: issuer.url });
  assert.deepEqual([freed.status, freed.body.identities], [200, []]);
  assert.equal((await me({ sub: 'new-bob' }, 300)).body.user.id, id);
  refused(await service.business('/me', { token: old }), 401);
  const { entries } = (await service.business('/operator/audit?limit=50', { as: 'root' })).body;
  const entry = entries.find((one: { operation: string }) => one.operation === 'operatorRebindIdentity');
  assert.match(JSON.stringify(entries), /subject-bob → whoever signs in with the verified address next/);
  assert.equal(entry.target, id);
  // Or binds it to a subject, unless that is another account.
  assert.equal((await service.business('/me', { as: 'ada' })).status, 200);
  assert.equal((await rebind(id, { issuer: issuer.url, subject: 'subject-ada' })).status, 409);
  assert.equal((await me({ sub: 'new-bob' }, 250)).status, 200);
  assert.equal((await rebind(id, { issuer: issuer.url, subject: 'subject-bob' })).status, 200);
  assert.equal((await me({ sub: 'new-bob' }, 200)).status, 401);
  assert.equal((await me({}, 200)).body.user.id, id);
  // An identity at another issuer does not stop the first at this one.
  const nia = (await add('nia@physics.example')).body.id;
  assert.equal((await rebind(nia, { issuer: 'https://former.example', subject: 'nia' })).status, 200);
  assert.equal((await service.business('/me', { as: 'nia' })).body.user.id, nia);
  assert.equal((await listed(nia)).length, 2);

  for (const sub of ['', 7, null, ['subject-bob'], { a: 1 }, true]) {
    const claims = { sub: sub as string, email: 'root@physics.example', email_verified: true };
    assert.equal((await me(claims)).status, 401, JSON.stringify(sub));
  }
  // Letters beyond ASCII are not folded: a Kelvin sign is no k. Nor does a domain that only folds to one.
  const kim = (await add('kim@physics.example')).body.id;
  refused(await me({ sub: 'kelvin', email: '\u212aim@physics.example' }), 401, /no account/);
  for (const email of ['K\u0130M@physics.example', 'x@chem\u0130stry.example']) {
    assert.equal((await me({ sub: email, email })).status, 401);
  }
  assert.equal((await me({ sub: 'kim', email: 'KIM@Physics.Example' })).body.user.id, kim);
});

test('emails are folded for ASCII only', () => {
  assert.equal(foldEmail('ADA@Physics.Example'), 'ada@physics.example');
  assert.equal(foldEmail('\u212a\u0130É@x'), '\u212a\u0130É@x');
  assert.ok(isEmail('\u212aim@physics.example'));
});
