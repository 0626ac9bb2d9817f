/** What each person can do on each cluster, as the service itself says it: by permission, scheduler, key and fault. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PermissionKey } from '../../src/domain/access/permission.ts';
import type { Lab } from '../../src/domain/clusters/lab.ts';
import type { LabMember } from '../../src/domain/clusters/lab-member.ts';
import { eventually, physics, physicsWith, startTestApp, type TestApp } from '../support/app.ts';
import { newPublicKey } from '../support/ssh-keys.ts';
import { organizationOf } from './organization.ts';

const member = (name: string, ...permissions: PermissionKey[]): LabMember => ({
  ...{ email: `${name}@physics.example`, role: 'member', username: name, permissions },
});
const lab: Lab = {
  ...physicsWith(member('kay', 'clusters.kubernetes'), member('sam', 'clusters.ssh')),
  clusters: [
    ...(physics.clusters ?? []),
    {
      ...{ name: 'gamma', organization: 'physics', scheduler: 'sunk' as const },
      simulated: { computeNodes: 1, gpusPerNode: 1, failure: 'The disk of node-1 is full.' },
    },
  ],
  grants: [{ user: 'carl@chemistry.example', cluster: 'beta', relation: 'kubernetes.viewer' }],
};

interface Use {
  reason: string;
  next?: string;
  message: string;
  expires_at?: string;
}

/** By name of the cluster. */
async function usesOf(
  service: TestApp,
  as: string,
  claims?: object,
): Promise<Record<string, { ssh: Use; kubernetes: Use }>> {
  const { status, body } = await service.business('/me/access', {
    token: await service.issuer.token(as, { ...claims }),
  });
  assert.equal(status, 200, JSON.stringify(body));
  return Object.fromEntries(
    body.clusters.map((one: { cluster_name: string; ssh: Use; kubernetes: Use }) => [one.cluster_name, one]),
  );
}

const reasonsOf = (uses: Record<string, { ssh: Use; kubernetes: Use }>) =>
  Object.fromEntries(
    Object.entries(uses).map(([name, { ssh, kubernetes }]) => [name, `${ssh.reason} ${kubernetes.reason}`]),
  );

test('each person reads what they can do on each cluster that they see or may use, and on no other', async () => {
  await using service = await startTestApp({
    lab,
    identity: { kubernetes: { clientId: 'andromeda-kubernetes' } },
  });
  const expect = (as: string, wanted: Record<string, string>, claims?: object) =>
    eventually(
      async () => reasonsOf(await usesOf(service, as, claims)),
      (found) => JSON.stringify(found) === JSON.stringify(wanted),
    );

  // Kubernetes only: no cluster that is Slurm's, and no word of a key.
  await expect('kay', { beta: 'not_offered ready' });
  await expect('carl', { beta: 'not_offered ready' }, { email: 'carl@chemistry.example' });
  await expect('eve', {});
  await expect('sam', { alpha: 'no_keys not_offered', gamma: 'no_keys not_offered' });
  await expect('bob', {
    alpha: 'no_keys not_offered',
    beta: 'not_offered no_permission',
    gamma: 'no_keys not_offered',
  });

  for (const as of ['bob', 'sam'])
    await service.write('/me/ssh-keys', { as, body: { public_key: newPublicKey() } });
  await expect('bob', {
    alpha: 'ready not_offered',
    beta: 'not_offered no_permission',
    gamma: 'fault not_offered',
  });
  // The operator's words for who sees the cluster, and that an operator knows for who does not.
  const { gamma: seen } = await usesOf(service, 'bob');
  assert.match(seen?.ssh.message ?? '', /: The disk of node-1 is full\.$/);
  const { gamma: unseen } = await usesOf(service, 'sam');
  assert.deepEqual([unseen?.ssh.reason, unseen?.ssh.next], ['fault', 'operator']);
  assert.match(unseen?.ssh.message ?? '', /\. Your administrator has been told\.$/);
  for (const [as, word] of [
    ['bob', /The disk of node-1 is full/],
    ['sam', /^Your administrator has been told\.$/],
  ] as const) {
    const { body: me } = await service.business('/me', { as });
    const access = `/organizations/${me.default_org_id}/access?user_ids=${me.user.id}`;
    const { body } = await service.business(access, { as });
    const messages = JSON.stringify(body).includes('node-1');
    assert.equal(messages, as === 'bob', as);
    const on = body.people[0].clusters.find((one: { slurm?: { message?: string } }) => one.slurm?.message);
    assert.match(on.slurm.message, word);
  }
});

test('what was approved and taken away again is said, with the request as well', async () => {
  await using service = await startTestApp({ identity: { kubernetes: { clientId: 'k' } } });
  const { requests, ask, decide, permit } = await organizationOf(service);
  const body = { permissions: ['clusters.kubernetes', 'clusters.read'], hours: 24 };
  const { id } = (await ask('eve', body)).body;
  const beta = async () => (await usesOf(service, 'eve'))['beta']?.kubernetes;
  await decide('ada', id, 'approve');
  const given = await eventually(beta, (one) => one?.reason === 'ready');
  const own = async () => (await service.business('/me/access-requests', { as: 'eve' })).body.requests[0];
  const approved = await own();
  assert.deepEqual([approved.removed, given?.expires_at], [undefined, approved.expires_at]);

  await permit('ada', 'eve', ['clusters.read'], { 'clusters.read': null });
  const taken = await beta();
  assert.deepEqual([taken?.reason, taken?.next], ['permission_removed', 'you']);
  assert.match(
    taken?.message ?? '',
    /^Your Kubernetes access was approved on .* and has been taken away again/,
  );
  assert.equal((await own()).removed, true);
  const [seen] = (await service.business(`${requests}?state=all`, { as: 'ada' })).body.requests;
  assert.equal(seen.removed, true);
  // Its time over, it is not taken away but ended.
  service.advance(25 * 3_600_000);
  assert.equal((await own()).removed, undefined);
  assert.equal((await beta())?.reason, 'permission_ended');
});
