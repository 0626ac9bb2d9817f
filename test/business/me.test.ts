import assert from 'node:assert/strict';
import { test } from 'node:test';
import { updateRows } from '../../src/store/engine/rows.ts';
import { physics, startTestApp } from '../support/app.ts';
import { fieldsOf } from '../support/fields.ts';

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

test('GET /me says who one is, of which organizations, and which is the only one', async () => {
  await using service = await startTestApp({ lab });
  const me = async (as: string) => (await service.business('/me', { as })).body;
  const { user, memberships, ...rest } = await me('bob');
  assert.match(user.id, /^user_[0-7][0-9A-HJKMNP-TV-Z]{25}$/);
  assert.deepEqual(
    [user.primary_email, user.login_shell, user.lifecycle_state, 'preferred_username' in user],
    ['bob@physics.example', '/bin/bash', 'active', false],
  );
  for (const at of [user.created_at, user.updated_at]) assert.match(at, time);
  const [{ organization_username: name, ...membership }] = memberships;
  assert.match(membership.org_id, /^org_[0-7][0-9A-HJKMNP-TV-Z]{25}$/);
  const { user_id: userId, email, role, lifecycle_state: state } = membership;
  assert.deepEqual([userId, email, role, state], [user.id, 'bob@physics.example', 'member', 'active']);
  assert.match(name.id, /^org_username_[0-7][0-9A-HJKMNP-TV-Z]{25}$/);
  assert.deepEqual([name.username, name.lifecycle_state, 'frozen_at' in name], ['bob', 'reserved', false]);
  assert.deepEqual(rest, { default_org_id: membership.org_id, staff_keys: [] });

  // Of several organizations one has to choose; staff need not belong to any.
  const ada = await me('ada');
  assert.deepEqual([ada.memberships.length, 'default_org_id' in ada], [2, false]);
  const root = await me('root');
  assert.deepEqual(
    [root.staff_keys, root.memberships, root.user.display_name],
    [['staff.operate'], [], 'Root'],
  );
  assert.equal('default_org_id' in root, false);
});

test('the first call joins the organization of the domain, once, without rights, and not after a removal', async () => {
  await using service = await startTestApp({ lab });
  const signIn = async (name: string, claims: object, lifetime?: number) => {
    const token = await service.issuer.token(name, { sub: name, ...claims }, lifetime);
    return service.business('/me', { token });
  };
  const preferred_username = 'zoeb';
  const claims = { email: 'Zoe.B@Biology.Example', name: 'Zoe B', preferred_username };
  const { body } = await signIn('zoe', claims);
  const { primary_email: email, display_name: shown, preferred_username: own } = body.user;
  assert.deepEqual([email, shown, own], ['zoe.b@biology.example', 'Zoe B', 'zoeb']);
  const [{ org_id: org, role, organization_username: name }, ...more] = body.memberships;
  assert.deepEqual([role, name.username, more, body.default_org_id], ['member', 'zoeb', [], org]);
  const token = await service.issuer.token('zoe', { sub: 'zoe', ...claims });
  const clusters = await service.business(`/organizations/${org}/clusters`, { token });
  assert.deepEqual(clusters.body, { clusters: [] });
  assert.deepEqual((await service.business('/me', { token })).body, body);

  const { id } = (await signIn('yan', { email: 'yan@biology.example' })).body.user;
  await service.app.store.write(async ({ db }) => {
    await updateRows(db, 'memberships', { user_id: id }, { lifecycle_state: 'removed' });
    await db.deleteFrom('identities').where('user_id', '=', id).execute();
  });
  // A new subject, so that the account is looked for anew.
  const back = await signIn('yan', { email: 'yan@biology.example', sub: 'yan-2' });
  assert.deepEqual([back.status, back.body.user.id, back.body.memberships], [200, id, []]);

  const many = [600, 601, 602, 603].map((lifetime) =>
    signIn('xi', { email: 'xi@biology.example' }, lifetime),
  );
  const replies = await Promise.all(many);
  assert.deepEqual(fieldsOf(replies, 'status'), [200, 200, 200, 200]);
  assert.equal(new Set(replies.map((reply) => reply.body.user.id)).size, 1);
  assert.equal(replies[0]?.body.memberships.length, 1);
  // Two people of one mailbox name get two login names.
  const bea = await signIn('bea', { email: 'be.a@biology.example', sub: 'bea-2' });
  assert.equal(bea.body.memberships[0].organization_username.username, 'bea2');

  // An account has the name of the first sign-in that says one, to the letter.
  const long = 'DOMAIN\\bob '.padEnd(120, 'x');
  for (const [said, known] of [
    [undefined, undefined],
    ['two\nlines', undefined],
    [long, long],
    ['other', long],
  ]) {
    const bob = await signIn('bob', { email: 'bob@physics.example', preferred_username: said });
    assert.equal(bob.body.user.preferred_username, known);
  }
});
