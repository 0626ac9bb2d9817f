import assert from 'node:assert/strict';
import { test } from 'node:test';
import { physics, startTestApp } from '../support/app.ts';

const lab = {
  ...physics,
  organizations: [
    ...(physics.organizations ?? []),
    {
      slug: 'biology',
      name: 'Biology',
      autoJoinDomains: ['biology.example'],
      members: [
        { email: 'bea@biology.example', role: 'owner' as const },
        { email: 'ada@physics.example', role: 'member' as const, username: 'lovelace' },
      ],
    },
  ],
  clusters: [],
};
const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

test('GET /me', async (t) => {
  await using service = await startTestApp({ lab });

  await t.test('returns the person, their memberships and the only organization as default', async () => {
    const { status, body } = await service.business('/me', { as: 'bob' });
    assert.equal(status, 200);
    const { user, memberships, ...rest } = body;
    assert.match(user.id, /^user_[0-7][0-9A-HJKMNP-TV-Z]{25}$/);
    assert.equal(user.primary_email, 'bob@physics.example');
    assert.equal(user.login_shell, '/bin/bash');
    assert.equal(user.lifecycle_state, 'active');
    assert.match(user.created_at, time);
    assert.match(user.updated_at, time);
    assert.equal('preferred_username' in user, false);
    const [{ organization_username: name, ...membership }] = memberships;
    assert.match(membership.org_id, /^org_[0-7][0-9A-HJKMNP-TV-Z]{25}$/);
    const { user_id: userId, email, role, lifecycle_state: state } = membership;
    assert.deepEqual([userId, email, role, state], [user.id, 'bob@physics.example', 'member', 'active']);
    assert.match(name.id, /^org_username_[0-7][0-9A-HJKMNP-TV-Z]{25}$/);
    assert.deepEqual([name.username, name.lifecycle_state], ['bob', 'reserved']);
    assert.equal('frozen_at' in name, false);
    assert.deepEqual(rest, { default_org_id: membership.org_id, staff_keys: [] });
  });

  await t.test('leaves default_org_id out when the caller must choose among several', async () => {
    const { body } = await service.business('/me', { as: 'ada' });
    assert.equal(body.memberships.length, 2);
    assert.equal('default_org_id' in body, false);
  });

  await t.test('lists staff keys; staff need not belong to an organization', async () => {
    const { body } = await service.business('/me', { as: 'root' });
    assert.deepEqual(body.staff_keys, ['staff.operate']);
    assert.deepEqual(body.memberships, []);
    assert.equal('default_org_id' in body, false);
    assert.equal(body.user.display_name, 'Root');
  });

  await t.test('the first call joins the organization of the domain, without rights', async () => {
    const email = 'Zoe.B@Biology.Example';
    const claims = { email, sub: 'zoe', name: 'Zoe B', preferred_username: 'zoeb' };
    const token = await service.issuer.token('zoe', claims);
    const { body } = await service.business('/me', { token });
    assert.equal(body.user.primary_email, 'zoe.b@biology.example');
    assert.equal(body.user.display_name, 'Zoe B');
    assert.equal(body.user.preferred_username, 'zoeb');
    assert.equal(body.memberships.length, 1);
    assert.equal(body.memberships[0].role, 'member');
    assert.equal(body.memberships[0].organization_username.username, 'zoeb');
    assert.equal(body.default_org_id, body.memberships[0].org_id);
    const clusters = await service.business(`/organizations/${body.default_org_id}/clusters`, { token });
    assert.deepEqual(clusters.body, { clusters: [] });
    const again = await service.business('/me', { token: await service.issuer.token('zoe', claims) });
    assert.deepEqual(again.body, body);
  });

  await t.test('an account has the name of the first sign-in that says one, to the letter', async () => {
    const name = 'DOMAIN\\bob '.padEnd(120, 'x');
    const signIn = async (more: object) => {
      const token = await service.issuer.token('bob', { email: 'bob@physics.example', ...more });
      return (await service.business('/me', { token })).body.user.preferred_username;
    };
    assert.equal(await signIn({}), undefined);
    assert.equal(await signIn({ preferred_username: 'two\nlines' }), undefined);
    assert.equal(await signIn({ preferred_username: name }), name);
    assert.equal(await signIn({ preferred_username: 'other' }), name);
  });

  await t.test('someone who was removed does not join again by signing in', async () => {
    const claims = { email: 'yan@biology.example', sub: 'yan' };
    const first = await service.business('/me', { token: await service.issuer.token('yan', claims) });
    const { id } = first.body.user;
    await service.app.store.write(async ({ db }) => {
      await db
        .updateTable('memberships')
        .set('lifecycle_state', 'removed')
        .where('user_id', '=', id)
        .execute();
      await db.deleteFrom('identities').where('user_id', '=', id).execute();
    });
    // A new subject, so that the account is looked for anew.
    const token = await service.issuer.token('yan', { ...claims, sub: 'yan-2' });
    const { status, body } = await service.business('/me', { token });
    assert.equal(status, 200);
    assert.equal(body.user.id, id);
    assert.deepEqual(body.memberships, []);
  });

  await t.test('many first calls at once make one account and one membership', async () => {
    const claims = { email: 'xi@biology.example', sub: 'xi' };
    const tokens = await Promise.all(
      [600, 601, 602, 603].map((lifetime) => service.issuer.token('xi', claims, lifetime)),
    );
    const replies = await Promise.all(tokens.map((token) => service.business('/me', { token })));
    assert.deepEqual(
      replies.map(({ status }) => status),
      [200, 200, 200, 200],
    );
    assert.equal(new Set(replies.map(({ body }) => body.user.id)).size, 1);
    assert.equal(replies[0]?.body.memberships.length, 1);
  });

  await t.test('two people of one mailbox name get two login names', async () => {
    const token = await service.issuer.token('bea', { email: 'be.a@biology.example', sub: 'bea-2' });
    const { body } = await service.business('/me', { token });
    assert.equal(body.memberships[0].organization_username.username, 'bea2');
  });
});
