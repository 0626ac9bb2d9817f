import assert from 'node:assert/strict';
import { test } from 'node:test';
import { physics, startTestApp, type TestApp } from '../../support/app.ts';
import { fieldsOf } from '../../support/fields.ts';
import { refused } from '../../support/refused.ts';
import { newPublicKey } from '../../support/ssh-keys.ts';

const gpu = { group: 'physics-gpu', organization: 'physics', permissions: ['clusters.read', 'clusters.ssh'] };
const kube = { group: 'physics-kube', organization: 'physics', permissions: ['clusters.kubernetes'] };
const lab = {
  ...physics,
  users: [...(physics.users ?? []), { email: 'zoe@physics.example' }, { email: 'yan@physics.example' }],
};

async function start(groups: object) {
  const service = await startTestApp({ lab, identity: { groups } });
  service.issuer.userinfo = {};
  return service;
}

async function signIn(service: TestApp, name: string, groups: string[]) {
  const token = await service.issuer.token(name, { groups });
  service.advance(1000);
  assert.equal((await service.business('/me', { token })).status, 200);
  return token;
}

const plan = (service: TestApp, rules: object[]) =>
  service.business('/operator/groups/plan', { as: 'root', method: 'POST', body: { rules } });

test('groups are noted without rules, and a plan says what rules would change, and restart', async () => {
  await using service = await start({ claim: 'groups' });
  for (const [name, groups] of [
    ['zoe', ['physics-gpu', 'staff']],
    ['yan', ['physics-gpu']],
  ] as const) {
    const token = await signIn(service, name, [...groups]);
    await service.write('/me/ssh-keys', { token, body: { public_key: newPublicKey() } });
  }
  await signIn(service, 'bob', ['physics-gpu']);
  const { body: known } = await service.business('/operator/groups', { as: 'root' });
  // Root's token lacks what others of its client had; ada, eve and carl have not signed in.
  assert.deepEqual(known, {
    claim: 'groups',
    people: { known: 4, unknown: 3 },
    groups: [
      { group: 'physics-gpu', people: 3, rules: [] },
      { group: 'staff', people: 1, rules: [] },
    ],
  });
  const { body: zoes } = await service.business('/operator/groups?email=Zoe@physics.example', { as: 'root' });
  assert.deepEqual(fieldsOf(zoes.groups, 'group'), ['physics-gpu', 'staff']);

  const { status, body } = await plan(service, [gpu]);
  assert.equal(status, 200, JSON.stringify(body));
  assert.deepEqual(body.people, { known: 4, unknown: 3 });
  // Bob has both by hand.
  assert.deepEqual(body.changes, [
    { organization: 'physics', what: 'clusters.read', gain: 2, lose: 0 },
    { organization: 'physics', what: 'clusters.ssh', gain: 2, lose: 0 },
    { organization: 'physics', what: 'membership', gain: 2, lose: 0 },
  ]);
  const [alpha] = body.restarts;
  assert.equal(alpha.cluster_name, 'alpha');
  assert.deepEqual(alpha.added.toSorted(), ['yan', 'zoe']);
  assert.deepEqual((await plan(service, [gpu])).body, body);
  assert.deepEqual((await service.business('/operator/groups', { as: 'root' })).body, known);
});

test('a plan counts what rules in force take away when others take their place', async () => {
  await using service = await start({ claim: 'groups', rules: [gpu] });
  await signIn(service, 'zoe', ['physics-gpu', 'physics-kube']);
  await signIn(service, 'bob', ['physics-gpu']);
  const { body } = await plan(service, [kube]);
  assert.deepEqual(body.changes, [
    { organization: 'physics', what: 'clusters.kubernetes', gain: 1, lose: 0 },
    { organization: 'physics', what: 'clusters.read', gain: 0, lose: 1 },
    { organization: 'physics', what: 'clusters.ssh', gain: 0, lose: 1 },
  ]);
  assert.deepEqual((await plan(service, [gpu])).body.changes, []);
});

test('a plan refuses rules that the service would not start with', async () => {
  await using service = await start({ claim: 'groups' });
  const bad: [object, RegExp][] = [
    [{ ...gpu, organization: 'phsyics' }, /rules\[0\]\.organization: there is no organization phsyics/],
    [
      { ...gpu, permissions: ['clusters.shh'] },
      /rules\[0\]\.permissions: "clusters\.shh" is not a permission/,
    ],
    [{ ...gpu, role: 'admin' }, /holds every permission/],
  ];
  for (const [rule, message] of bad) {
    refused(await plan(service, [rule]), 400, 'invalid_request', message);
  }
});

test('a lab file has what people gave: what rules give is no part of it, and stays when it is applied', async () => {
  await using service = await start({ claim: 'groups', rules: [gpu] });
  const { body: before } = await service.business('/operator/lab', { as: 'root' });
  await signIn(service, 'zoe', ['physics-gpu']);
  await signIn(service, 'eve', ['physics-gpu']);
  await signIn(service, 'bob', ['physics-gpu']);
  const { body: exported } = await service.business('/operator/lab', { as: 'root' });
  assert.deepEqual(exported, before);
  const apply = (lab: object) => service.write('/operator/lab', { as: 'root', body: { lab, prune: true } });
  assert.deepEqual((await apply(exported)).body.changes, []);
  // A file that names one of whom rules made a member makes them one by hand as well.
  const [first, ...others] = exported.organizations;
  const zoe = { email: 'zoe@physics.example', role: 'member', permissions: ['clusters.ssh'] };
  const named = { ...exported, organizations: [{ ...first, members: [...first.members, zoe] }, ...others] };
  assert.deepEqual(fieldsOf((await apply(named)).body.changes, 'action', 'name'), [
    ['create', 'physics/zoe@physics.example'],
  ]);
  assert.deepEqual((await apply(named)).body.changes, []);
  await signIn(service, 'zoe', []);
  await signIn(service, 'eve', []);
  const { body: after } = await service.business('/operator/lab', { as: 'root' });
  assert.deepEqual(
    after.organizations[0].members.find(({ email }: { email: string }) => email === zoe.email),
    { ...zoe, username: 'zoe' },
  );
  assert.deepEqual((await apply(before)).body.changes.length, 1);
});
