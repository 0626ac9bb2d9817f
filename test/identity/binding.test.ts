/** Which sign-in is which account: issuers of our own, and tokens that they could give. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { foldEmail, isEmail } from '../../src/domain/people/person.ts';
import { listIdentities } from '../../src/store/people/identities.ts';
import { type JWTPayload, physics, startTestApp } from '../support/app.ts';

test('a sign-in is bound to an account by its verified email once; another with the same email is refused', async (t) => {
  await using service = await startTestApp({ lab: { ...physics, clusters: [] } });
  const { issuer } = service;
  const me = async (claims: JWTPayload, lifetime = 600) =>
    service.business('/me', { token: await issuer.token('bob', claims, lifetime) });
  const idOf = async (email: string) => {
    const { people } = (await service.business(`/operator/people?email=${email}`, { as: 'root' })).body;
    return people[0].id as string;
  };
  const add = (email: string) => service.write('/operator/people', { as: 'root', body: { email } });
  const rebind = (id: string, body: object) =>
    service.write(`/operator/people/${id}/identities`, { as: 'root', method: 'PUT', body });

  await t.test('of many subjects at once with one email, one gets the account', async () => {
    const replies = await Promise.all(
      Array.from({ length: 8 }, (_, i) => me({ sub: `racer-${i}`, email: 'eve@physics.example' })),
    );
    assert.deepEqual(replies.map(({ status }) => status).sort(), [200, ...Array(7).fill(401)]);
    const identities = await listIdentities(service.app.store.read, await idOf('eve@physics.example'));
    assert.equal(identities.length, 1);
  });

  await t.test('a subject with NUL or half of a surrogate pair is no person', async () => {
    // Stored, two of these would be one.
    for (const sub of ['a\0b', 'a\ud83db', 'a\ud83eb']) {
      const refused = await me({ sub });
      assert.deepEqual([refused.status, refused.body.code], [401, 'unauthorized']);
    }
  });

  await t.test('a second subject gets a message that the account is bound, and what to do', async () => {
    assert.equal((await me({})).status, 200);
    const { status, body } = await me({ sub: 'somebody-else' });
    assert.equal(status, 401);
    assert.match(body.message, /bound to another sign-in at .*admin person rebind bob@physics\.example/);
    assert.equal((await me({}, 500)).status, 200);
  });

  await t.test('an address that passes to another person passes no account on', async () => {
    service.advance(2_000);
    const moved = await me({ email: 'robert@physics.example' });
    assert.equal(moved.body.user.primary_email, 'robert@physics.example');
    assert.equal((await me({ sub: 'new-bob' }, 400)).status, 401);
    service.advance(2_000);
    assert.equal((await me({}, 450)).body.user.primary_email, 'bob@physics.example');
  });

  await t.test('an operator lists the identity, frees the account, and the next sign-in has it', async () => {
    const id = await idOf('bob@physics.example');
    const path = `/operator/people/${id}/identities`;
    const { identities } = (await service.business(path, { as: 'root' })).body;
    assert.deepEqual([identities[0].issuer, identities[0].subject], [issuer.url, 'subject-bob']);
    const old = await issuer.token('bob');
    assert.equal((await service.business('/me', { token: old })).status, 200);
    const freed = await rebind(id, { issuer: issuer.url });
    assert.deepEqual([freed.status, freed.body.identities], [200, []]);
    assert.equal((await me({ sub: 'new-bob' }, 300)).body.user.id, id);
    // What was accepted before is not any more.
    const refused = await service.business('/me', { token: old });
    assert.equal(refused.status, 401);
    const { entries } = (await service.business('/operator/audit?limit=50', { as: 'root' })).body;
    const entry = entries.find((one: { operation: string }) => one.operation === 'operatorRebindIdentity');
    assert.match(JSON.stringify(entries), /subject-bob → whoever signs in with the verified address next/);
    assert.equal(entry.target, id);
  });

  await t.test('an operator binds an account to a subject, unless that is another account', async () => {
    const id = await idOf('bob@physics.example');
    const ada = await service.business('/me', { as: 'ada' });
    assert.equal(ada.status, 200);
    assert.equal((await rebind(id, { issuer: issuer.url, subject: 'subject-ada' })).status, 409);
    assert.equal((await me({ sub: 'new-bob' }, 250)).status, 200);
    assert.equal((await rebind(id, { issuer: issuer.url, subject: 'subject-bob' })).status, 200);
    assert.equal((await me({ sub: 'new-bob' }, 200)).status, 401);
    assert.equal((await me({}, 200)).body.user.id, id);
  });

  await t.test('an identity at another issuer does not stop the first at this one', async () => {
    const { id } = (await add('nia@physics.example')).body;
    assert.equal((await rebind(id, { issuer: 'https://former.example', subject: 'nia' })).status, 200);
    const nia = await service.business('/me', { as: 'nia' });
    assert.equal(nia.body.user.id, id);
    const { identities } = (await service.business(`/operator/people/${id}/identities`, { as: 'root' })).body;
    assert.equal(identities.length, 2);
  });

  await t.test('a sub that is no text, or an empty one, is no person’s', async () => {
    for (const sub of ['', 7, null, ['subject-bob'], { a: 1 }, true]) {
      const claims = { sub: sub as string, email: 'root@physics.example', email_verified: true };
      assert.equal((await me(claims)).status, 401, JSON.stringify(sub));
    }
  });

  await t.test('letters beyond ASCII are not folded: a Kelvin sign is no k', async () => {
    const made = await add('kim@physics.example');
    const kelvin = await me({ sub: 'kelvin', email: '\u212aim@physics.example' });
    assert.equal(kelvin.status, 401);
    assert.match(kelvin.body.message, /no account/);
    const dotted = await me({ sub: 'dotted', email: 'K\u0130M@physics.example' });
    assert.equal(dotted.status, 401);
    // Nor does a domain that only folds to the organization's join it.
    const domain = await me({ sub: 'domain', email: 'x@chem\u0130stry.example' });
    assert.equal(domain.status, 401);
    assert.equal((await me({ sub: 'kim', email: 'KIM@Physics.Example' })).body.user.id, made.body.id);
  });
});

test('emails are folded for ASCII only', () => {
  assert.equal(foldEmail('ADA@Physics.Example'), 'ada@physics.example');
  assert.equal(foldEmail('\u212a\u0130É@x'), '\u212a\u0130É@x');
  assert.ok(isEmail('\u212aim@physics.example'));
});
