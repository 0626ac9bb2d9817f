/** Rules for groups that an identity provider pushes over SCIM, against the whole service. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually, physics, startTestApp, type TestApp } from '../support/app.ts';

const rules = [
  { group: 'physics-gpu', organization: 'physics', permissions: ['clusters.read', 'clusters.ssh'] },
  { group: 'physics-leads', organization: 'physics', role: 'admin' },
];
const lab = { ...physics, users: [...(physics.users ?? []), { email: 'zoe@physics.example', name: 'Zoe' }] };

async function start() {
  const service = await startTestApp({ lab, identity: { scim: true, groups: { rules } } });
  const { body } = await service.write('/operator/scim/tokens', { as: 'root', body: {} });
  const scim = async (path: string, method: string, sent?: unknown) => {
    const headers = { 'content-type': 'application/scim+json' };
    const reply = await service.business(`/scim/v2${path}`, {
      token: body.token,
      method,
      body: sent,
      headers,
    });
    assert.ok(reply.status < 300, JSON.stringify(reply.body));
    return reply.body;
  };
  const push = async (name: string): Promise<string> =>
    (await scim('/Users', 'POST', { userName: `${name}@physics.example`, externalId: name })).id;
  const group = (displayName: string, members: string[]) =>
    scim('/Groups', 'POST', { displayName, members: members.map((value) => ({ value })) });
  const patch = (path: string, ...Operations: object[]) =>
    scim(path, 'PATCH', { schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'], Operations });
  return { service, scim, push, group, patch };
}

/** Waits until the person has this in the organization; undefined: is no member. */
async function holds(
  service: TestApp,
  userId: string,
  wanted: { role: string; permissions: string[] } | undefined,
) {
  const { body: me } = await service.business('/me', { as: 'ada' });
  const path = `/organizations/${me.memberships[0].org_id}/members/${userId}/permissions`;
  const held = async () => {
    const { status, body } = await service.business(path, { as: 'ada' });
    return JSON.stringify(status === 200 ? { role: body.role, permissions: body.permissions } : undefined);
  };
  await eventually(held, (found) => found === JSON.stringify(wanted));
}

const gpu = { role: 'member', permissions: ['clusters.read', 'clusters.ssh'] };

test('who is put into a pushed group gets what rules give, and who is taken out loses it', async () => {
  const { service, push, group, patch, scim } = await start();
  await using _ = service;
  const [zoe, max] = [await push('zoe'), await push('max')];
  const { id } = await group('physics-gpu', [zoe]);
  await holds(service, zoe, gpu);
  await holds(service, max, undefined);
  await patch(
    `/Groups/${id}`,
    { op: 'add', path: 'members', value: [{ value: max }] },
    { op: 'remove', path: `members[value eq "${zoe}"]` },
  );
  await holds(service, max, gpu);
  await holds(service, zoe, undefined);
  const leads = await group('physics-leads', [max, zoe]);
  await holds(service, zoe, { role: 'admin', permissions: ['organization.admin'] });
  await scim(`/Groups/${leads.id}`, 'DELETE');
  await holds(service, zoe, undefined);
  await holds(service, max, gpu);
  await patch(`/Groups/${id}`, { op: 'replace', path: 'displayName', value: 'chemistry' });
  await holds(service, max, undefined);
  const { body } = await service.business('/operator/audit?operation=followGroups', { as: 'root' });
  const about = body.entries.filter((entry: { subject_user_id: string }) => entry.subject_user_id === zoe);
  assert.deepEqual(
    about.map(({ reason, details }: { reason: string; details: string }) => `${details}: ${reason}`),
    [
      '+membership, +clusters.read, +clusters.ssh: group physics-gpu at the issuer',
      '-membership, -clusters.read, -clusters.ssh: group physics-gpu at the issuer',
      '+membership, +role admin: group physics-leads at the issuer',
      '-membership, -role admin: group physics-leads at the issuer',
    ],
  );
});

test('what groups give comes back with a person who is let in again, over SCIM or by an operator', async () => {
  const { service, push, group, patch } = await start();
  await using _ = service;
  const zoe = await push('zoe');
  await group('physics-gpu', [zoe]);
  await holds(service, zoe, gpu);
  const active = (value: boolean) => patch(`/Users/${zoe}`, { op: 'replace', path: 'active', value });
  await active(false);
  await holds(service, zoe, undefined);
  await active(true);
  await holds(service, zoe, gpu);
  for (const step of ['deactivate', 'reactivate'])
    await service.write(`/operator/people/${zoe}/${step}`, { as: 'root', body: {} });
  await holds(service, zoe, gpu);
});

test('operators see pushed groups and what rules in their place would change; groups in tokens count for nothing', async () => {
  const { service, push, group } = await start();
  await using _ = service;
  const [zoe, max] = [await push('zoe'), await push('max')];
  await group('physics-gpu', [zoe, max]);
  await group('others', [max]);
  await holds(service, zoe, gpu);
  const token = await service.issuer.token('zoe', { groups: ['physics-leads'] });
  await service.business('/me', { token });
  const { body } = await service.business('/operator/groups', { as: 'root' });
  assert.equal(body.claim, undefined);
  assert.equal(body.people.known, 2);
  assert.deepEqual(
    body.groups.map(({ group: name, people }: { group: string; people: number }) => [name, people]),
    [
      ['physics-gpu', 2],
      ['physics-leads', 0],
      ['others', 1],
    ],
  );
  const plan = await service.business('/operator/groups/plan', {
    as: 'root',
    method: 'POST',
    body: { rules: [{ group: 'others', organization: 'physics' }] },
  });
  assert.deepEqual(
    plan.body.changes.map(({ what, gain, lose }: Record<string, unknown>) => `${what} +${gain} -${lose}`),
    ['clusters.read +0 -2', 'clusters.ssh +0 -2', 'membership +0 -1'],
  );
  await holds(service, zoe, gpu);
});
