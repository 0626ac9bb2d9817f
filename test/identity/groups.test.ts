import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JWTPayload } from 'jose';
import { readGroups } from '../../src/domain/organizations/group-rules.ts';
import { physics, startTestApp, type TestApp } from '../support/app.ts';
import { refused } from '../support/refused.ts';

const rules = [
  { group: 'physics-gpu', organization: 'physics', permissions: ['clusters.read', 'clusters.ssh'] },
  { group: 'physics-kube', organization: 'physics', permissions: ['clusters.kubernetes', 'clusters.read'] },
  { group: 'physics-admin', organization: 'physics', role: 'admin' },
  { group: 'physics-owner', organization: 'physics', role: 'owner' },
];
const lab = {
  ...physics,
  users: [...(physics.users ?? []), { email: 'zoe@physics.example', name: 'Zoe' }],
  clusters: [],
};

async function start() {
  const service = await startTestApp({ lab, identity: { groups: { claim: 'groups', rules } } });
  // What most issuers say of groups there: nothing.
  service.issuer.userinfo = {};
  const { org_id: org } = (await service.business('/me', { as: 'ada' })).body.memberships[0];
  return {
    ...service,
    org: org as string,
    /** Who that is. Each token is issued a second after the one before. */
    async signIn(name: string, claims: JWTPayload): Promise<string> {
      const token = await service.issuer.token(name, claims);
      service.advance(1000);
      const { status, body } = await service.business('/me', { token });
      assert.equal(status, 200, JSON.stringify(body));
      return body.user.id;
    },
    /** What someone has in the organization, as its owner reads it. */
    async held(userId: string): Promise<string> {
      const path = `/organizations/${org}/members/${userId}/permissions`;
      const { status, body } = await service.business(path, { as: 'ada' });
      return status === 200 ? [body.role, ...body.permissions].join(' ') : 'nothing';
    },
  };
}

async function problemsOf(service: TestApp) {
  const { body } = await service.business('/operator/problems', { as: 'root' });
  return body.problems.filter(({ area }: { area: string }) => area === 'identity');
}

async function trail(service: TestApp) {
  const { body } = await service.business('/operator/audit?operation=followGroups', { as: 'root' });
  return body.entries.map(
    ({ reason, details }: { reason: string; details: string }) => `${details} (${reason})`,
  );
}

test('rules give a person what their groups say at the sign-in, and take it away', async () => {
  await using service = await start();
  const id = await service.signIn('zoe', { groups: ['physics-gpu', 'other'] });
  assert.equal(await service.held(id), 'member clusters.read clusters.ssh');
  await service.signIn('zoe', { groups: ['physics-gpu', 'physics-kube'] });
  assert.equal(await service.held(id), 'member clusters.kubernetes clusters.read clusters.ssh');
  await service.signIn('zoe', { groups: ['physics-kube'] });
  assert.equal(await service.held(id), 'member clusters.kubernetes clusters.read');
  await service.signIn('zoe', { groups: ['physics-admin'] });
  assert.equal(await service.held(id), 'admin organization.admin');
  await service.signIn('zoe', { groups: [] });
  assert.equal(await service.held(id), 'nothing');
  assert.deepEqual(await trail(service), [
    '+membership, +clusters.read, +clusters.ssh (group physics-gpu at the issuer)',
    '+clusters.kubernetes (groups physics-gpu, physics-kube at the issuer)',
    '-clusters.ssh (groups physics-gpu, physics-kube at the issuer)',
    '+role admin, -clusters.kubernetes, -clusters.read (groups physics-admin, physics-kube at the issuer)',
    '-membership, -role admin (group physics-admin at the issuer)',
  ]);
});

test('what people gave stays when a rule goes, and what a rule gives stays when people take theirs', async () => {
  await using service = await start();
  // Bob has clusters.read and clusters.ssh by hand, eve is a member without permissions.
  const bob = await service.signIn('bob', { groups: ['physics-gpu', 'physics-kube'] });
  const eve = await service.signIn('eve', { groups: ['physics-gpu'] });
  const set = (userId: string, permissions: string[]) =>
    service.put('ada', `/organizations/${service.org}/members/${userId}/permissions`, { permissions });
  const both = 'member clusters.kubernetes clusters.read clusters.ssh';
  assert.equal(await service.held(bob), both);

  const byRule = /A rule gives clusters.kubernetes, by groups physics-gpu, physics-kube at the issuer/;
  refused(await set(bob, ['clusters.read']), 409, byRule);
  // The hand's part of clusters.ssh goes, and the rule's stays.
  const { permissions } = (await set(bob, ['clusters.kubernetes', 'clusters.read'])).body;
  assert.equal(['member', ...permissions].join(' '), both);
  await service.signIn('bob', { groups: [] });
  assert.equal(await service.held(bob), 'member clusters.read');

  // A form that repeats what it read gives nothing by hand.
  const added = await set(eve, ['clusters.read', 'clusters.ssh', 'reservations.read']);
  assert.equal(added.status, 200, JSON.stringify(added.body));
  await service.signIn('eve', { groups: [] });
  assert.equal(await service.held(eve), 'member reservations.read');
});

test('a role by hand and one by a rule are kept apart', async () => {
  await using service = await start();
  const id = await service.signIn('bob', { groups: ['physics-admin'] });
  assert.equal(await service.held(id), 'admin organization.admin');
  const role = (role: string) =>
    service.put('ada', `/organizations/${service.org}/members/${id}/role`, { role });
  assert.equal((await role('member')).status, 409);
  assert.equal((await role('owner')).status, 200);
  await service.signIn('bob', { groups: [] });
  assert.equal(await service.held(id), 'owner organization.owner');
});

test('people cannot take the role of the last owner either, where a rule gives them less', async () => {
  await using service = await start();
  const ada = await service.signIn('ada', { groups: ['physics-gpu'] });
  const path = `/organizations/${service.org}/members/${ada}`;
  refused(await service.put('root', `${path}/role`, { role: 'admin' }), 409, /This is the last owner/);
  refused(await service.write(`${path}/remove`, { as: 'root' }), 409, /This is the last owner/);
});

test('only rules take a membership that only rules gave', async () => {
  await using service = await start();
  const zoe = await service.signIn('zoe', { groups: ['physics-gpu'] });
  const bob = await service.signIn('bob', { groups: ['physics-kube'] });
  const remove = (userId: string) =>
    service.write(`/organizations/${service.org}/members/${userId}/remove`, { as: 'ada' });
  refused(await remove(zoe), 409, 'invalid_state', /the membership, by group physics-gpu at the issuer/);
  assert.equal((await remove(bob)).status, 200);
  assert.equal(await service.held(bob), 'member clusters.kubernetes clusters.read');
  assert.equal((await remove(bob)).status, 409);
  await service.signIn('bob', { groups: [] });
  assert.equal(await service.held(bob), 'nothing');
});

test('what groups give comes back at the next sign-in of a person whom an operator lets in again', async () => {
  await using service = await start();
  const id = await service.signIn('zoe', { groups: ['physics-gpu'] });
  for (const step of ['deactivate', 'reactivate']) {
    const { status } = await service.write(`/operator/people/${id}/${step}`, { as: 'root', body: {} });
    assert.equal(status, 200);
    assert.equal(await service.held(id), 'nothing');
  }
  // Of the minute after the deactivation no token counts: the issuer's clock may be ahead.
  service.advance(61_000);
  await service.signIn('zoe', { groups: ['physics-gpu'] });
  assert.equal(await service.held(id), 'member clusters.read clusters.ssh');
});

test('a claim that is not there means no groups only for a client that has sent it', async () => {
  await using service = await start();
  const id = await service.signIn('zoe', { groups: ['physics-gpu'], client_id: 'console' });
  await service.signIn('zoe', { client_id: 'andromeda-cli' });
  assert.match(await service.held(id), /^member/);
  await service.signIn('zoe', { client_id: undefined, azp: 'console' });
  assert.equal(await service.held(id), 'nothing');
});

test('groups are asked of userinfo where the token lacks them, and not for each request', async () => {
  await using service = await start();
  const { issuer } = service;
  const groups = ['physics-gpu'];
  issuer.userinfo = { sub: 'subject-zoe', groups };
  const token = await issuer.token('zoe');
  const { body } = await service.business('/me', { token });
  await service.business('/me', { token });
  assert.equal(await service.held(body.user.id), 'member clusters.read clusters.ssh');
  const asked = issuer.requests.get('/userinfo') ?? 0;
  await service.business('/me', { token });
  assert.equal(issuer.requests.get('/userinfo'), asked);

  // Of another subject, it says nothing of this one.
  issuer.userinfo = { sub: 'subject-eve', groups: ['physics-admin'] };
  const bob = await service.signIn('bob', { client_id: 'third' });
  assert.match(await service.held(bob), /^member/);
});

test('a sign-in goes on while userinfo is away, which is asked once in a while, and a token with groups counts all the same', async () => {
  await using service = await start();
  const { issuer } = service;
  issuer.userinfo = undefined;
  issuer.requests.clear();
  const token = await issuer.token('zoe');
  const { status, body } = await service.business('/me', { token });
  assert.equal(status, 200);
  assert.equal((await service.business('/me', { token })).status, 200);
  assert.equal(issuer.requests.get('/userinfo'), 1);
  await service.signIn('zoe', { groups: ['physics-kube'] });
  assert.equal(await service.held(body.user.id), 'member clusters.kubernetes clusters.read');
});

test('what cannot be groups changes nothing, and is a problem for operators', async () => {
  for (const [claims, message] of [
    [{ groups: 'physics-gpu' }, /is not a list/],
    [{ groups: null }, /is not a list/],
    [{ groups: ['physics-gpu', 1] }, /not a list of texts/],
    [{ groups: [''] }, /not a list of texts/],
    [{ groups: ['x'.repeat(257)] }, /not a list of texts/],
    [{ groups: ['physics-gpu\0'] }, /not a list of texts/],
    [{ _claim_names: { groups: 'src1' } }, /overage/],
    [{ groups: [], _claim_names: { groups: 'src1' } }, /overage/],
    [{ hasgroups: true }, /overage/],
  ] as const) {
    const read = readGroups(claims, 'groups');
    assert.match(read.kind === 'fault' ? read.fault : '', message, JSON.stringify(claims));
  }
  await using service = await start();
  const id = await service.signIn('zoe', { groups: ['physics-gpu'] });
  await service.signIn('zoe', { groups: null });
  assert.equal(await service.held(id), 'member clusters.read clusters.ssh');
  const [problem] = await problemsOf(service);
  assert.match(problem.message, /is not a list/);
  assert.match(problem.message, /zoe@physics.example/);
  await service.signIn('zoe', { groups: ['physics-gpu'] });
  assert.deepEqual(await problemsOf(service), []);
});

test('an older token takes nothing back that a newer one said', async () => {
  await using service = await start();
  const older = await service.issuer.token('zoe', { groups: ['physics-admin'] });
  service.advance(2000);
  const newer = await service.issuer.token('zoe', { groups: [] });
  const { body } = await service.business('/me', { token: newer });
  await service.business('/me', { token: older });
  assert.equal(await service.held(body.user.id), 'nothing');
});

test('the last owner is never removed by a rule, which is a problem for operators until there is another', async () => {
  await using service = await start();
  const zoe = await service.signIn('zoe', { groups: ['physics-owner'] });
  const ada = (await service.business('/me', { as: 'ada' })).body.user.id;
  const role = (of: string) =>
    service.put('root', `/organizations/${service.org}/members/${ada}/role`, { role: of });
  assert.equal((await role('admin')).status, 200);
  await service.signIn('zoe', { groups: [] });
  assert.equal(await service.held(zoe), 'owner organization.owner');
  await service.signIn('zoe', { groups: [] });
  const [{ about, message }] = await problemsOf(service);
  assert.equal(about, 'physics');
  assert.match(message, /zoe@physics.example is its last owner by group physics-owner at the issuer/);
  await role('owner');
  await service.signIn('zoe', { groups: [] });
  assert.equal(await service.held(zoe), 'nothing');
  assert.deepEqual(await problemsOf(service), []);
  assert.deepEqual((await trail(service)).slice(1), [
    'stays: the last owner (group physics-owner at the issuer)',
    '-membership, -role owner (group physics-owner at the issuer)',
  ]);
});

test('a token that says nothing new writes nothing', async () => {
  await using service = await start();
  await service.signIn('zoe', { groups: ['physics-gpu', 'other'] });
  const seen = await service.app.store.read.selectFrom('person_groups').selectAll().execute();
  service.advance(1000);
  await service.signIn('zoe', { groups: ['other', 'physics-gpu', 'other'] });
  assert.deepEqual(await service.app.store.read.selectFrom('person_groups').selectAll().execute(), seen);
  assert.equal((await trail(service)).length, 1);
});

test('a claim inside of others is named by its path, and one whose name has dots by itself', () => {
  const groups = ['physics-gpu'];
  for (const [claim, claims] of [
    ['realm_access.roles', { realm_access: { roles: groups } }],
    ['realm_access.roles', { realm_access: { roles: ['other'] }, 'realm_access.roles': groups }],
    ['https://physics.example/roles', { 'https://physics.example/roles': groups }],
    ['https://physics.example/lab.roles', { 'https://physics.example/lab': { roles: groups } }],
  ] as const)
    assert.deepEqual(readGroups(claims, claim), { kind: 'groups', groups }, claim);
});

test('a claim that no token had yet is a problem once people have signed in', async () => {
  await using service = await start();
  const [problem] = await problemsOf(service);
  assert.equal(
    problem?.message,
    'No access token, and no answer of userinfo, has had the claim groups (identity.groups.claim) yet.',
  );
  await service.signIn('zoe', { groups: [] });
  assert.deepEqual(await problemsOf(service), []);
});
